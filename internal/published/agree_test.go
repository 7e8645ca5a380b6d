package published_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/published"
	"github.com/cnibench/cnibench/internal/result"
)

// orders is a report with the goodput ratios at a step, in that order.
func orders(step string, streams int, contenders []string, ratios []float64) *analysis.Report {
	r := &analysis.Report{Baseline: "host", Run: analysis.RunInfo{Arena: "lab", Environment: result.Environment{"kernel.release": "6.18"}}}
	r.Plan.Settings = map[string]string{"mtu": "9000", "line-rate": "40G"}
	r.Steps = []result.Step{{ID: step, Workload: "tcp_stream", Path: "pod", Params: map[string]any{"streams": streams}}}
	for i, c := range contenders {
		r.Results = append(r.Results, analysis.Result{Contender: c, Step: step, Metric: "goodput", Better: "higher", Kernel: "6.18", VsBaseline: &analysis.Comparison{Ratio: ratios[i]}})
	}
	return r
}

// The study of 2024 has, in Gbit/s at dts: calico-ebpf 25.38, kuberouter 22.72, cilium
// 22.29, antrea 20.75, calico 19.61, canal 16.21, kubeovn 11.08.
var seven = []string{"calico-ebpf", "kuberouter", "cilium", "antrea", "calico", "canal", "kubeovn"}

func TestAttach(t *testing.T) {
	all, err := published.Studies()
	if err != nil {
		t.Fatal(err)
	}
	of, err := published.Select(all, []string{"ducastel-2024"})
	if err != nil {
		t.Fatal(err)
	}
	// Cilium stands fifth here and third there: of 21 pairs, two are turned.
	r := orders("dts", 1, seven, []float64{0.9, 0.8, 0.5, 0.7, 0.6, 0.4, 0.3})
	published.Attach(r, of)
	want := []analysis.Agreement{{
		Study: "ducastel-2024", Table: "Goodput, medians of three runs", Step: "dts", Metric: "goodput", Kernel: "6.18", N: 7, Tau: 17. / 21,
		// Each two of its runs turn two pairs, one and one.
		Among: []float64{17. / 21, 19. / 21, 19. / 21},
	}}
	if len(r.Agreements) == 1 {
		if ci := r.Agreements[0].CI; ci == nil || ci[0] >= 17./21 || ci[1] <= 17./21 || ci[1] > 1 {
			t.Errorf("interval %v", ci)
		}
		r.Agreements[0].CI = nil
	}
	if diff := cmp.Diff(want, r.Agreements); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	differs := map[string]string{}
	for _, d := range r.Differences {
		differs[d.What] = d.Ours
	}
	if diff := cmp.Diff(map[string]string{
		"software": "cnibench ", "kernel": "6.18", "nodes": "network namespaces of one machine",
		"card": "none: virtual links, --offload host, line rate 40G", "policy": "the datapath of each product from the kernel's pieces; no agents",
	}, differs); diff != "" {
		t.Errorf("what differs: -want +got\n%s", diff)
	}

	// From third to last is further than a third of seven.
	r = orders("dts", 1, seven, []float64{0.9, 0.8, 0.2, 0.7, 0.6, 0.4, 0.3})
	published.Attach(r, of)
	out := []analysis.Outlier{{Contender: "cilium", Ours: 0.2, Theirs: 22.29 / 31.92, OurPlace: 7, TheirPlace: 3}}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
	if diff := cmp.Diff(out, r.Agreements[0].Outliers, near); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	// With eight streams nearly all stand at the study's line rate.
	r = orders("dtm", 8, seven, []float64{0.9, 0.8, 0.2, 0.7, 0.6, 0.4, 0.3})
	if published.Attach(r, of); len(r.Agreements) != 0 {
		t.Errorf("an order at line rate: %+v", r.Agreements)
	}
	// Three contenders have no order to speak of.
	r = orders("dts", 1, seven[:3], []float64{0.9, 0.8, 0.2})
	if published.Attach(r, of); len(r.Agreements)+len(r.Differences) != 0 || len(r.Published) == 0 {
		t.Errorf("%+v, %+v", r.Agreements, r.Differences)
	}
}
