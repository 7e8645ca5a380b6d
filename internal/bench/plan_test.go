package bench

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/result"
)

func plan(rounds int, contenders, steps []string) *result.Plan {
	p := &result.Plan{Rounds: rounds, Seed: 7}
	for _, id := range contenders {
		p.Contenders = append(p.Contenders, result.Entry{ID: id, Underlay: "switch"})
	}
	for _, id := range steps {
		p.Steps = append(p.Steps, result.Step{ID: id, Workload: "idle", Path: "pod"})
	}
	return p
}

func TestVisits(t *testing.T) {
	contenders, steps := []string{"host", "a", "b", "c", "d", "e"}, []string{"x", "y", "z"}
	p := plan(5, contenders, steps)
	visits := Visits(p)
	orders := map[string]bool{}
	for round := 1; round <= 5; round++ {
		var seen []string
		for _, v := range visits[(round-1)*6 : round*6] {
			if v.Round != round {
				t.Fatalf("a visit of round %d among those of round %d", v.Round, round)
			}
			seen = append(seen, v.Entry.ID)
			var ids []string
			for _, s := range v.Steps {
				ids = append(ids, s.ID)
			}
			slices.Sort(ids)
			if diff := cmp.Diff(steps, ids); diff != "" {
				t.Errorf("steps of %s: %s", v.Entry.ID, diff)
			}
		}
		orders[fmt.Sprint(seen)] = true
		slices.Sort(seen)
		want := slices.Sorted(slices.Values(contenders))
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("round %d: %s", round, diff)
		}
	}
	if len(orders) < 4 {
		t.Errorf("%d different orders in 5 rounds: not shuffled", len(orders))
	}
	if diff := cmp.Diff(visits, Visits(p)); diff != "" {
		t.Errorf("the same seed gave another order: %s", diff)
	}
	p.Seed++
	if cmp.Equal(visits, Visits(p)) {
		t.Error("another seed gave the same order")
	}
}

// A resumed run does what is left, in the order of the first.
func TestLeft(t *testing.T) {
	visits := Visits(plan(2, []string{"host", "a"}, []string{"x", "y"}))
	sealed := map[result.Key]bool{}
	for _, s := range visits[0].Steps {
		sealed[result.Key{Contender: visits[0].Entry.ID, Underlay: "switch", Step: s.ID, Round: 1}] = true
	}
	half := visits[1]
	sealed[result.Key{Contender: half.Entry.ID, Underlay: "switch", Step: half.Steps[0].ID, Round: 1}] = true
	want := slices.Clone(visits[1:])
	want[0].Steps = half.Steps[1:]
	if diff := cmp.Diff(want, dropSealed(visits, sealed)); diff != "" {
		t.Error(diff)
	}
}
