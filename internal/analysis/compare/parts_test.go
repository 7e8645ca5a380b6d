package compare_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis/compare"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/analysistest"
)

// inGuest is a run as a part of another.
func inGuest(rec *result.Record) *result.Record {
	rec.Run.Arena, rec.Run.Environment = "microvm", result.Environment{"kernel.release": "6.12", result.EmulatedKey: "true"}
	return rec
}

// TestCompareParts: a part is compared with its own kind, under one correction,
// and fails the gate as the rest does.
func TestCompareParts(t *testing.T) {
	whole := func(seed uint64) *result.Record { return analysistest.Noisy(seed, 7, 1, 1, 0.005) }
	part := func(seed uint64, slow float64) *result.Record {
		return inGuest(analysistest.Noisy(seed, 7, slow, 0.01, 0.005))
	}
	opt := func(old, now *result.Record) compare.Options {
		return compare.Options{FailOn: analysistest.Share(0.05), Parts: []compare.PartPair{{Dir: "microvm", Old: old, New: now}}}
	}
	alone := compared(t, whole(1), whole(2), compare.Options{FailOn: analysistest.Share(0.05)})
	if !*alone.Passed || len(alone.Old.Parts) != 0 {
		t.Fatalf("without parts: passed %v, parts %v", *alone.Passed, alone.Old.Parts)
	}

	like := compared(t, whole(1), whole(2), opt(part(3, 1), part(4, 1)))
	if !*like.Passed || len(like.Changes) != 2*len(alone.Changes) {
		t.Errorf("like parts: passed %v with %d changes, want %d", *like.Passed, len(like.Changes), 2*len(alone.Changes))
	}
	if diff := cmp.Diff([]compare.Part{{Dir: "microvm", Arena: "microvm", Emulated: true}}, like.New.Parts); diff != "" {
		t.Error(diff)
	}

	slow := compared(t, whole(1), whole(2), opt(part(3, 1), part(4, 0.8)))
	if *slow.Passed || slow.Changes[0].Part != "microvm" || slow.Changes[0].Contender != "flannel-vxlan" || !slow.Changes[0].Failed {
		t.Errorf("a slower part passed: %v, worst %+v", *slow.Passed, slow.Changes[0])
	}

	other := part(4, 1)
	other.Run.Environment[result.EmulatedKey] = "false"
	want := []compare.Difference{{Key: "microvm.environment." + result.EmulatedKey, Old: "true", New: "false"}}
	if diff := cmp.Diff(want, compared(t, whole(1), whole(2), opt(part(3, 1), other)).Differences); diff != "" {
		t.Error(diff)
	}
}

// TestComparePartOfOne: a part that is gone fails the gate, one that came is
// told, and neither matters where nothing of it is compared.
func TestComparePartOfOne(t *testing.T) {
	part := inGuest(analysistest.Noisy(3, 7, 1, 0.01, 0.005))
	part.Run.Plan.Contenders[3].ID = "guests-own"
	empty := inGuest(analysistest.Noisy(4, 7, 1, 1, 0))
	empty.Run.Plan.Contenders, empty.Samples = nil, nil
	for name, c := range map[string]struct {
		pair       compare.PartPair
		contenders []string
		from       string
		failed     bool
	}{
		"gone":         {compare.PartPair{Dir: "microvm", Old: part}, nil, "new", true},
		"empty":        {compare.PartPair{Dir: "microvm", Old: part, New: empty}, nil, "new", true},
		"came":         {compare.PartPair{Dir: "microvm", New: part}, nil, "old", false},
		"not compared": {compare.PartPair{Dir: "microvm", Old: part}, []string{"flannel-vxlan"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := compared(t, analysistest.Noisy(1, 7, 1, 1, 0.005), analysistest.Noisy(2, 7, 1, 1, 0.005),
				compare.Options{FailOn: analysistest.Share(0.05), Contenders: c.contenders, Parts: []compare.PartPair{c.pair}})
			if *got.Passed == c.failed {
				t.Errorf("passed: %v", *got.Passed)
			}
			if c.from == "" {
				if len(got.Faults) > 0 {
					t.Errorf("faults: %v", got.Faults)
				}
				return
			}
			if len(got.Faults) != 1 || got.Faults[0].From != c.from || got.Faults[0].Failed != c.failed || !strings.Contains(got.Faults[0].Text, "microvm") {
				t.Errorf("faults: %v", got.Faults)
			}
		})
	}
}
