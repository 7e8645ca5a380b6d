package check

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// planted brings the contender up, plants a fault with a shell at endpoints, and checks.
func planted(t *testing.T, a arena.Arena, c *contender.Contender, check Check, plant map[string]string) Result {
	t.Helper()
	ctx := t.Context()
	net, err := a.Up(ctx, c, a.Variant(c))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := net.Down(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}()
	for _, e := range append(net.Nodes(), net.Pods()...) {
		script := plant[e.Name()]
		for i, n := range net.Nodes() {
			script = strings.ReplaceAll(script, fmt.Sprintf("{node%d}", i+1), n.Addr().String())
		}
		if script == "" {
			continue
		}
		if _, err := host.Output(ctx, e, host.Command{Argv: []string{"sh", "-ec", script}}); err != nil {
			t.Fatal(err)
		}
	}
	s := &Subject{Contender: c, Network: net, Exe: os.Args[0]}
	defer s.Close()
	r, err := check.Run(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	knownFacts(t, r.Cases)
	for _, c := range r.Cases {
		t.Logf("%s %s %s: %s -> %s", c.Name, c.Verdict, c.Found, c.Text, c.Next)
	}
	return r
}

// What public reports tell of packet sizes is planted, and the check says which it is.
func TestPlantedMTU(t *testing.T) { plantMTUs(t, "flows") }

// The same of what large transfers do not survive.
func TestPlantedStalls(t *testing.T) {
	needs.Slow(t, "waits for packets that do not come, 20 s a plant")
	plantMTUs(t, "stalls")
}

// plantMTUs plants the faults with that outcome of TCP.
func plantMTUs(t *testing.T, tcp string) {
	const (
		small = "ip link set eth0 mtu 1450"
		drop  = `nft 'table ip planted { chain p { type filter hook prerouting priority -450; ip frag-off & 0x1fff != 0 drop; }; }'`
		hole  = `nft 'table netdev planted { chain i { type filter hook ingress device "eth0" priority 0; meta length > 1400 drop; }; }'`
		route = `ip route replace $(ip route show default | head -n 1) mtu 1450`
	)
	bridge := `{"cniVersion":"1.0.0","name":"wrong","type":"bridge","bridge":"cni0","mtu":1500,"isDefaultGateway":true,
		"ipam":{"type":"host-local","ranges":[[{"subnet":"usePodCidr"}]]}}`
	custom, err := lab.NewCustom("wrong.conf", []byte(bridge), "vxlan")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		nodes  int
		custom bool
		plant  map[string]string
		found  string // size and TCP
		text   string // of size
		path   string
	}{
		"the node cuts up": {2, false, map[string]string{"node1": small, "node2": small},
			"cut up, flows", "node1 cuts them up, and they arrive at node2; the nodes' own packets of 1450 bytes cross whole", "1400"},
		"fragments dropped": {2, false, map[string]string{"node1": small, "node2": small + "\n" + drop},
			"fragments lost, stalls", "node1 cuts them up, and they are lost at node2", "1400"},
		"a hop cuts up": {3, false, map[string]string{
			"node1": "ip route replace {node2}/32 via {node3} dev eth0",
			"node3": "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 0 >/proc/sys/net/ipv4/conf/all/send_redirects; echo 0 >/proc/sys/net/ipv4/conf/eth0/send_redirects; ip route replace {node2}/32 dev eth0 mtu lock 1400",
		}, "cut up, flows", "a hop between node1 and node2 cuts them up, and they arrive; the nodes' own packets of more than 1400 bytes don't cross whole either, and their interfaces show 1500: the nodes' network is at fault", "1350"},
		"they vanish": {2, false, map[string]string{"node2": hole},
			"exceeds, stalls", "they vanish between node1 and node2, and nobody says so; the nodes' own packets of more than 1400 bytes don't cross whole either", "1350"},
		"a route's own MTU": {2, true, map[string]string{"node1-pod1": route, "node2-pod1": route},
			"fits, flows", "the interface shows an MTU of 1500, the route allows less", "1450"},
	} {
		if !strings.HasSuffix(tt.found, tcp) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			options := lab.Options{
				Nodes: tt.nodes, Underlay: lab.UnderlayAuto, MTU: 1500, Congestion: lab.CongestionAuto, CPUs: lab.DefaultPlacement(lab.CPUs()),
			}
			c := find(t, "flannel-vxlan")
			if tt.custom {
				options.Custom, c = custom, custom.Contender()
			}
			a, err := lab.New(options)
			if err != nil {
				t.Fatal(err)
			}
			r := planted(t, a, c, mtu{}, tt.plant)
			size, tcp := caseOf(t, r, "size"), caseOf(t, r, "tcp")
			if got := size.Found + ", " + tcp.Found; got != tt.found || !strings.Contains(size.Text, tt.text) {
				t.Errorf("%s: %s", got, size.Text)
			}
			if got := r.Environment["check.mtu."+c.ID+".path"]; got != tt.path {
				t.Errorf("path %s, want %s", got, tt.path)
			}
			if lost := strings.HasPrefix(r.Environment["check.mtu."+c.ID+".fragments"], "fail: "); lost != (size.Found == fragmentsLost) {
				t.Errorf("environment %v", r.Environment)
			}
		})
	}
}
