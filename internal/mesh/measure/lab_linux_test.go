package measure

//make:alone 60

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/cnibench/cnibench/contenders"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/mesh"
	"github.com/cnibench/cnibench/internal/testutil/arenatest"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// TestMain starts the test program again inside the lab's container, as the command line does.
func TestMain(m *testing.M) {
	if arenatest.MainAgent() {
		return
	}
	if !lab.Contained() {
		code, err := lab.Contain(context.Background(), os.Args[1:])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	}
	if err := lab.Enter(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// up brings flannel-vxlan up on five nodes.
func up(t *testing.T) (*check.Subject, []arena.Endpoint) {
	t.Helper()
	list, err := contender.Load(contenders.FS)
	if err != nil {
		t.Fatal(err)
	}
	c, err := contender.Find(list, "flannel-vxlan")
	if err != nil {
		t.Fatal(err)
	}
	a, err := lab.New(lab.Options{
		Nodes: 5, Underlay: lab.UnderlayAuto, MTU: 1500, Congestion: lab.CongestionAuto, CPUs: lab.DefaultPlacement(lab.CPUs()),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Supports(t.Context(), c); err != nil {
		t.Skipf("%v; run it with cnibench vm", err)
	}
	net, err := a.Up(t.Context(), c, a.Variant(c))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := net.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	s := &check.Subject{Contender: c, Network: net, Exe: os.Args[0]}
	t.Cleanup(s.Close)
	return s, net.Nodes()
}

// on runs a command at the endpoint.
func on(t *testing.T, e arena.Endpoint, argv ...string) {
	t.Helper()
	var out bytes.Buffer
	p, err := e.Start(t.Context(), host.Command{Argv: argv, Stderr: &out})
	if err == nil {
		err = p.Wait()
	}
	if err != nil {
		t.Fatalf("%v: %v: %s", argv, err, &out)
	}
}

// plan is small: the nodes share two CPUs with everything else.
func plan(net Network) mesh.Plan {
	return mesh.Plan{
		Nodes: net.Nodes, Matchings: 0, Probes: 300, Rate: 1000, Senders: 1, AtOnce: 1, Seed: 1,
		Limits: mesh.Limits{AtOnce: 1, Rate: 500e6, Slice: 100 * time.Millisecond},
	}
}

func measured(t *testing.T, s *check.Subject) (*mesh.Report, error) {
	net := Of(s.Network, s.Exe)
	return Run(t.Context(), net, plan(net), Options{})
}

func TestPlantedInLab(t *testing.T) {
	needs.Slow(t, "measures a mesh with planted faults")
	tests := []struct {
		name  string
		plant func(t *testing.T, s *check.Subject, nodes []arena.Endpoint)
		want  func(p mesh.Place) bool
		late  bool // where probers were late, they judge no losses, and say so
	}{
		{"rate of one sender", func(t *testing.T, s *check.Subject, nodes []arena.Endpoint) {
			on(t, nodes[2], "tc", "qdisc", "replace", "dev", s.Network.Uplink(), "root", "tbf", "rate", "40mbit", "burst", "32kb", "latency", "50ms")
		}, func(p mesh.Place) bool {
			return p.Kind == mesh.Sender && p.From == "node3" && p.Path == mesh.Host && p.Metric == mesh.Goodput
		}, false},
		{"loss of one link", func(t *testing.T, s *check.Subject, nodes []arena.Endpoint) {
			on(t, nodes[4], "nft", "add table ip planted; add chain ip planted in { type filter hook prerouting priority -400; }; "+
				"add rule ip planted in ip saddr "+nodes[1].Addr().String()+" meta l4proto udp numgen random mod 100 < 10 drop")
		}, func(p mesh.Place) bool {
			return p.Kind == mesh.Link && p.From == "node2" && p.To == "node5" && p.Metric == mesh.Loss
		}, true},
		{"MTU of one node", func(t *testing.T, s *check.Subject, nodes []arena.Endpoint) {
			on(t, nodes[3], "ip", "link", "set", s.Network.Uplink(), "mtu", "1400")
		}, func(p mesh.Place) bool {
			return p.Kind == mesh.NodeBoth && p.From == "node4" && p.Path == mesh.Host && p.Metric == mesh.MTU
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, nodes := up(t)
			tt.plant(t, s, nodes)
			r, err := measured(t, s)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s", r)
			if !slices.ContainsFunc(r.Slow, tt.want) && (len(r.Late) == 0 || !tt.late) {
				t.Errorf("not named: %+v", r.Slow)
			}
		})
	}
}

func TestSoundLab(t *testing.T) {
	s, _ := up(t)
	r, err := measured(t, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d suspects, %d judged\n%s", r.Suspects, r.Judged, r)
	if len(r.Pairs) != 40 {
		t.Errorf("%d directions of 5 nodes on two networks", len(r.Pairs))
	}
}
