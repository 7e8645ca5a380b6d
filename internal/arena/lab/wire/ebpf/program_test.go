//go:build linux

package ebpf

import (
	"encoding/binary"
	"errors"
	"maps"
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// What a program at tc decides (linux/pkt_cls.h).
const (
	verdictPass     = 0xffffffff // TC_ACT_UNSPEC
	verdictStack    = 0          // TC_ACT_OK
	verdictDrop     = 2          // TC_ACT_SHOT
	verdictRedirect = 7          // TC_ACT_REDIRECT
)

// frame returns an Ethernet frame with an IPv4 packet and the ports of TCP or UDP.
func frame(proto byte, source, destination string) []byte {
	from, to := netip.MustParseAddrPort(source), netip.MustParseAddrPort(destination)
	f := make([]byte, 14+20+20)
	binary.BigEndian.PutUint16(f[12:], unix.ETH_P_IP)
	ip := f[14:]
	ip[0], ip[8], ip[9] = 0x45, 64, proto
	binary.BigEndian.PutUint16(ip[2:], 40)
	copy(ip[12:], from.Addr().AsSlice())
	copy(ip[16:], to.Addr().AsSlice())
	binary.BigEndian.PutUint16(ip[20:], from.Port())
	binary.BigEndian.PutUint16(ip[22:], to.Port())
	if proto == unix.IPPROTO_TCP {
		ip[32], ip[33] = 0x50, 0x02 // no options, SYN
	}
	return f
}

// asks returns an ARP question for an address.
func asks(whom string) []byte {
	f := make([]byte, 14+28)
	binary.BigEndian.PutUint16(f[12:], unix.ETH_P_ARP)
	copy(f[14:], []byte{0, 1, 8, 0, 6, 4, 0, 1})
	copy(f[38:], netip.MustParseAddr(whom).AsSlice())
	return f
}

func addrOf(f []byte, at int) netip.AddrPort {
	port := 14 + 20
	if at == 16 {
		port += 2
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(f[14+at:])), binary.BigEndian.Uint16(f[port:]))
}

