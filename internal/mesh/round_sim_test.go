package mesh

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// roundFigures measures a round in the world: light probes on the pods' network, and what is
// measured again. Nodes are disturbed now and then, for a part of a round only, as a machine is
// whose CPUs are busy: their round trips are several times the usual, and some probes are lost.
func (w *world) roundFigures(p *Plan, disturbed float64) []Figure {
	disturb := func(f *Figure) {
		if v, ok := f.Values[RTT]; ok {
			// Heavy tails: one figure in a hundred is far off.
			v *= math.Exp(0.1 * w.rng.NormFloat64() / math.Sqrt(w.rng.Float64()+0.01))
			f.Values[RTT] = v
		}
	}
	var figures []Figure
	for from, to := range p.Light() {
		for _, n := range to {
			pair := Pair{from, n}
			f := Figure{Pair: pair, Path: Pod, Probes: p.Probes, Values: map[Metric]float64{}}
			for _, m := range []Metric{RTT, Loss, MTU} {
				f.Values[m] = w.measure(pair, m, p.Probes)
			}
			disturb(&f)
			figures = append(figures, f)
		}
	}
	bad := map[int]bool{}
	for n := range w.nodes {
		bad[n] = w.rng.Float64() < disturbed
	}
	for i := range figures {
		if f := &figures[i]; bad[f.From] || bad[f.To] {
			f.Values[RTT] *= 2 + 3*w.rng.Float64()
			f.Values[Loss] = min(1, f.Values[Loss]+0.01*w.rng.Float64())
		}
	}
	_, trials := p.Suspects(figures)
	probes, _ := p.Again()
	for i, t := range trials {
		for _, pair := range append([]Pair{t.Test}, t.Controls...) {
			f := Figure{Pair: pair, Path: t.Path, Trial: i + 1, Probes: probes, Values: map[Metric]float64{t.Metric: w.measure(pair, t.Metric, probes)}}
			disturb(&f)
			figures = append(figures, f)
		}
	}
	return figures
}

// TestFalseAlarms: a sound cluster of 100 nodes gets a false alarm a week at most.
func TestFalseAlarms(t *testing.T) { falseAlarms(t, 30) }

func TestFalseAlarmsOfAWeek(t *testing.T) {
	needs.Slow(t, "simulates a week of watching")
	falseAlarms(t, 7*24*12)
}

func falseAlarms(t *testing.T, rounds int) {
	const every = 5 * time.Minute
	w := newWorld(100, 4, 7)
	alarms, suspects, again := 0, 0, 0
	for round := range rounds {
		p := RoundPlan(w.nodes, every, uint64(round))
		r := p.Report(w.roundFigures(&p, 0.01))
		suspects, again = suspects+r.Suspects, again+r.Judged
		for _, place := range r.Slow {
			t.Logf("round %d: %s", round, place.Text())
			alarms++
		}
	}
	weeks := float64(rounds) * float64(every) / float64(FalseAlarmsIn)
	t.Logf("%d alarms in %d rounds (%.2f weeks); %d suspects, %d measured again", alarms, rounds, weeks, suspects, again)
	// With one a week, more than this many are seen in one of 10,000 such tests.
	if limit := int(weeks + 3.7*math.Sqrt(weeks) + 3); alarms > limit {
		t.Errorf("%d alarms in %.2f weeks of a sound cluster", alarms, weeks)
	}
}

// TestAlarms: a place that turned slow is named in the first round that measures it.
func TestAlarms(t *testing.T) {
	for _, tt := range []struct {
		name  string
		plant func(w *world)
		want  []string
	}{
		{"lossy receiver", func(w *world) { w.lossIn[6] = 0.01 }, []string{"receiver pod loss >node-6"}},
		{"lossy sender", func(w *world) { w.lossOut[6] = 0.01 }, []string{"sender pod loss node-6>"}},
		{"small MTU", func(w *world) { w.mtuOut[1] = 1350 }, []string{"sender pod mtu node-1>"}},
		{"far zones", func(w *world) { w.borderRTT[[2]string{"zone-0", "zone-1"}] = 0.02 }, []string{"zone pod rtt_p50 zone-0>zone-1"}},
	} {
		found := 0
		for seed := range uint64(10) {
			w := newWorld(100, 4, seed)
			tt.plant(w)
			p := RoundPlan(w.nodes, 5*time.Minute, seed)
			if got := names(p.Report(w.roundFigures(&p, 0)).Slow); slices.Equal(got, tt.want) {
				found++
			} else {
				t.Logf("%s, seed %d: %v", tt.name, seed, got)
			}
		}
		if found < 9 {
			t.Errorf("%s: named right and alone in %d of 10 rounds", tt.name, found)
		}
	}
}
