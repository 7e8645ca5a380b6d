package analysis

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/result"
)

func TestMerge(t *testing.T) {
	whole := &Report{
		Results:  []Result{{Contender: "host", Kernel: "6.18"}, {Contender: "vxlan", Kernel: "6.18"}},
		Findings: []Finding{{Code: "a", Text: "one"}},
		Unsupported: []result.Unsupported{
			{Contender: "wg", Reason: "no wireguard", OtherKernel: true},
			{Contender: "netkit", Reason: "old", OtherKernel: true},
			{Contender: "vpp", Reason: "not in the lab"},
		},
		Contenders: []result.ContenderInfo{{ID: "host"}, {ID: "vxlan"}},
		Measured:   map[result.Key]bool{{Contender: "vxlan", Step: "dts"}: true},
	}
	part := &Report{
		Run:         RunInfo{Arena: "microvm", Environment: result.Environment{EmulatedKey: "true"}},
		Results:     []Result{{Contender: "host", Kernel: "6.1"}, {Contender: "wg", Kernel: "6.1"}},
		Findings:    []Finding{{Code: "b", Text: "two"}},
		Unsupported: []result.Unsupported{{Contender: "netkit", Reason: "6.1 is too old"}},
		Contenders:  []result.ContenderInfo{{ID: "host"}, {ID: "wg"}},
		Measured:    map[result.Key]bool{{Contender: "wg", Step: "dts"}: true},
	}
	got := Merge(whole, part, "microvm")
	want := &Report{
		Results: append(append([]Result{}, whole.Results...),
			Result{Part: "microvm", Contender: "host", Kernel: "6.1"}, Result{Part: "microvm", Contender: "wg", Kernel: "6.1"}),
		Findings: []Finding{
			{Code: "a", Text: "one"}, {Code: "b", Text: "microvm, kernel 6.1: two", Part: "microvm"},
		},
		Unsupported: []result.Unsupported{{Contender: "vpp", Reason: "not in the lab"}, {Contender: "netkit", Reason: "6.1 is too old"}},
		Contenders:  []result.ContenderInfo{{ID: "host"}, {ID: "vxlan"}, {ID: "wg"}},
		Measured:    whole.Measured,
		Parts: []Part{{
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
	ranked := func(contender string) []Choice { return []Choice{{Contender: contender}} }
	whole := &Recommendation{
		Kernel: "6.18", Ranked: ranked("vxlan"),
		Lost:    []Loss{{"romana", Active, "no longer maintained", "catalogue"}},
		Unknown: []Loss{{"wg", "", "kernel lacks wireguard", "measured"}, {"ipip", "", "kernel lacks ipip", "measured"}, {"vpp", "", "not in the lab", "measured"}},
	}
	part := &Recommendation{
		Kernel: "6.18", Emulated: true, Ranked: ranked("wg"),
		Lost:    []Loss{{"romana", Active, "no longer maintained", "catalogue"}, {"netkit", "encryption", "a check found it plain", "check"}},
		Unknown: []Loss{{"vxlan", "", notHere, "measured"}, {"vpp", "", notHere, "measured"}, {"ipip", "", "no goodput at dts", "measured"}},
	}
	apart := Recommendation{Part: "microvm", Kernel: "6.18", Emulated: true, Ranked: ranked("wg"), Lost: []Loss{}, Unknown: []Loss{}}
	want := &Recommendation{
		Kernel: "6.18", Ranked: ranked("vxlan"),
		Lost:    []Loss{whole.Lost[0], part.Lost[1]},
		Unknown: []Loss{whole.Unknown[2], part.Unknown[2]},
		Apart:   []Recommendation{apart},
	}
	same := cmp.AllowUnexported(Choice{})
	if diff := cmp.Diff(want, MergeRecommendation(whole, part, "microvm", plan), same); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	apart.Lost, apart.Unknown, apart.Apart = part.Lost, part.Unknown, []Recommendation{}
	if diff := cmp.Diff(&apart, MergeRecommendation(nil, part, "microvm", plan), same); diff != "" {
		t.Errorf("of the part alone (-want +got):\n%s", diff)
	}
	none := MergeRecommendation(whole, nil, "microvm", plan).Unknown
	if none[0].Reason == whole.Unknown[0].Reason || none[2] != whole.Unknown[2] {
		t.Errorf("a part without figures leaves unknown: %v", none)
	}
	if MergeRecommendation(nil, nil, "microvm", plan) != nil {
		t.Error("neither gives one")
	}
}
