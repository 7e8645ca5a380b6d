// Package verify holds the samples of a run directory against its raw files: digests,
// percentiles from the histograms, goodput from iperf3's own JSON. It changes nothing and
// judges no figure. Next: verify.go is all of it.
package verify

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
)

// Report is what was held against what.
type Report struct {
	Ended       bool // run.json has digests
	Imported    bool // the raw files are not those of the samples: an import does not copy them
	Samples     int  // of the run
	Percentiles int  // that were computed again
	Goodputs    int  // that were added up again
	Unchecked   int  // goodputs whose raw files do not tell the window
	Problems    []string
}

// nearPercentile is how far a percentile may be from that of its histogram, relative: a
// histogram keeps three digits.
const nearPercentile = 2e-3

// Run verifies the run directory. An error is one of reading the run at all, as of
// result.Load; what does not agree is a problem of the report.
func Run(dir string) (*Report, error) {
	rec, err := result.Load(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	r := &Report{Samples: len(rec.Samples), Imported: rec.Run.Arena == imported}
	if r.Problems, r.Ended, err = result.ListChanges(dir); err != nil {
		return nil, err
	}
	for _, f := range rec.Faults {
		if f.Code == "" { // one with a code is the source's, and the report has it
			r.Problems = append(r.Problems, filepath.Join(dir, f.File)+": "+f.Text)
		}
	}
	for i := range rec.Samples {
		s := &rec.Samples[i]
		r.checkPlanned(&rec.Run.Plan, s)
		r.percentiles(s)
		if !r.Imported {
			r.goodput(root, &rec.Run.Plan, s)
		}
	}
	return r, nil
}

func (r *Report) problem(s *result.Sample, format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf("%s, step %s, round %d: ", s.Contender, s.Step, s.Round)+fmt.Sprintf(format, args...))
}

// checkPlanned finds a sample that the plan has no place for: run.json and samples.jsonl are of
// two runs.
func (r *Report) checkPlanned(plan *result.Plan, s *result.Sample) {
	isStep := func(step result.Step) bool { return step.ID == s.Step }
	switch {
	case !slices.Contains(plan.Contenders, result.Entry{ID: s.Contender, Underlay: s.Underlay}):
		r.problem(s, "the plan in run.json has no such contender on that underlay (%q)", s.Underlay)
	case s.Step != result.SetupStep && len(plan.Steps) > 0 && !slices.ContainsFunc(plan.Steps, isStep):
		r.problem(s, "the plan in run.json has no such step")
	case s.Round > plan.Rounds:
		r.problem(s, "the plan in run.json has %d rounds", plan.Rounds)
	}
}

// percentiles computes those of the sample's histograms again.
func (r *Report) percentiles(s *result.Sample) {
	for clock, h := range s.Histograms {
		for _, p := range result.Percentiles {
			name := clock + "_" + p.Name
			v, given := s.Metrics[name]
			if !given {
				continue
			}
			r.Percentiles++
			if again := float64(h.ValueAtPercentile(p.Value)) / 1e9; math.Abs(again-v) > nearPercentile*again+1e-9 {
				r.problem(s, "%s is %v, its histogram says %v", name, unit.Seconds(v), unit.Seconds(again))
			}
		}
	}
}

// imported is the arena of imported runs.
const imported = "imported"

// iperf3Workloads are those whose goodput iperf3's servers count.
var iperf3Workloads = []string{"tcp_stream", "udp_stream"}

// goodput adds up what iperf3's servers counted again.
func (r *Report) goodput(root *os.Root, plan *result.Plan, s *result.Sample) {
	goodput, given := s.Metrics[result.Goodput]
	if !given || !slices.Contains(iperf3Workloads, s.Workload) || s.Raw == "" {
		return
	}
	names, err := fs.Glob(root.FS(), path.Join(s.Raw, "server-*.json"))
	if err != nil || len(names) == 0 {
		r.problem(s, "no server's JSON in %s", s.Raw)
		return
	}
	var servers []io.Reader
	for _, name := range names {
		f, err := result.OpenFile(root, name)
		if err != nil {
			r.problem(s, "%v", err)
			return
		}
		defer f.Close()
		servers = append(servers, f)
	}
	switch err := workload.CheckGoodput(servers, plan.Warmup.Duration(), plan.Duration.Duration(), goodput); {
	case errors.Is(err, workload.ErrNotChecked):
		r.Unchecked++
	case err != nil:
		r.problem(s, "goodput is %s: %v", unit.Format(goodput, "bit/s"), err)
	default:
		r.Goodputs++
	}
}
