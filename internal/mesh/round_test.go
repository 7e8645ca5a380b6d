package mesh

import (
	"math"
	"strings"
	"testing"
	"time"
)

// TestRoundPlan: what a node sends stays below what is promised, at every size of a cluster, and
// an exact test can reach the level.
func TestRoundPlan(t *testing.T) {
	for _, nodes := range []int{3, 8, 100, 1000} {
		w := newWorld(nodes, 3, 1)
		for _, every := range []time.Duration{5 * time.Second, time.Minute, 5 * time.Minute, 20 * time.Minute} {
			p := RoundPlan(w.nodes, every, 1)
			c, round := p.RoundCost(), p.Round
			visits := float64(min(p.Partners, nodes-1)) * (float64(p.Probes) / p.Rate)
			if visits > every.Seconds() {
				t.Errorf("%d nodes, %v: a round takes %.1f s", nodes, every, visits)
			}
			if every >= time.Minute && c.Rate > 100e3 {
				t.Errorf("%d nodes, %v: %+v", nodes, every, c)
			}
			least := math.Pow(2, 1-float64(partnersOfSuspect*round.Cycles)) * float64(round.Most)
			if least > round.Level {
				t.Errorf("%v: %d cycles reach %g, and the level is %g", every, round.Cycles, least, round.Level)
			}
			if weekly := round.Level * float64(FalseAlarmsIn/every); weekly > 1.001 {
				t.Errorf("%v: %.2f false alarms a week", every, weekly)
			}
		}
	}
	w := newWorld(100, 3, 1)
	p := RoundPlan(w.nodes, 5*time.Minute, 1)
	t.Logf("%s%+v", p.String(), p.RoundCost())
	for _, want := range []string{"100 nodes", "16 others", "48.7 kbit/s", "27 a second"} {
		if !strings.Contains(p.String(), want) {
			t.Errorf("the plan does not say %q", want)
		}
	}
	if len(p.Bursts().Rounds) != 0 {
		t.Error("a round sends bursts unasked")
	}
}

func TestPlaceWithin(t *testing.T) {
	open := Place{Kind: Sender, From: "a", Path: Host, Metric: RTT}
	for _, tt := range []struct {
		place Place
		want  bool
	}{
		{Place{Kind: Sender, From: "a", Path: Host, Metric: RTT}, true},
		{Place{Kind: Receiver, To: "a", Path: Host, Metric: RTT}, true}, // the node's other side
		{Place{Kind: NodeBoth, From: "a", To: "a", Path: Pod, Metric: RTT}, true},
		{Place{Kind: Sender, From: "a", Path: Host, Metric: Loss}, false},
		{Place{Kind: Sender, From: "b", Path: Host, Metric: RTT}, false},
		{Place{Kind: Link, From: "a", To: "b", Path: Host, Metric: RTT}, false},
	} {
		if got := tt.place.Within(open); got != tt.want {
			t.Errorf("%+v: %v", tt.place, got)
		}
	}
	if pod := (Place{Kind: Sender, From: "a", Path: Pod, Metric: RTT}); open.Within(pod) {
		t.Error("a slow pod network does not explain a slow nodes' network")
	}
}
