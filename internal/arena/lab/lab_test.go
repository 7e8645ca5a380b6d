//go:build linux

package lab

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/contenders"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/testutil/arenatest"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

func catalogue(t *testing.T) []*contender.Contender {
	t.Helper()
	list, err := contender.Load(contenders.FS)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func options(nodes, mtu int) Options {
	return Options{
		Nodes: nodes, Underlay: UnderlayAuto, MTU: mtu, Congestion: CongestionAuto,
		CPUs: DefaultPlacement(CPUs()),
	}
}

// everyKernel are the contenders that every kernel with the usual options runs.
var everyKernel = []string{"host", "flannel-host-gw", "flannel-aws-vpc", "flannel-vxlan", "calico-noencap", "calico-vxlan", "canal", "macvlan"}

func TestConformance(t *testing.T) {
	for _, c := range []struct{ nodes, mtu, podMTU int }{{2, 1500, 0}, {8, 9000, 8000}}[:needs.Trials(2, 1)] {
		t.Run(fmt.Sprintf("nodes=%d,mtu=%d", c.nodes, c.mtu), func(t *testing.T) {
			opt := options(c.nodes, c.mtu)
			opt.PodMTU = c.podMTU
			a, err := New(opt)
			if err != nil {
				t.Fatal(err)
			}
			// Flannel's own daemon comes from no package: TestConformanceOfFlanneld.
			list := slices.DeleteFunc(catalogue(t), func(c *contender.Contender) bool { return c.ID == "flannel-udp" })
			ran := arenatest.Run(t, a, list, arenatest.Config{Exe: os.Args[0], UnderlayMTU: c.mtu, PodMTU: c.podMTU, Nodes: c.nodes})
			for _, id := range everyKernel {
				if !slices.Contains(ran, id) {
					t.Errorf("%s did not run", id)
				}
			}
		})
	}
}

func TestConformanceOfFlanneld(t *testing.T) {
	needs.Flanneld(t)
	a, err := New(options(2, 1500))
	if err != nil {
		t.Fatal(err)
	}
	udp, err := contender.Find(catalogue(t), "flannel-udp")
	if err != nil {
		t.Fatal(err)
	}
	arenatest.Run(t, a, []*contender.Contender{udp}, arenatest.Config{Exe: os.Args[0], UnderlayMTU: 1500, Nodes: 2})
}

func TestVPCRouteLimit(t *testing.T) {
	a, err := New(options(51, 1500))
	if err != nil {
		t.Fatal(err)
	}
	vpc, err := contender.Find(catalogue(t), "flannel-aws-vpc")
	if err != nil {
		t.Fatal(err)
	}
	u := arena.AsUnsupported(a.Supports(t.Context(), vpc))
	if u == nil || !strings.Contains(u.Reason, "node51") || !strings.Contains(u.Reason, "50 entries") {
		t.Errorf("51 nodes: %+v, want the 51st refused by the route table's 50 entries", u)
	}
	// The router itself refuses too.
	if _, err := a.Up(t.Context(), vpc, UnderlayVPC); err == nil || !strings.Contains(err.Error(), "node51") {
		t.Errorf("up with 51 nodes: %v", err)
	}
}

// Pods can't be asked to take more than their network carries whole.
func TestPodMTUTooLarge(t *testing.T) {
	opt := options(2, 1500)
	opt.PodMTU = 1500
	a, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"flannel-vxlan": "--pod-mtu 1450 or less", "flannel-host-gw": ""} {
		c, err := contender.Find(catalogue(t), id)
		if err != nil {
			t.Fatal(err)
		}
		u := arena.AsUnsupported(a.Supports(t.Context(), c))
		if want == "" && u != nil || want != "" && (u == nil || !strings.Contains(u.Remedy, want)) {
			t.Errorf("%s: %+v, want %q", id, u, want)
		}
	}
}

func TestUnderlayMismatch(t *testing.T) {
	for _, c := range []struct{ id, underlay, driver, remedy string }{
		{"flannel-host-gw", UnderlayVPC, "", "--underlay auto"},
		{"flannel-aws-vpc", UnderlaySwitch, "e1000", "leave --nic out"},
	} {
		opt := options(2, 1500)
		opt.Underlay, opt.NICDriver = c.underlay, c.driver
		a, err := New(opt)
		if err != nil {
			t.Fatal(err)
		}
		x, err := contender.Find(catalogue(t), c.id)
		if err != nil {
			t.Fatal(err)
		}
		if u := arena.AsUnsupported(a.Supports(t.Context(), x)); u == nil || !strings.Contains(u.Remedy, c.remedy) {
			t.Errorf("%s on %s: %+v", c.id, c.underlay, u)
		}
	}
}

func TestEveryRequirementIsProbed(t *testing.T) {
	features, err := Probe()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range catalogue(t) {
		for _, name := range c.Requires.Kernel {
			if !slices.ContainsFunc(features, func(f Feature) bool { return f.Name == name }) {
				t.Errorf("%s requires %q, which probe does not try", c.ID, name)
			}
		}
	}
}

// A contender that can't come up leaves nothing, and says what was wrong.
func TestBrokenContender(t *testing.T) {
	a, err := New(options(2, 1500))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		lab  contender.Lab
		want string
	}{
		"piece":     {contender.Lab{Transport: &contender.Piece{Use: "vxlam"}}, `did you mean "vxlan"`},
		"parameter": {contender.Lab{Transport: &contender.Piece{Use: "vxlan", Params: map[string]any{"prot": 1}}}, `did you mean "port"`},
		"plugin":    {contender.Lab{Attach: &contender.Piece{Use: "macvlan", Params: map[string]any{"mode": "nonsense"}}}, "CNI ADD"},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := a.Up(t.Context(), &contender.Contender{ID: "broken", Lab: c.lab}, UnderlaySwitch)
			if err == nil {
				_ = n.Down(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
			if _, err := os.Stat(RunDir + "/cnibench/broken"); !os.IsNotExist(err) {
				t.Errorf("its folder is still there: %v", err)
			}
		})
	}
}

// The baseline comes up on the underlay that the plan names, not on the one
// that it would choose.
func TestBaselineOnVPC(t *testing.T) {
	a, err := New(options(2, 1500))
	if err != nil {
		t.Fatal(err)
	}
	host, err := contender.Find(catalogue(t), "host")
	if err != nil {
		t.Fatal(err)
	}
	for underlay, network := range map[string]netip.Prefix{UnderlaySwitch: switchNet, UnderlayVPC: vpcNet} {
		n, err := a.Up(t.Context(), host, underlay)
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range n.Nodes() {
			if !network.Contains(node.Addr()) {
				t.Errorf("%s on %s has %s, want one of %s", node.Name(), underlay, node.Addr(), network)
			}
		}
		if err := n.Down(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
