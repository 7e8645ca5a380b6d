package watch

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/cnibench/cnibench/internal/mesh"
)

// rounds are rounds of a small cluster whose figures are made up.
type rounds struct {
	t     *testing.T
	state State
	m     *Metrics
	at    time.Time
	seed  uint64
}

// round measures the nodes; what value returns counts, by sender and receiver. It returns the
// events in short.
func (w *rounds) round(names []string, value func(from, to string, f *mesh.Figure)) []string {
	var nodes []mesh.Node
	for i, name := range names {
		nodes = append(nodes, mesh.Node{Name: name, Zone: fmt.Sprintf("z%d", i%2)})
	}
	w.seed++
	plan := mesh.RoundPlan(nodes, 5*time.Minute, w.seed)
	plan.Round.Open = w.state.Open()
	measure := func(p mesh.Pair, trial int) mesh.Figure {
		f := mesh.Figure{Pair: p, Path: mesh.Pod, Probes: 300, Trial: trial, Values: map[mesh.Metric]float64{
			mesh.RTT: 100e-6 * (1 + 0.01*float64((p.From*7+p.To*3+trial)%5)), mesh.Loss: 0, mesh.MTU: 1450,
		}}
		value(nodes[p.From].Name, nodes[p.To].Name, &f)
		return f
	}
	var figures []mesh.Figure
	for from := range nodes {
		for to := range nodes {
			if from != to {
				figures = append(figures, measure(mesh.Pair{From: from, To: to}, 0))
			}
		}
	}
	_, trials := plan.Suspects(figures)
	for i, t := range trials {
		for _, p := range append([]mesh.Pair{t.Test}, t.Controls...) {
			figures = append(figures, measure(p, i+1))
		}
	}
	r := plan.Report(figures)
	w.at = w.at.Add(5 * time.Minute)
	events := w.state.Update(&plan, figures, r, w.at)
	w.m.Saw(nodes, figures)
	w.m.Ended(&plan, figures, r, w.state.Open(), events)
	short := []string{}
	for _, e := range events {
		short = append(short, fmt.Sprintf("%s %s %s>%s %s", e.Change, e.Place.Kind, e.Place.From, e.Place.To, e.Place.Metric))
		w.t.Log(e.String())
	}
	return short
}

var eight = strings.Fields("a b c d e f g h")

func sound(string, string, *mesh.Figure) {}

func lossy(node string) func(string, string, *mesh.Figure) {
	return func(from, _ string, f *mesh.Figure) {
		if from == node {
			f.Values[mesh.Loss] = 0.05
		}
	}
}

// TestTurns: a place turns slow once and recovers once, after two sound rounds.
func TestTurns(t *testing.T) {
	w := &rounds{t: t, m: NewMetrics(), at: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)}
	for i, tt := range []struct {
		nodes []string
		value func(string, string, *mesh.Figure)
		want  []string
	}{
		{eight, sound, []string{}},
		{eight, lossy("c"), []string{"slow sender c> loss"}},
		{eight, lossy("c"), []string{}},
		{eight, sound, []string{}},
		{eight, lossy("c"), []string{}}, // it flaps: no news
		{eight, sound, []string{}},
		{eight, sound, []string{"recovered sender c> loss"}},
		{eight[:7], sound, []string{}},                // h leaves
		{append(eight[:7:7], "x"), sound, []string{}}, // x joins
		{eight, lossy("h"), []string{"slow sender h> loss"}},
		{eight[:7], sound, []string{"left sender h> loss"}}, // a slow node is taken away
		{eight, sound, []string{}},
	} {
		if got := w.round(tt.nodes, tt.value); !cmp.Equal(got, tt.want) {
			t.Fatalf("round %d: got %v, want %v", i+1, got, tt.want)
		}
	}
}

// TestLateAndAway: whose prober was late, and who was not measured, stays what it is.
func TestLateAndAway(t *testing.T) {
	w := &rounds{t: t, m: NewMetrics()}
	w.round(eight, lossy("c"))
	late := func(from, _ string, f *mesh.Figure) { f.Late = from == "c" }
	for range 4 {
		if got := w.round(eight, late); len(got) > 0 {
			t.Fatalf("a late prober: %v", got)
		}
	}
	if len(w.state.Open()) != 1 {
		t.Errorf("open: %v", w.state.Open())
	}
	if !slices.Contains(w.round(eight, sound), "x") && len(w.round(eight, sound)) != 1 {
		t.Error("it does not recover")
	}
}

// TestHostExplainsPod: what the nodes' own network has is one alarm.
func TestHostExplainsPod(t *testing.T) {
	s := State{places: []*place{{Place: mesh.Place{Kind: mesh.Sender, From: "c", Path: mesh.Host, Metric: mesh.Loss}}}}
	plan := mesh.RoundPlan([]mesh.Node{{Name: "c"}, {Name: "d"}}, time.Minute, 1)
	pod := mesh.Place{Kind: mesh.Sender, From: "c", Path: mesh.Pod, Metric: mesh.Loss}
	if got := s.Update(&plan, nil, &mesh.Report{Slow: []mesh.Place{pod}}, time.Time{}); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// TestMetrics: the text is OpenMetrics, and its size does not grow with the number of pairs.
func TestMetrics(t *testing.T) {
	count := func(nodes int) (series map[string]int) {
		w := &rounds{t: t, m: NewMetrics()}
		var names []string
		for i := range nodes {
			names = append(names, fmt.Sprintf("n%d", i))
		}
		w.round(names, lossy("n1"))
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
		got := httptest.NewRecorder()
		w.m.ServeHTTP(got, r)
		p := textparse.NewOpenMetricsParser(got.Body.Bytes(), labels.NewSymbolTable())
		series = map[string]int{}
		for {
			entry, err := p.Next()
			if err != nil {
				if err.Error() != "EOF" {
					t.Fatalf("%v\n%s", err, got.Body)
				}
				return series
			}
			if entry == textparse.EntrySeries {
				var l labels.Labels
				p.Labels(&l)
				series[l.Get("__name__")]++
				series["all"]++
			}
		}
	}
	small, large := count(20), count(40)
	if small["cnibench_mesh_slow"] != 1 || small["cnibench_mesh_worst_rtt_seconds"] != worst {
		t.Errorf("%v", small)
	}
	if per := float64(large["all"]-small["all"]) / 20; per > 40 || small["all"] > 1200 {
		t.Errorf("%d series of 20 nodes, %.0f more for each further one", small["all"], per)
	} else {
		t.Logf("%d series of 20 nodes, %.1f more for each further one on one network", small["all"], per)
	}
}
