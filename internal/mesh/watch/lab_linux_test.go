package watch

//make:alone 90

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/contenders"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/mesh"
	"github.com/cnibench/cnibench/internal/mesh/measure"
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

// TestWatchInLab: of eight nodes one gets a small MTU and then its own again; another one leaves,
// comes back, and has its agent killed. The first is named and recovers; nothing else is.
// (Packet sizes are judged however busy the machine is; late probers judge no round trips.)
func TestWatchInLab(t *testing.T) {
	needs.Slow(t, "watches a lab of eight nodes for some rounds")
	list, err := contender.Load(contenders.FS)
	if err != nil {
		t.Fatal(err)
	}
	c := list[slices.IndexFunc(list, func(c *contender.Contender) bool { return c.ID == "flannel-vxlan" })]
	cpus := lab.CPUs()
	a, err := lab.New(lab.Options{Nodes: 8, Underlay: lab.UnderlayAuto, MTU: 1500, Offload: lab.OffloadHost, Congestion: lab.CongestionAuto, CPUs: lab.Placement{Client: cpus, Server: cpus, Rest: cpus}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Supports(t.Context(), c); err != nil {
		t.Skipf("%v; run it with cnibench vm", err)
	}
	up, err := a.Up(t.Context(), c, a.Variant(c))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := up.Down(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	net := measure.Of(up, os.Args[0])
	mtu := func(size string) {
		var out bytes.Buffer
		p, err := up.Nodes()[2].Start(t.Context(), host.Command{Argv: []string{"ip", "link", "set", up.Uplink(), "mtu", size}, Stderr: &out})
		if err == nil {
			err = p.Wait()
		}
		if err != nil {
			t.Fatalf("%v: %s", err, &out)
		}
	}
	var got []string
	round := 0
	now := func(context.Context) (measure.Network, error) {
		round++
		here := net
		switch round {
		case 2:
			mtu("1400")
		case 4:
			mtu("1500")
		case 3, 5: // node8 is away
			here.Nodes, here.Host, here.Pod = here.Nodes[:7], here.Host[:7], here.Pod[:7]
		}
		return here, nil
	}
	err = Run(t.Context(), now, Options{
		Every: 5 * time.Second, Seed: 1, Rounds: 6, Metrics: NewMetrics(), Log: func(text string) { t.Log(text) },
		Event: func(e Event) {
			t.Logf("round %d: %s", round, e)
			if e.Place.Metric == mesh.MTU {
				got = append(got, fmt.Sprintf("%d %s %s %s", round, e.Change, e.Place.Node(), e.Place.Path))
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"2 slow node3 host", "5 recovered node3 host"}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
