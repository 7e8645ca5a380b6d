package run

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
)

// A survey gives the rest of the plan: the baseline on every underlay, slices where there is
// room beside it, and the steps that a contender lacks.
func TestPlanOfSurvey(t *testing.T) {
	catalogue, err := LoadCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	survey := func(maxUp int) *Survey {
		return &Survey{Arena: "lab", MaxUp: maxUp, Lead: 20 * time.Millisecond, Slice: 50 * time.Millisecond, Contenders: map[string]Surveyed{
			"host": {Underlay: "switch"}, "macvlan": {Underlay: "switch", Missing: map[string]*arena.Unsupported{arena.PathService: {Reason: "has none"}}},
			"flannel-aws-vpc": {Underlay: "vpc"}, "cilium": {Unsupported: &arena.Unsupported{Reason: "no rights", Denied: true}},
		}}
	}
	sliced := func(change func(*result.Plan)) result.Plan {
		p := result.Plan{
			Rounds: analysis.RoundsForContenders(3), Duration: 0.5, Warmup: 0.05, Slice: 0.05, Lead: 0.02, Together: 4,
			Contenders: []result.Entry{{ID: "host", Underlay: "switch"}, {ID: "host", Underlay: "vpc"}, {ID: "macvlan", Underlay: "switch"}, {ID: "flannel-aws-vpc", Underlay: "vpc"}},
		}
		change(&p)
		return p
	}
	alone := func(p *result.Plan) {
		p.Slice, p.Lead, p.Together, p.Duration, p.Warmup = 0, 0, 0, 1, 0.3
	}
	for name, c := range map[string]struct {
		maxUp int
		steps []result.Step
		given string
		want  func(*result.Plan)
	}{
		"room for all":        {9, nil, "", func(*result.Plan) {}},
		"in blocks":           {3, nil, "", func(p *result.Plan) { p.Together = 3 }},
		"no room":             {2, nil, "", alone},
		"an idle step":        {9, []result.Step{{ID: "i", Workload: analysis.Idle, Path: arena.PathPod}}, "", alone},
		"the user's slice":    {9, nil, "slice", func(p *result.Plan) { p.Slice = 0.2 }},
		"the user's duration": {2, nil, "duration", func(p *result.Plan) { alone(p); p.Duration = 0.5 }},
		"a path that is lacked": {9, []result.Step{{ID: "s", Workload: "tcp_rr", Path: arena.PathService}}, "", func(p *result.Plan) {
			p.Gaps = []result.Gap{{Contender: "macvlan", Step: "s"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			j := &Job{request: &Request{Arena: Lab, Given: map[string]bool{c.given: true}}, Venue: &labVenue{}, Catalogue: catalogue, named: true}
			for _, id := range []string{"macvlan", "flannel-aws-vpc", "cilium"} {
				x, err := contender.Find(catalogue.Contenders, id)
				if err != nil {
					t.Fatal(err)
				}
				j.candidates = append(j.candidates, x)
			}
			j.Record = result.Run{Baseline: "host", Plan: result.Plan{Duration: 0.5, Warmup: 0.05, Slice: 0.2, Steps: c.steps}}
			if err := j.complete(survey(c.maxUp), nil); err != nil {
				t.Fatal(err)
			}
			want := sliced(c.want)
			want.Steps = c.steps
			if diff := cmp.Diff(want, j.Record.Plan); diff != "" {
				t.Error(diff)
			}
			if got := j.Record.Unsupported; len(got) != 1+len(want.Gaps) || got[0].Contender != "cilium" || got[0].Reason != "no rights" {
				t.Errorf("unsupported %+v", got)
			}
		})
	}
}
