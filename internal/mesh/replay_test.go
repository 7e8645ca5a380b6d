package mesh

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// replayed measures the plan in the world: both passes as figures.
func (w *world) replayed(p *Plan) []Figure {
	figures := append(w.light(Pod, p.Probes), w.bandwidth(Pod, p.Bursts())...)
	_, trials := p.Suspects(figures)
	for i, t := range trials {
		for _, pair := range append([]Pair{t.Test}, t.Controls...) {
			figures = append(figures, Figure{Pair: pair, Path: t.Path, Trial: i + 1, Probes: p.Probes, Values: map[Metric]float64{t.Metric: w.measure(pair, t.Metric, p.Probes)}})
		}
	}
	return figures
}

// TestReplay: the report depends on the figures and not on their order, so that a resumed mesh
// and a report of its run directory say the same.
func TestReplay(t *testing.T) {
	w := newWorld(8, 2, 3)
	w.in[3], w.lossLink[Pair{0, 7}] = 0.5, 0.05
	p := DefaultPlan(w.nodes)
	p.Matchings, p.Seed = 0, 1
	figures := w.replayed(&p)
	r := p.Report(figures)
	if got := names(r.Slow); !cmp.Equal(got, []string{"link pod loss node-0>node-7", "receiver pod goodput >node-3"}) {
		t.Errorf("got %v", got)
	}
	for range 5 {
		mixed := slices.Clone(figures)
		w.rng.Shuffle(len(mixed), func(a, b int) { mixed[a], mixed[b] = mixed[b], mixed[a] })
		if diff := cmp.Diff(r, p.Report(mixed)); diff != "" {
			t.Fatal(diff)
		}
	}
	// A node that ended is said to be gone and is blamed for nothing.
	r = p.Report(append(figures, Figure{Pair: Pair{3, 3}, Gone: true}))
	if !cmp.Equal(r.Gone, []string{"node-3"}) || slices.ContainsFunc(r.Slow, func(p Place) bool { return p.To == "node-3" }) {
		t.Errorf("gone %v, slow %v", r.Gone, names(r.Slow))
	}
}

func TestLightIsRegular(t *testing.T) {
	w := newWorld(1000, 20, 1)
	p := DefaultPlan(w.nodes)
	from := make([]int, 1000)
	for node, to := range p.Light() {
		if len(to) != lightPartners {
			t.Fatalf("node %d probes %d others", node, len(to))
		}
		for _, n := range to {
			from[n]++
		}
	}
	if slices.Min(from) != lightPartners || slices.Max(from) != lightPartners {
		t.Errorf("nodes are probed by %d to %d others", slices.Min(from), slices.Max(from))
	}
	few := DefaultPlan(w.nodes[:5])
	if got := few.Light(); len(got[0]) != 4 {
		t.Errorf("of 5 nodes one probes %d others", len(got[0]))
	}
}

func TestWithin(t *testing.T) {
	w := newWorld(250, 20, 1)
	p := DefaultPlan(w.nodes)
	p.Matchings = 0
	fit := p.Within(5 * time.Minute)
	if c := fit.Cost(); 1.5*(c.Seconds+c.LightSeconds) > 300 || fit.Matchings < 4 || fit.Partners < 4 {
		t.Errorf("%+v: %+v", fit.Matchings, c)
	}
	if minimum := p.Within(time.Second); minimum.Matchings != 4 || minimum.Partners != 4 {
		t.Errorf("within a second: %d matchings, %d partners", minimum.Matchings, minimum.Partners)
	}
	if text := p.String(); !strings.Contains(text, "250 nodes") || !strings.Contains(text, "Between two zones") {
		t.Errorf("got %s", text)
	}
}

func TestRamp(t *testing.T) {
	calm, again, dropped := Strain{}, Strain{Again: 0.05}, Strain{Dropped: true}
	tests := []struct {
		name  string
		slots [][]Strain
		held  int
		size  int
	}{
		{"calm", [][]Strain{{calm}, {calm, calm}, {calm, calm, calm, calm}}, 0, 8},
		{"one bad link", [][]Strain{{calm}, {calm, calm}, {calm, again, calm, calm}, {calm, calm, again, calm, calm, calm, calm, calm}}, 0, 10},
		{"sent again once", [][]Strain{{calm}, {calm, calm}, {again, again, again, calm}}, 0, 4},
		{"sent again", [][]Strain{{calm}, {calm, calm}, {again, again, again, calm}, {again, again, again, again}}, 2, 2},
		{"dropped", [][]Strain{{calm}, {calm, calm}, {dropped, dropped, dropped, calm}, {dropped, dropped, dropped, dropped}}, 2, 2},
		{"alone, too", [][]Strain{{again}, {again, again}, {again, again, again, again}}, 0, 8},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := NewRamp(10)
			for _, s := range tt.slots {
				r.Saw(s)
			}
			if r.Held() != tt.held || r.size != tt.size {
				t.Errorf("held at %d, size %d; want %d and %d", r.Held(), r.size, tt.held, tt.size)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	mesh := func(seed uint64, change func(w *world)) *Report {
		w := newWorld(8, 2, seed)
		change(w)
		p := DefaultPlan(w.nodes)
		p.Matchings, p.Seed = 0, seed
		return p.Report(w.replayed(&p))
	}
	sound := mesh(1, func(*world) {})
	bad := mesh(2, func(w *world) { w.in[3] = 0.5 })
	worse := mesh(3, func(w *world) { w.in[3] = 0.2 })
	where := []string{"receiver pod goodput >node-3"}
	for _, tt := range []struct {
		name          string
		before, after *Report
		worse, better []string
	}{
		{"the same", bad, bad, []string{}, []string{}},
		{"new", sound, bad, where, []string{}},
		{"mended", bad, sound, []string{}, where},
		{"worse", bad, worse, where, []string{}},
	} {
		c := Compare(tt.before, tt.after)
		if !cmp.Equal(names(c.Worse), tt.worse) || !cmp.Equal(names(c.Better), tt.better) || len(c.Levels) != 4 {
			t.Errorf("%s: worse %v, better %v, levels %v", tt.name, names(c.Worse), names(c.Better), c.Levels)
		}
		if c.String() == "" {
			t.Error("no text")
		}
	}
	sound.Gone = []string{"node-3"}
	if c := Compare(sound, bad); len(c.Worse) > 0 || !cmp.Equal(c.Joined, []string{"node-3"}) {
		t.Errorf("a node that came back: %v, joined %v", names(c.Worse), c.Joined)
	}
}
