package recommend

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/analysistest"
)

func TestScenarios(t *testing.T) {
	all, err := Scenarios()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	want := []string{"small-nodes", "encryption", "policies", "large-clusters", "many-services", "tail-latency"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func TestScenarioErrors(t *testing.T) {
	const good = "scenarios: [{name: n, summary: s, needs: [policy], weights: {cpu: 1}, run: --suite quick}]"
	for change, want := range map[string]string{
		"needs: [policy]|needs: [polcy]": `did you mean "policy"`,
		"cpu: 1|cpus: 1":                 `did you mean "cpu"`,
		"cpu: 1|cpu: 0":                  "weight of cpu: want a number above 0",
		"{cpu: 1}|{}":                    "no weights",
		"summary: s|summary: ''":         "name, summary and run",
		"weights: |weighs: ":             `did you mean "weights"`,
	} {
		before, after, _ := strings.Cut(change, "|")
		if _, err := readScenarios([]byte(strings.Replace(good, before, after, 1))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", change, err)
		}
	}
}

// A scenario's weights are those of all criteria, its needs come on top, and what was asked
// for beside replaces its weights.
func TestScenarioWish(t *testing.T) {
	s := Scenario{Needs: []string{"policy"}, Weights: map[string]float64{"memory": 2, "cpu": 1}}
	wish := s.Wish(Wish{Needs: []string{"arm64"}, Weights: []analysis.Weight{{Criterion: "cpu", Weight: 3}}})
	if diff := cmp.Diff([]string{"policy", "arm64"}, wish.Needs); diff != "" {
		t.Error(diff)
	}
	got := map[string]float64{}
	for _, w := range weightsOf(wish.Weights) {
		if w.Weight > 0 {
			got[w.Criterion] = w.Weight
		}
	}
	if diff := cmp.Diff(map[string]float64{"memory": 2, "cpu": 3}, got); diff != "" {
		t.Error(diff)
	}
}

// Each scenario goes by its own figures: one is slower in the tail, another behind Services.
func TestAdvise(t *testing.T) {
	rec := analysistest.Noisy(1, 6, 1, 1, 0)
	rec.Run.Plan.Steps = []result.Step{
		{ID: "load", Workload: "http_rate", Path: "pod"},
		{ID: "few", Workload: "tcp_crr", Path: "service", Services: 1},
		{ID: "many", Workload: "tcp_crr", Path: "service", Services: 1000},
	}
	var samples []result.Sample
	for _, s := range rec.Samples {
		if s.Step != rec.Samples[0].Step {
			continue
		}
		for _, step := range rec.Run.Plan.Steps {
			s := s
			p50, p99 := 90e-6, 300e-6
			switch {
			case step.ID == "load" && s.Contender == "macvlan":
				p99 = 100e-6
			case step.ID == "many" && s.Contender == "calico-noencap":
				p50, p99 = 80e-6, 200e-6
			case step.ID == "few" && s.Contender == "flannel-vxlan":
				p50 = 20e-6
			}
			s.Step, s.Workload, s.Path = step.ID, step.Workload, step.Path
			s.Metrics = map[string]float64{"latency_p50": p50, "latency_p99": p99}
			samples = append(samples, s)
		}
	}
	rec.Samples = samples
	advice, err := Advise(rec, Wish{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, a := range advice {
		switch {
		case !a.Measured():
			got[a.Scenario] = "to measure"
		case len(a.Recommendation.Ranked) == 0:
			got[a.Scenario] = "nobody"
		default:
			got[a.Scenario] = a.Recommendation.Ranked[0].Contender
		}
	}
	want := map[string]string{
		"small-nodes": "to measure", "encryption": "nobody", "policies": "nobody", "large-clusters": "nobody",
		"many-services": "calico-noencap", "tail-latency": "macvlan",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
