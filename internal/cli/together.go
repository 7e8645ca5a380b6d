package cli

import (
	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/otherruns"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
)

// This file takes several runs of one kind together: each tells what another would give.

// runsOf returns the runs of the folders, in their order.
func runsOf(folders []string) (dirs []string) {
	for _, folder := range folders {
		dirs = append(dirs, result.Runs(folder)...)
	}
	return dirs
}

// together returns the first of several reports of one kind, with what the others say of a
// further run. Runs of a folder may be of different kinds: then each stands for itself.
func together(args []string, shown []report.Run, records []*result.Record) ([]report.Run, error) {
	var others []*analysis.Report
	for i := range shown[1:] {
		if what := otherruns.Unlike(shown[0].Report, shown[i+1].Report); what != "" && len(args) > 1 {
			return nil, exit.Usage("%s and %s: %s differ; give runs of one kind, each once", shown[0].Dir, shown[i+1].Dir, what)
		} else if what != "" {
			return shown, nil
		}
		others = append(others, shown[i+1].Report)
	}
	if len(others) > 0 {
		report.Elsewhere(records[0], shown[0].Report, others)
	}
	return shown[:1], nil
}

// chooseTogether returns the choice of the first of several runs of one kind, with what the
// others would choose.
func chooseTogether(args []string, list []*analysis.Recommendation, records []*result.Record) ([]*analysis.Recommendation, error) {
	one := func(rec *result.Record) *analysis.Report {
		return &analysis.Report{Run: analysis.RunInfo{ID: rec.Run.ID, Started: rec.Run.Started, Arena: rec.Run.Arena, Suite: rec.Run.Plan.Suite, Environment: rec.Run.Environment}, Baseline: rec.Run.Baseline, Plan: rec.Run.Plan}
	}
	for i := range list[1:] {
		if what := otherruns.Unlike(one(records[0]), one(records[i+1])); what != "" && len(args) > 1 {
			return nil, exit.Usage("%s and %s: %s differ; give runs of one kind, each once", list[0].Run, list[i+1].Run, what)
		} else if what != "" {
			for k := range list {
				report.ChoiceElsewhere(records[k], list[k], nil)
			}
			return list, nil
		}
	}
	report.ChoiceElsewhere(records[0], list[0], list[1:])
	return list[:1], nil
}
