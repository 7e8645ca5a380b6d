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
		Results: append(append([]Result{}, whole.Results...), part.Results...),
		Findings: []Finding{
			{Code: "a", Text: "one"}, {Code: "b", Text: "kernel 6.1: two"},
		},
		Unsupported: []result.Unsupported{{Contender: "vpp", Reason: "not in the lab"}, {Contender: "netkit", Reason: "6.1 is too old"}},
		Contenders:  []result.ContenderInfo{{ID: "host"}, {ID: "vxlan"}, {ID: "wg"}},
		Measured:    map[result.Key]bool{{Contender: "vxlan", Step: "dts"}: true, {Contender: "wg", Step: "dts"}: true},
		Parts:       []Part{{Dir: "microvm", Arena: "microvm", Kernels: []string{"6.1"}, Emulated: true, Environment: part.Run.Environment}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	if len(whole.Results) != 2 || whole.Findings[0].Text != "one" || part.Findings[0].Text != "two" {
		t.Error("Merge changed what it was given")
	}
}
