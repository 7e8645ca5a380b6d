package assemble_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/assemble"
	"github.com/cnibench/cnibench/internal/result"
)

func TestMerge(t *testing.T) {
	whole := &analysis.Report{
		Results:  []analysis.Result{{Contender: "host", Kernel: "6.18"}, {Contender: "vxlan", Kernel: "6.18"}},
		Findings: []analysis.Finding{{Code: "a", Text: "one"}},
		Unsupported: []result.Unsupported{
			{Contender: "wg", Reason: "no wireguard", OtherKernel: true},
			{Contender: "netkit", Reason: "old", OtherKernel: true},
			{Contender: "vpp", Reason: "not in the lab"},
		},
		Contenders: []result.ContenderInfo{{ID: "host"}, {ID: "vxlan"}},
		Measured:   map[result.Key]bool{{Contender: "vxlan", Step: "dts"}: true},
	}
	part := &analysis.Report{
		Run:         analysis.RunInfo{Arena: "microvm", Environment: result.Environment{result.EmulatedKey: "true"}},
		Results:     []analysis.Result{{Contender: "host", Kernel: "6.1"}, {Contender: "wg", Kernel: "6.1"}},
		Findings:    []analysis.Finding{{Code: "b", Text: "two"}},
		Unsupported: []result.Unsupported{{Contender: "netkit", Reason: "6.1 is too old"}},
		Contenders:  []result.ContenderInfo{{ID: "host"}, {ID: "wg"}},
		Measured:    map[result.Key]bool{{Contender: "wg", Step: "dts"}: true},
	}
	got := assemble.Merge(whole, part, "microvm")
	want := &analysis.Report{
		Results: append(append([]analysis.Result{}, whole.Results...),
			analysis.Result{Part: "microvm", Contender: "host", Kernel: "6.1"}, analysis.Result{Part: "microvm", Contender: "wg", Kernel: "6.1"}),
		Findings: []analysis.Finding{
			{Code: "a", Text: "one"}, {Code: "b", Text: "microvm, kernel 6.1: two", Part: "microvm"},
		},
		Unsupported: []result.Unsupported{{Contender: "vpp", Reason: "not in the lab"}, {Contender: "netkit", Reason: "6.1 is too old"}},
		Contenders:  []result.ContenderInfo{{ID: "host"}, {ID: "vxlan"}, {ID: "wg"}},
		Measured:    whole.Measured,
		Parts: []analysis.Part{{
			Dir: "microvm", Arena: "microvm", Kernels: []string{"6.1"}, Emulated: true, Environment: part.Run.Environment,
			Plan: part.Plan, Measured: part.Measured,
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	if len(whole.Results) != 2 || part.Results[0].Part != "" || whole.Findings[0].Text != "one" || part.Findings[0].Text != "two" {
		t.Error("Merge changed what it was given")
	}
}

// TestMergeRecommendation: what the part measured stands apart and is not
// called unknown.
func TestMergeRecommendation(t *testing.T) {
	plan := &result.Plan{Contenders: []result.Entry{{ID: "host"}, {ID: "wg"}, {ID: "netkit"}, {ID: "ipip"}}}
	ranked := func(contender string) []analysis.Choice { return []analysis.Choice{{Contender: contender}} }
	whole := &analysis.Recommendation{
		Kernel: "6.18", Ranked: ranked("vxlan"),
		Lost:    []analysis.Loss{{Contender: "romana", Need: analysis.Active, Reason: "no longer maintained", Source: "catalogue"}},
		Unknown: []analysis.Loss{{Contender: "wg", Need: "", Reason: "kernel lacks wireguard", Source: "measured"}, {Contender: "ipip", Need: "", Reason: "kernel lacks ipip", Source: "measured"}, {Contender: "vpp", Need: "", Reason: "not in the lab", Source: "measured"}},
	}
	part := &analysis.Recommendation{
		Kernel: "6.18", Emulated: true, Ranked: ranked("wg"),
		Lost:    []analysis.Loss{{Contender: "romana", Need: analysis.Active, Reason: "no longer maintained", Source: "catalogue"}, {Contender: "netkit", Need: "encryption", Reason: "a check found it plain", Source: "check"}},
		Unknown: []analysis.Loss{{Contender: "vxlan", Need: "", Reason: "not in this run", Source: "measured"}, {Contender: "vpp", Need: "", Reason: "not in this run", Source: "measured"}, {Contender: "ipip", Need: "", Reason: "no goodput at dts", Source: "measured"}},
	}
	apart := analysis.Recommendation{Part: "microvm", Kernel: "6.18", Emulated: true, Ranked: ranked("wg"), Lost: []analysis.Loss{}, Unknown: []analysis.Loss{}}
	want := &analysis.Recommendation{
		Kernel: "6.18", Ranked: ranked("vxlan"),
		Lost:    []analysis.Loss{whole.Lost[0], part.Lost[1]},
		Unknown: []analysis.Loss{whole.Unknown[2], part.Unknown[2]},
		Apart:   []analysis.Recommendation{apart},
	}
	same := cmp.AllowUnexported(analysis.Choice{})
	if diff := cmp.Diff(want, assemble.MergeRecommendation(whole, part, "microvm", plan), same); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	apart.Lost, apart.Unknown, apart.Apart = part.Lost, part.Unknown, []analysis.Recommendation{}
	if diff := cmp.Diff(&apart, assemble.MergeRecommendation(nil, part, "microvm", plan), same); diff != "" {
		t.Errorf("of the part alone (-want +got):\n%s", diff)
	}
	none := assemble.MergeRecommendation(whole, nil, "microvm", plan).Unknown
	if none[0].Reason == whole.Unknown[0].Reason || none[2] != whole.Unknown[2] {
		t.Errorf("a part without figures leaves unknown: %v", none)
	}
	if assemble.MergeRecommendation(nil, nil, "microvm", plan) != nil {
		t.Error("neither gives one")
	}
}

// What the part measured joins the advice of its scenario.
func TestMergeAdvice(t *testing.T) {
	of := func(r *analysis.Recommendation) *analysis.Report {
		return &analysis.Report{Advice: []analysis.Advice{{Scenario: "x", Chief: []string{"cpu"}, Recommendation: r}}}
	}
	part := of(&analysis.Recommendation{Ranked: []analysis.Choice{{Contender: "wg"}}})
	got := assemble.Merge(of(nil), part, "microvm").Advice
	if len(got) != 1 || !got[0].Measured() || got[0].Recommendation.Part != "microvm" {
		t.Errorf("%+v", got)
	}
	if got := assemble.Merge(part, of(nil), "microvm").Advice; len(got) != 1 || !got[0].Measured() {
		t.Errorf("%+v", got)
	}
}
