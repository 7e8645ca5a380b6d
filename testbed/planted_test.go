//go:build linux

package main

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"
)

// wireGuard is WireGuard in user space, device wg0 of this network namespace, until the
// program is ended. config is WireGuard's own (https://www.wireguard.com/xplatform/).
func wireGuard(config string) error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGTERM, unix.SIGINT)
	t, err := tun.CreateTUN("wg0", device.DefaultMTU)
	if err != nil {
		return err
	}
	d := device.NewDevice(t, conn.NewDefaultBind(), device.NewLogger(device.LogLevelError, "wg0: "))
	defer d.Close()
	if err := d.IpcSet(config); err != nil {
		return err
	}
	if err := d.Up(); err != nil {
		return err
	}
	fmt.Println("up")
	select {
	case <-ended:
	case <-d.Wait():
	}
	return nil
}

// place is a node with its address, its pods' network and its key.
type place struct {
	name, address, pods string
	key                 *ecdh.PrivateKey
}

// places returns the two nodes.
func (p program) places() (all [2]place) {
	p.t.Helper()
	fields := strings.Fields(p.run("kubectl", "get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.addresses[0].address} {.spec.podCIDR}{"\n"}{end}`))
	for i := range all {
		key, err := ecdh.X25519().GenerateKey(rand.Reader)
		if err != nil {
			p.t.Fatal(err)
		}
		all[i] = place{fields[3*i], fields[3*i+1], fields[3*i+2], key}
	}
	return all
}

// encrypt sends what goes from node to the pods of peer through WireGuard, until the test ends.
func (p program) encrypt(node, peer place) {
	p.t.Helper()
	const port = 51820
	config := fmt.Sprintf("private_key=%s\nlisten_port=%d\npublic_key=%s\nendpoint=%v\nallowed_ip=%s\n",
		hex.EncodeToString(node.key.Bytes()), port, hex.EncodeToString(peer.key.PublicKey().Bytes()), netip.AddrPortFrom(netip.MustParseAddr(peer.address), port), peer.pods)
	// A node has a /tmp of its own: it gets this test's program by standard input.
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		p.t.Fatal(err)
	}
	defer self.Close()
	cmd := p.command("node-exec", node.name, "--", "sh", "-c", `cat >/run/planted && chmod +x /run/planted && exec /run/planted wireguard "$0"`, config)
	var said strings.Builder
	cmd.WaitDelay = time.Second // what it has started in the node goes with the node
	cmd.Stdin, cmd.Stderr = self, &said
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Signal(unix.SIGTERM)
		_ = cmd.Wait()
	})
	if _, err := fmt.Fscanln(stdout, new(string)); err != nil {
		_ = cmd.Wait()
		p.t.Fatalf("WireGuard on %s: %v: %s", node.name, err, said.String())
	}
	p.run("node-exec", node.name, "--", "sh", "-c", "ip link set wg0 up && ip route replace "+peer.pods+" dev wg0")
}

// leaveOutServices has packets to Services go from node to the pods of peer by the nodes'
// own network, around the cipher.
func (p program) leaveOutServices(node, peer place) {
	p.t.Helper()
	const marked = "0x700000/0x700000"
	p.run("node-exec", node.name, "--", "sh", "-c", "iptables -w -t mangle -I PREROUTING -d 10.96.0.0/16 -j MARK --set-xmark "+marked+
		" && ip route add "+peer.pods+" via "+peer.address+" table 77 && ip rule add fwmark "+marked+" table 77 priority 50")
}

// An encryption that leaves out what goes to Services is found by cnibench check, and the
// path is named.
func TestServiceInClear(t *testing.T) {
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skipf("WireGuard in user space needs it: %v", err)
	}
	p := newProgram(t)
	p.run("up", "--nodes", "2", "--cni", "routes")
	p.run("image", "import", "../bin/cnibench-image.tar")
	nodes := p.places()
	both := func(do func(node, peer place)) {
		do(nodes[0], nodes[1])
		do(nodes[1], nodes[0])
	}
	const done, gate = 0, 4 // exit codes of cnibench
	p.wantEncryption("as the test bed is", done, "pass plain", "pass plain")
	both(p.encrypt)
	p.wantEncryption("WireGuard", done, "pass encrypted", "pass encrypted")
	both(p.leaveOutServices)
	p.wantEncryption("WireGuard without Services", gate, "pass encrypted", "fail plain")
}

// wantEncryption compares what cnibench check encryption says of pods and of a Service.
func (p program) wantEncryption(what string, code int, pod, service string) {
	p.t.Helper()
	cmd := exec.Command("../bin/cnibench", "check", "encryption", "--arena", "kube", "--privileged", "--json",
		"--kubeconfig", strings.TrimSpace(p.run("kubeconfig")), "--image", "cnibench:dev", "--pull-policy", "Never")
	var messages strings.Builder
	cmd.Stderr = &messages
	out, err := cmd.Output()
	var got struct {
		Results []struct {
			Contender string
			Cases     []struct{ Name, Verdict, Found, Text string }
		}
	}
	if err := json.Unmarshal(out, &got); err != nil || cmd.ProcessState.ExitCode() != code {
		p.t.Errorf("%s: exit code %d, want %d; %v: %s", what, cmd.ProcessState.ExitCode(), code, err, messages.String())
	}
	seen := 0
	for _, r := range got.Results {
		for _, c := range r.Cases {
			want, asked := map[string]string{"pod-tcp": pod, "pod-udp": pod, "service-tcp": service, "service-udp": service}[c.Name]
			if r.Contender != "this-cluster" || !asked {
				continue
			}
			seen++
			if verdict := c.Verdict + " " + c.Found; verdict != want {
				p.t.Errorf("%s: %s: %s, want %s: %s", what, c.Name, verdict, want, c.Text)
			}
		}
	}
	if seen != 4 {
		p.t.Errorf("%s: %d cases, want pods and a Service over TCP and UDP (%v): %s", what, seen, err, messages.String())
	}
}