// load loads programs for a test run, or skips.
func load(t *testing.T, object []byte, programs []string, constants map[string]any) *ebpf.Collection {
	t.Helper()
	c, err := loadEBPF(object, programs, constants, nil)
	if errors.Is(err, unix.EPERM) {
		t.Skip("this user may load no eBPF programs; run as root: go test ./internal/arena/lab/wire")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func send(t *testing.T, p *ebpf.Program, in []byte) (verdict uint32, out []byte) {
	t.Helper()
	out = make([]byte, 2*len(in))
	opts := ebpf.RunOptions{Data: in, DataOut: out}
	verdict, err := p.Run(&opts)
	if err != nil {
		t.Fatal(err)
	}
	return verdict, opts.DataOut
}

// aPod is node 1's pod 10.244.0.2 of Cilium, beside 10.244.1.2 on another
// node and a Service.
func aPod(t *testing.T, more map[string]any) *ciliumNode {
	t.Helper()
	settings := map[string]any{
		"endpoint_id": uint32(1), "endpoint_identity": uint32(257), "endpoint_addr": [4]byte{10, 244, 0, 2},
		"tunnel_mode": true, "tunnel_device": uint32(1), "per_packet_lb": true, "notify": true, "aggregation": uint32(3),
	}
	maps.Copy(settings, more)
	c := load(t, ciliumObject, []string{"from_container", "to_container", "from_overlay", "to_overlay", "from_netdev", "to_netdev"}, settings)
	n := &ciliumNode{Collection: c, services: serviceMapsOf(c)}
	for egress := range uint8(2) {
		if err := c.Maps["policy"].Put(ciliumPolicyKey{Length: 40, Egress: egress}, ciliumPolicy{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.remote(netip.MustParsePrefix("10.244.1.2/32"), 258, netip.MustParseAddr("10.10.0.3")); err != nil {
		t.Fatal(err)
	}
	if err := n.services.sync(t.Context(), aTable); err != nil {
		t.Fatal(err)
	}
	return n
}

var aTable = []wire.ServicePort{
	{Name: "tcp", ClusterIP: netip.MustParseAddr("10.96.0.2"), Protocol: "TCP", Port: 80, Backends: []netip.AddrPort{netip.MustParseAddrPort("10.244.1.2:8080")}},
	{Name: "udp", ClusterIP: netip.MustParseAddr("10.96.0.2"), Protocol: "UDP", Port: 53, Backends: []netip.AddrPort{netip.MustParseAddrPort("10.244.1.2:5353")}},
	{Name: "empty", ClusterIP: netip.MustParseAddr("10.96.0.3"), Protocol: "TCP", Port: 80},
}

func TestFromContainer(t *testing.T) {
	for name, c := range map[string]struct {
		more map[string]any
		in   []byte
		want uint32
		to   string // what the destination has become
	}{
		"to another node":    {nil, frame(unix.IPPROTO_TCP, "10.244.0.2:40000", "10.244.1.2:80"), verdictRedirect, "10.244.1.2:80"},
		"to the world":       {nil, frame(unix.IPPROTO_TCP, "10.244.0.2:40000", "192.0.2.1:80"), verdictStack, "192.0.2.1:80"},
		"another's source":   {nil, frame(unix.IPPROTO_TCP, "10.244.0.9:40000", "10.244.1.2:80"), verdictDrop, ""},
		"to a Service":       {nil, frame(unix.IPPROTO_TCP, "10.244.0.2:40000", "10.96.0.2:80"), verdictRedirect, "10.244.1.2:8080"},
		"to its UDP port":    {nil, frame(unix.IPPROTO_UDP, "10.244.0.2:40000", "10.96.0.2:53"), verdictRedirect, "10.244.1.2:5353"},
		"no such port":       {nil, frame(unix.IPPROTO_TCP, "10.244.0.2:40000", "10.96.0.2:81"), verdictStack, "10.96.0.2:81"},
		"no backend":         {nil, frame(unix.IPPROTO_TCP, "10.244.0.2:40000", "10.96.0.3:80"), verdictDrop, ""},
		"served elsewhere":   {map[string]any{"per_packet_lb": false}, frame(unix.IPPROTO_TCP, "10.244.0.2:40000", "10.96.0.2:80"), verdictStack, "10.96.0.2:80"},
		"past the stack":     {map[string]any{"tunnel_mode": false, "host_routing": true, "uplink": uint32(1)}, frame(unix.IPPROTO_TCP, "10.244.0.2:40000", "10.244.1.2:80"), verdictRedirect, "10.244.1.2:80"},
		"who has 10.244.0.1": {nil, asks("10.244.0.1"), verdictRedirect, ""},
		"IPv6":               {nil, append(append(make([]byte, 12), 0x86, 0xdd), make([]byte, 60)...), verdictDrop, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := aPod(t, c.more)
			verdict, out := send(t, pod.Programs["from_container"], c.in)
			if verdict != c.want {
				t.Errorf("verdict %d, want %d", verdict, c.want)
			}
			if c.to == "" {
				return
			}
			if got := addrOf(out, 16); got != netip.MustParseAddrPort(c.to) {
				t.Errorf("sent to %s, want %s", got, c.to)
			}
		})
	}
}

// A pod's question for any address is answered with its node's side.
func TestARP(t *testing.T) {
	pod := aPod(t, map[string]any{"endpoint_node_mac": []byte{2, 3, 4, 5, 6, 7, 0, 0}})
	_, out := send(t, pod.Programs["from_container"], asks("10.244.0.1"))
	got := map[string][]byte{"Ethernet source": out[6:12], "operation": out[20:22], "sender": out[22:28], "sender's address": out[28:32]}
	want := map[string][]byte{"Ethernet source": {2, 3, 4, 5, 6, 7}, "operation": {0, 2}, "sender": {2, 3, 4, 5, 6, 7}, "sender's address": {10, 244, 0, 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The reply of a Service's backend comes from the Service, and what is no
// longer in the table is no Service.
func TestServiceReply(t *testing.T) {
	pod := aPod(t, nil)
	send(t, pod.Programs["from_container"], frame(unix.IPPROTO_TCP, "10.244.0.2:40000", "10.96.0.2:80"))
	verdict, out := send(t, pod.Programs["to_container"], frame(unix.IPPROTO_TCP, "10.244.1.2:8080", "10.244.0.2:40000"))
	if got := addrOf(out, 12); verdict != verdictRedirect || got != netip.MustParseAddrPort("10.96.0.2:80") {
		t.Errorf("verdict %d, from %s", verdict, got)
	}
	if err := pod.services.sync(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if verdict, _ := send(t, pod.Programs["from_container"], frame(unix.IPPROTO_TCP, "10.244.0.2:40001", "10.96.0.2:80")); verdict != verdictStack {
		t.Errorf("without Services: verdict %d", verdict)
	}
}

// With medium aggregation a flow's first packet is an event and its second is
// none, and at the node's devices, which know no flows, none is; without, every
// packet is at every point.
func TestFlowEvents(t *testing.T) {
	for name, c := range map[string]struct {
		program     string
		aggregation uint32
		relay       bool
		want        uint64
	}{
		"medium":          {"from_container", 3, false, 1},
		"none":            {"from_container", 0, false, 6},
		"with relay":      {"from_container", 3, true, 1},
		"uplink, medium":  {"to_netdev", 3, false, 0},
		"uplink, none":    {"to_netdev", 0, false, 3},
		"into the tunnel": {"to_overlay", 3, false, 0},
		"from the uplink": {"from_netdev", 3, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			pod := aPod(t, map[string]any{"aggregation": c.aggregation, "report_seconds": uint32(3600), "node_port": true})
			o, err := observe(pod.Maps["events"], c.relay)
			if err != nil {
				t.Fatal(err)
			}
			defer o.close()
			for range 3 {
				send(t, pod.Programs[c.program], frame(unix.IPPROTO_TCP, "10.244.0.2:40000", "10.244.1.2:80"))
			}
			for end := time.Now().Add(10 * time.Second); o.seen.Load() < c.want && time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(50 * time.Millisecond) // for one too many
			if got := o.seen.Load(); got != c.want || o.lost.Load() != 0 {
				t.Errorf("%d events and %d lost, want %d", got, o.lost.Load(), c.want)
			}
		})
	}
}

// Calico's program translates UDP, and TCP as well where no socket did.
func TestCalicoToHost(t *testing.T) {
	node := load(t, calicoObject, []string{"to_host", "from_host"}, map[string]any{"workload": true})
	if err := calicoPut(node, netip.MustParsePrefix("10.244.0.2/32"), calicoRoute{calicoWorkload | calicoLocal | calicoInPool, 1}); err != nil {
		t.Fatal(err)
	}
	services := calicoNodeOf(node).services
	if err := services.sync(t.Context(), aTable); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, step := range []struct {
		program string
		in      []byte
		at      int
	}{
		{"to_host", frame(unix.IPPROTO_UDP, "10.244.0.2:40000", "10.96.0.2:53"), 16},
		{"to_host", frame(unix.IPPROTO_UDP, "10.244.0.2:40000", "10.96.0.2:53"), 16}, // by its entry
		{"from_host", frame(unix.IPPROTO_UDP, "10.244.1.2:5353", "10.244.0.2:40000"), 12},
		{"to_host", frame(unix.IPPROTO_TCP, "10.244.0.2:40000", "10.96.0.2:81"), 16},
	} {
		verdict, out := send(t, node.Programs[step.program], step.in)
		if verdict == verdictDrop {
			t.Errorf("%s dropped %s", step.program, addrOf(step.in, step.at))
		}
		got = append(got, addrOf(out, step.at).String())
	}
	if diff := cmp.Diff([]string{"10.244.1.2:5353", "10.244.1.2:5353", "10.96.0.2:53", "10.96.0.2:81"}, got); diff != "" {
		t.Error(diff)
	}
	if verdict, _ := send(t, node.Programs["to_host"], frame(unix.IPPROTO_UDP, "10.244.0.9:1", "10.244.1.2:2")); verdict != verdictDrop {
		t.Errorf("another's source: verdict %d", verdict)
	}
	if err := services.sync(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if verdict, out := send(t, node.Programs["from_host"], asks("169.254.1.1")); verdict != verdictPass || len(out) != 42 {
		t.Errorf("ARP: verdict %#x", verdict)
	}
}
