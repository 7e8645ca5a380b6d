//go:build linux

package lab

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/linux"
)

// A packet of an established connection matches as many rules of the policy agent, on
// the client's node and on the server's, as a reader of the product's chains counts.
func TestPolicyChains(t *testing.T) {
	for _, c := range []struct {
		id, prefix     string
		client, server int
	}{
		// raw 4 (server: 3), mangle PREROUTING 2, filter FORWARD 6, mangle POSTROUTING 2
		{"calico-noencap", "cali-", 14, 13},
		// and around the VXLAN packet: raw OUTPUT 3, filter OUTPUT 2, mangle POSTROUTING 2; raw 3, mangle 2, INPUT 2
		{"calico-vxlan", "cali-", 21, 20},
		// no rule for VXLAN accepts it, so it sees the host endpoints' too
		{"canal", "cali-", 22, 21},
		// FORWARD, the pod's address, established; not the chains of OUTPUT, since the pods'
		// bridge reports a group that it joins within 2 s (RFC 4286, 224.0.0.106)
		{"kuberouter", "KUBE-ROUTER-FORWARD|KUBE-POD-FW-", 3, 3},
	} {
		t.Run(c.id, func(t *testing.T) {
			a, err := New(options(2, 1500))
			if err != nil {
				t.Fatal(err)
			}
			product, err := contender.Find(catalogue(t), c.id)
			if err != nil {
				t.Fatal(err)
			}
			up, err := a.Up(t.Context(), product, UnderlaySwitch)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := up.Down(t.Context()); err != nil {
					t.Error(err)
				}
			}()
			n := up.(*labNetwork)
			prefixes := strings.Split(c.prefix, "|")
			client, server := socket(t, n.fabric.Pods[0].NS, n.fabric.Pods[0].Addr), socket(t, n.fabric.Pods[1].NS, n.fabric.Pods[1].Addr)
			pass(t, client, server)
			pass(t, server, client)
			pass(t, client, server)

			const packets = 10
			before := []int{matched(t, n.nodes[0], prefixes), matched(t, n.nodes[1], prefixes)}
			for range packets {
				pass(t, client, server)
			}
			for i, want := range []int{c.client, c.server} {
				if got := matched(t, n.nodes[i], prefixes) - before[i]; got != want*packets {
					t.Errorf("node%d: %d packets matched %d rules, want %d each", i+1, packets, got, want)
				}
			}
		})
	}
}

// Between nodes nothing is sent that nobody asked for: the switch's own membership
// reports once were counted with a test's packets, within 2 s after it came up.
func TestQuietUnderlay(t *testing.T) {
	a, err := New(options(2, 1500))
	if err != nil {
		t.Fatal(err)
	}
	product, err := contender.Find(catalogue(t), "calico-noencap")
	if err != nil {
		t.Fatal(err)
	}
	up, err := a.Up(t.Context(), product, UnderlaySwitch)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := up.Down(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	time.Sleep(2500 * time.Millisecond)
	for _, node := range up.(*labNetwork).nodes {
		if n := matched(t, node, []string{"cali-"}); n != 0 {
			t.Errorf("%d rules were matched and no packet sent", n)
		}
	}
}

// socket is a UDP socket of the pod.
func socket(t *testing.T, pod *linux.NetNS, at netip.Addr) *net.UDPConn {
	t.Helper()
	var conn *net.UDPConn
	err := pod.Do(func() (err error) {
		conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at, 5000)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// pass sends one packet and waits for its arrival.
func pass(t *testing.T, from, to *net.UDPConn) {
	t.Helper()
	if _, err := from.WriteTo([]byte("x"), to.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := to.ReadFrom(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
}

// matched sums the packets that matched rules of chains, or jumps to chains, of these names.
func matched(t *testing.T, node host.Runner, prefixes []string) int {
	t.Helper()
	var out bytes.Buffer
	p, err := node.Start(t.Context(), host.Command{Argv: []string{"iptables-nft-save", "--counters"}, Stdout: &out})
	if err == nil {
		err = p.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for line := range strings.Lines(out.String()) {
		var packets, octets int
		if _, err := fmt.Sscanf(line, "[%d:%d] -A", &packets, &octets); err != nil {
			continue
		}
		for _, prefix := range prefixes {
			if strings.Contains(line, " "+prefix) {
				sum += packets
				break
			}
		}
	}
	return sum
}
