// Package assemble puts the report of a run together from the figures, costs
// and findings. It computes no figure itself. Next: assemble.go.
package assemble

import (
	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/cost"
	"github.com/cnibench/cnibench/internal/analysis/findings"
	"github.com/cnibench/cnibench/internal/result"
)

// Report makes the report of a run. Only valid samples count for figures. Invalid samples,
// and everything else that a reader must know, become findings.
func Report(rec *result.Record, opt analysis.Options) *analysis.Report {
	e := analysis.Collect(rec, opt.Complete(&rec.Run.Plan))
	run := e.Run // its Plan.Rounds is the number of rounds that the run took
	efficiency := cost.Efficiencies(e)
	return &analysis.Report{
		Schema: analysis.ReportSchema,
		Run: analysis.RunInfo{
			ID: run.ID, Arena: run.Arena, Started: run.Started,
			Rounds: run.Plan.Rounds, Suite: run.Plan.Suite, Environment: run.Environment, Unpaired: run.Plan.Unpaired,
		},
		Baseline:    run.Baseline,
		Results:     e.Results,
		Findings:    findings.Of(e),
		Wanted:      e.Wanted(),
		Spreads:     e.Spreads(),
		Unsupported: append([]result.Unsupported{}, run.Unsupported...),
		Contenders:  run.Contenders,
		Steps:       run.Plan.Steps,
		Curves:      analysis.Curves(e.Pools),
		Plan:        run.Plan,
		Tool:        run.Tool,
		Traces:      e.Opt.Traces,
		Measured:    e.Measured,
		Marks:       marks(rec.Samples),
		Efficiency:  efficiency,
		Fleet:       cost.Fleet(e, efficiency),
	}
}

// marks returns the samples' verdicts.
func marks(samples []result.Sample) []analysis.Mark {
	var list []analysis.Mark
	for i := range samples {
		s := &samples[i]
		if s.Step == result.SetupStep {
			continue
		}
		mark := analysis.Mark{Contender: s.Contender, Step: s.Step, Round: s.Round}
		if s.Verdict != result.Valid {
			mark.Dropped = "invalid_sample"
			if len(s.Reasons) > 0 {
				mark.Dropped = s.Reasons[0].Code
			}
		}
		list = append(list, mark)
	}
	return list
}
