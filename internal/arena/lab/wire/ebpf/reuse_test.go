//go:build linux

package ebpf

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// TCP flags (RFC 9293).
const (
	flagFIN = 0x01
	flagSYN = 0x02
	flagACK = 0x10
)

// flagged returns a TCP frame with other flags than SYN.
func flagged(f []byte, flags byte) []byte {
	f[14+20+13] = flags
	return f
}

// backend returns the table of one Service with that backend.
func backend(addr string) []wire.ServicePort {
	s := aTable[0]
	s.Backends = []netip.AddrPort{netip.MustParseAddrPort(addr)}
	return []wire.ServicePort{s}
}

// A connection that has the addresses of one that both sides have closed is a
// new one for Calico, also towards a Service, and one that the client alone has
// closed is not.
func TestCalicoRecycles(t *testing.T) {
	const pod, service = "10.244.0.2:40000", "10.96.0.2:80"
	for name, c := range map[string]struct {
		closes []string // who sends FIN
		want   string   // where the second connection goes
	}{
		"both":   {[]string{"client", "server"}, "10.244.1.3:80"},
		"client": {[]string{"client"}, "10.244.1.2:80"},
	} {
		t.Run(name, func(t *testing.T) {
			node := load(t, calicoObject, []string{"to_host", "from_host"}, nil)
			services := calicoNodeOf(node).services
			if err := services.sync(t.Context(), backend("10.244.1.2:80")); err != nil {
				t.Fatal(err)
			}
			send(t, node.Programs["to_host"], frame(unix.IPPROTO_TCP, pod, service))
			if slices.Contains(c.closes, "client") {
				send(t, node.Programs["to_host"], flagged(frame(unix.IPPROTO_TCP, pod, service), flagFIN|flagACK))
			}
			if slices.Contains(c.closes, "server") {
				send(t, node.Programs["from_host"], flagged(frame(unix.IPPROTO_TCP, "10.244.1.2:80", pod), flagFIN|flagACK))
			}
			if err := services.sync(t.Context(), backend("10.244.1.3:80")); err != nil {
				t.Fatal(err)
			}
			_, out := send(t, node.Programs["to_host"], frame(unix.IPPROTO_TCP, pod, service))
			if got := addrOf(out, 16); got != netip.MustParseAddrPort(c.want) {
				t.Errorf("the second connection goes to %s, want %s", got, c.want)
			}
		})
	}
}

// ciliumConnection is bpf/cilium.c's connection_state.
type ciliumConnection struct {
	Counters                   [4]uint64
	Lifetime                   uint32
	RxClosing, TxClosing       uint8
	SeenNonSYN, RxSeen, TxSeen uint8
	_                          [3]uint8
	Index, Backend, Identity   uint32
	LastRx, LastTx             uint32
}

// A SYN over a connection to a Service that has closed selects a backend anew,
// if the grace period is over, and is told to Hubble.
func TestCiliumRebalances(t *testing.T) {
	const client, service = "10.244.0.2:40000", "10.96.0.2:80"
	for name, c := range map[string]struct {
		flags byte // of the first connection's second packet
		long  bool // the grace period is over
		anew  bool
	}{
		"closed long ago": {flagFIN | flagACK, true, true},
		"just closed":     {flagFIN | flagACK, false, false},
		"open":            {flagACK, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := aPod(t, nil)
			send(t, pod.Programs["from_container"], frame(unix.IPPROTO_TCP, client, service))
			send(t, pod.Programs["from_container"], flagged(frame(unix.IPPROTO_TCP, client, service), c.flags))
			const scopeAt, scopeService = 13, 4
			var key [14]byte
			var state, its ciliumConnection
			var itsKey [14]byte
			for all := pod.Maps["ct_tcp"].Iterate(); all.Next(&key, &state); {
				if key[scopeAt] == scopeService {
					itsKey, its = key, state
				}
			}
			// No backend has number 0 or is found by it: a wrong entry shows.
			was := its.Backend
			its.Backend = 0xffff
			if c.long {
				its.LastTx = 0
			}
			if err := pod.Maps["ct_tcp"].Put(itsKey, its); err != nil {
				t.Fatal(err)
			}
			verdict, _ := send(t, pod.Programs["from_container"], frame(unix.IPPROTO_TCP, client, service))
			if err := pod.Maps["ct_tcp"].Lookup(itsKey, &its); err != nil {
				t.Fatal(err)
			}
			if anew := verdict == verdictRedirect && its.Backend == was; anew != c.anew {
				t.Errorf("selected anew: %t, want %t", anew, c.anew)
			}
		})
	}
}

// What a program looks at, beside what every test of it sees in its verdicts.
func TestProgramsLookAt(t *testing.T) {
	for name, c := range map[string]struct {
		object []byte
		maps   []string
	}{
		"from_netdev":  {ciliumObject, []string{"services", "snat", "ipcache", "endpoints"}},
		"from_overlay": {ciliumObject, []string{"services", "snat", "ipcache", "endpoints"}},
		"to_netdev":    {ciliumObject, []string{"ct_tcp", "ct_any", "endpoints", "ipcache"}},
		"to_overlay":   {ciliumObject, []string{"ct_tcp", "ct_any"}},
		"to_host":      {calicoObject, []string{"conntrack", "frontends", "routes", "socket_flows"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec, err := objectSpec(c.object)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for _, instruction := range spec.Programs[name].Instructions {
				seen[instruction.Reference()] = true
			}
			for _, m := range c.maps {
				if !seen[m] {
					t.Errorf("does not look at %s", m)
				}
			}
		})
	}
}

// Packets pass the programs of node ports as they pass those without.
func TestNodePortsPass(t *testing.T) {
	pod := aPod(t, map[string]any{"node_port": true, "masquerade": true, "host_routing": true, "tunnel_mode": false})
	e := ciliumEndpoint{Ifindex: 1, ID: 1, Identity: 257}
	if err := pod.Maps["endpoints"].Put([4]byte{10, 244, 0, 2}, e); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"to_netdev", "to_overlay"} {
		if verdict, _ := send(t, pod.Programs[program], frame(unix.IPPROTO_TCP, "10.244.0.2:40000", "10.244.1.2:80")); verdict != verdictStack {
			t.Errorf("%s: verdict %d", program, verdict)
		}
	}
	if verdict, _ := send(t, pod.Programs["from_netdev"], frame(unix.IPPROTO_TCP, "10.244.1.2:80", "192.0.2.1:40000")); verdict != verdictStack {
		t.Errorf("from_netdev: verdict %d", verdict)
	}
}

func TestEmpty(t *testing.T) {
	pod := aPod(t, nil)
	for _, to := range []string{"10.244.1.2:80", "10.244.1.2:81", "192.0.2.1:80"} {
		send(t, pod.Programs["from_container"], frame(unix.IPPROTO_TCP, "10.244.0.2:40000", to))
	}
	connections := pod.Maps["ct_tcp"]
	if n := entries(t, connections); n != 3 {
		t.Fatalf("%d connections, want 3", n)
	}
	for range 2 { // an empty one, too
		if err := empty(connections); err != nil {
			t.Fatal(err)
		}
		if n := entries(t, connections); n != 0 {
			t.Errorf("%d connections left", n)
		}
	}
}

func entries(t *testing.T, m *ebpf.Map) (n int) {
	t.Helper()
	var key, value []byte
	all := m.Iterate()
	for all.Next(&key, &value) {
		n++
	}
	if err := all.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}
