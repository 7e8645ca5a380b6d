package lab

import (
	"net/netip"
	"os"
	"testing"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// With --offload host a bulk transfer crosses the underlay in frames far
// larger than its MTU; with wire no packet is larger, whichever tunnel or
// interface it comes from, at either end, and nothing is lost by it.
func TestOffload(t *testing.T) {
	const mtu = 1500
	for id, cutsBefore := range map[string]bool{
		"host": false, "flannel-host-gw": false, "flannel-vxlan": false, "macvlan": false, "flannel-aws-vpc": false,
		"cilium": false, "cilium-native": false, "flannel-ipip": false, "ipvlan-l3": false, "antrea": false, "kubeovn": false,
		"calico-vxlan":      true, // has its tunnel fill in checksums, and with it cut packets
		"flannel-wireguard": true, // packets are cut before they are encrypted
	} {
		t.Run(id, func(t *testing.T) {
			c, err := contender.Find(catalogue(t), id)
			if err != nil {
				t.Fatal(err)
			}
			for _, mode := range []string{OffloadHost, OffloadWire} {
				opt := options(2, mtu)
				opt.Offload = mode
				a, err := New(opt)
				if err != nil {
					t.Fatal(err)
				}
				if err := a.Supports(t.Context(), c); err != nil {
					t.Skipf("%v; build the test with go test -c and run it with cnibench vm -- ./lab.test -test.run %s", err, t.Name())
				}
				for i, seen := range transfer(t, a, c) {
					t.Logf("%s, node %d: %d packets of %d bytes on average, the largest %d", mode, i+1, seen.Packets, seen.Bytes/max(seen.Packets, 1), seen.Largest)
					switch {
					case mode == OffloadWire && seen.Largest > mtu:
						t.Errorf("node %d: a packet of %d bytes crossed the underlay", i+1, seen.Largest)
					case mode == OffloadHost && !cutsBefore && seen.Largest <= mtu:
						t.Errorf("node %d: no packet was larger than the MTU: the largest had %d bytes", i+1, seen.Largest)
					}
				}
			}
		})
	}
}

// transfer moves some megabytes both ways between the pods of two nodes and
// tells what both nodes' uplinks saw.
func transfer(t *testing.T, a arena.Arena, c *contender.Contender) []agent.Sniffed {
	t.Helper()
	ctx := t.Context()
	n, err := a.Up(ctx, c, a.Variant(c))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Down(ctx); err != nil {
			t.Error(err)
		}
	}()
	hire := func(e arena.Endpoint) *agent.Client {
		x, err := agent.Start(ctx, e, os.Args[0], map[string]string{"endpoint": e.Name()}, sysmon.ScopePod)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	pair, err := n.Pair(ctx, arena.PathPod)
	if err != nil {
		t.Fatal(err)
	}
	var watchers []*agent.Client
	for _, node := range n.Nodes()[:2] {
		w := hire(node)
		watchers = append(watchers, w)
		if err := w.Sniff(ctx, agent.Sniff{Device: n.Uplink()}); err != nil {
			t.Fatal(err)
		}
	}
	client, server := hire(pair.Client), hire(pair.Server)
	at, err := server.Echo(ctx, pair.Server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	s := agent.Segments{}
	for range 20 { // until the network has settled
		if s, err = client.Segments(ctx, agent.TCPProbe{Target: netip.AddrPortFrom(pair.Target, at), Bytes: 4 << 20}); err != nil || s.Kind == agent.OK {
			break
		}
	}
	if err != nil || s.Kind != agent.OK {
		t.Fatalf("transfer: %+v, %v", s, err)
	}
	var seen []agent.Sniffed
	for _, w := range watchers {
		x, err := w.StopSniffing(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if x.Bytes < 8<<20 {
			t.Errorf("the uplink saw %d bytes of 8 MiB", x.Bytes)
		}
		seen = append(seen, x)
	}
	return seen
}
