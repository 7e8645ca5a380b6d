// Package suite reads suite files: ordered lists of steps as data. It runs
// nothing. Next: the files themselves are in /suites.
package suite

import (
	"fmt"
	"io"
	"io/fs"
	"sort"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/strictyaml"
	"github.com/cnibench/cnibench/internal/workload"
)

// The choices of a ladder's rates.
const (
	RatesAuto  = "auto"  // shares of the highest rate that the machine sustains
	RatesGiven = "given" // as the study had them
)

// Suite is an ordered list of steps with the defaults for running them.
type Suite struct {
	ID       string        `yaml:"id"`
	Summary  string        `yaml:"summary"`
	Study    string        `yaml:"study,omitempty"` // the publication that it repeats
	Rounds   int           `yaml:"rounds"`
	Duration time.Duration `yaml:"duration"` // measured window of a step
	Warmup   time.Duration `yaml:"warmup"`   // before it, excluded from every figure
	Steps    []Step        `yaml:"steps"`
}

// Step is one step, or with a ladder a step per rate.
type Step struct {
	ID       string         `yaml:"id"`
	Summary  string         `yaml:"summary,omitempty"`
	Workload string         `yaml:"workload"`
	Path     string         `yaml:"path"`
	Params   map[string]any `yaml:"params,omitempty"`
	Ladder   *Ladder        `yaml:"ladder,omitempty"`
}

// Ladder repeats a step at rising rates; its id gets the rate as suffix.
type Ladder struct {
	Given []float64 `yaml:"given"` // requests/s of the study
	Auto  []string  `yaml:"auto"`  // shares of the capacity, "30%"
}

// Read decodes and checks one suite file.
func Read(file string, r io.Reader) (*Suite, error) {
	var s Suite
	if err := strictyaml.Decode(file, r, &s); err != nil {
		return nil, err
	}
	switch {
	case file != "suites/"+s.ID+".yaml":
		return nil, fmt.Errorf("%s: id %q is not the file's name", file, s.ID)
	case s.Summary == "":
		return nil, fmt.Errorf("%s: no summary", file)
	case s.Rounds < 1 || s.Duration <= 0 || s.Warmup < 0:
		return nil, fmt.Errorf("%s: rounds and duration must be above zero, warmup not below", file)
	case len(s.Steps) == 0:
		return nil, fmt.Errorf("%s: no steps", file)
	}
	for _, rates := range []string{RatesAuto, RatesGiven} {
		if _, err := s.Expand(rates); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return &s, nil
}

// Load reads every *.yaml file at the top of fsys, sorted by id.
func Load(fsys fs.FS) ([]*Suite, error) {
	files, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, err
	}
	var all []*Suite
	for _, file := range files {
		f, err := fsys.Open(file)
		if err != nil {
			return nil, err
		}
		s, err := Read("suites/"+file, f)
		f.Close()
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].ID < all[j].ID })
	return all, nil
}

// Expand is the suite's steps with ladders written out at the chosen rates
// (RatesAuto, RatesGiven), checked against the workloads. Errors name the step
// and the nearest right name.
func (s *Suite) Expand(rates string) ([]result.Step, error) {
	var steps []result.Step
	seen := map[string]bool{}
	for _, step := range s.Steps {
		rungs, err := step.rungs(rates)
		if err != nil {
			return nil, fmt.Errorf("step %s: %w", step.ID, err)
		}
		for _, r := range rungs {
			if err := check(r, seen); err != nil {
				return nil, fmt.Errorf("step %s: %w", r.ID, err)
			}
			steps = append(steps, r)
		}
	}
	return steps, nil
}

func check(s result.Step, seen map[string]bool) error {
	switch {
	case s.ID == "" || s.ID == result.SetupStep || strings.ContainsAny(s.ID, "/ \t"):
		return fmt.Errorf("not a step id: %q", s.ID)
	case seen[s.ID]:
		return fmt.Errorf("twice")
	case s.Path == "":
		return fmt.Errorf("no path; most steps have path: pod")
	}
	seen[s.ID] = true
	w, err := workload.Lookup(s.Workload)
	if err != nil {
		return err
	}
	_, err = workload.Complete(w.Info(), s.Params)
	return err
}

// rungs is the step once, or once per rate of its ladder.
func (s Step) rungs(rates string) ([]result.Step, error) {
	step := result.Step{ID: s.ID, Summary: s.Summary, Workload: s.Workload, Path: s.Path, Params: s.Params}
	if s.Ladder == nil {
		return []result.Step{step}, nil
	}
	var rungs []result.Step
	add := func(suffix string, rate any) {
		r := step
		r.ID = s.ID + "-" + suffix
		r.Params = map[string]any{"rate": rate}
		for k, v := range s.Params {
			r.Params[k] = v
		}
		rungs = append(rungs, r)
	}
	switch rates {
	case RatesGiven:
		for _, rate := range s.Ladder.Given {
			add(fmt.Sprintf("%gk", rate/1000), rate)
		}
	case RatesAuto:
		for _, share := range s.Ladder.Auto {
			add(strings.TrimSuffix(share, "%")+"pct", share)
		}
	default:
		return nil, fmt.Errorf("rates %q: want %s or %s", rates, RatesAuto, RatesGiven)
	}
	if len(rungs) == 0 {
		return nil, fmt.Errorf("the ladder has no %s rates", rates)
	}
	return rungs, nil
}
