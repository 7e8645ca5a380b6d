package suite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/strictyaml"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
)

// document is a suite as its file has it.
type document struct {
	ID       string `yaml:"id"`
	Summary  string `yaml:"summary"`
	Study    string `yaml:"study"`
	Rounds   int    `yaml:"rounds,omitempty"`
	Until    string `yaml:"until,omitempty"`
	MaxTime  string `yaml:"max_time,omitempty"`
	Duration string `yaml:"duration"`
	Warmup   string `yaml:"warmup"`
	SharesOf string `yaml:"shares_of,omitempty"`
	Services []int  `yaml:"services,omitempty"`
	Steps    []Step `yaml:"steps"`
}

// Read decodes and checks one suite file. file is its name: its base without
// .yaml is the id that the suite must have. Syntax, unknown keys and wrong
// types come back as *strictyaml.Error with the line; what is wrong with the
// steps names the file and the step, and the nearest right word.
func Read(file string, r io.Reader) (*Suite, error) {
	var d document
	if err := strictyaml.Decode(file, r, &d); err != nil {
		return nil, err
	}
	duration, err := unit.ParseSeconds(d.Duration)
	if err != nil {
		return nil, fmt.Errorf("%s: duration: %w", file, err)
	}
	warmup, err := unit.ParseSeconds(d.Warmup)
	if err != nil {
		return nil, fmt.Errorf("%s: warmup: %w", file, err)
	}
	var until float64
	var maxTime unit.Seconds
	if d.Until != "" {
		if until, err = unit.ParsePercent(d.Until); err != nil {
			return nil, fmt.Errorf("%s: until: %w", file, err)
		}
	}
	if d.MaxTime != "" {
		if maxTime, err = unit.ParseSeconds(d.MaxTime); err != nil {
			return nil, fmt.Errorf("%s: max_time: %w", file, err)
		}
	}
	s := &Suite{
		Until: until, MaxTime: maxTime.Duration(),
		ID: d.ID, Summary: d.Summary, Study: d.Study, Rounds: d.Rounds, Steps: d.Steps, Services: d.Services, SharesOf: d.SharesOf, file: file,
		Duration: duration.Duration(), Warmup: warmup.Duration(),
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	return s, nil
}

// Load reads every *.yaml file at the top of fsys: the quick suite first, as
// the one to begin with, then by id.
func Load(fsys fs.FS) ([]*Suite, error) {
	all, err := strictyaml.Load(fsys, "suites", Read, func(s *Suite) string { return s.ID })
	slices.SortStableFunc(all, func(a, b *Suite) int {
		switch {
		case a.ID == "quick":
			return -1
		case b.ID == "quick":
			return 1
		}
		return 0
	})
	return all, err
}

// names of steps become folders of the run directory.
var stepID = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

func paths() []string {
	return []string{arena.PathPod, arena.PathSameNode, arena.PathHost, arena.PathService}
}

// check finds everything that is wrong with the suite.
func (s *Suite) check() error {
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %w", s.file, fmt.Errorf(format, args...)))
	}
	if want := strings.TrimSuffix(path.Base(s.file), ".yaml"); s.ID != want {
		wrong("id %q; the file's name wants %q", s.ID, want)
	}
	if s.Summary == "" || s.Study == "" {
		wrong("summary and study must say what the suite does and what it repeats")
	}
	if s.Rounds < 0 {
		wrong("rounds %d; want 1 or more, or none for as many as the contenders need", s.Rounds)
	}
	if s.SharesOf != "" && s.SharesOf != result.SharesOfSlowest {
		wrong("shares_of: %w", text.Unknown("choice", s.SharesOf, []string{result.SharesOfSlowest}))
	}
	if s.Duration <= 0 {
		wrong("duration %v; want one above zero", s.Duration)
	}
	if len(s.Steps) == 0 {
		wrong("no steps")
	}
	for i, step := range s.Steps {
		if err := step.check(); err != nil {
			name := step.ID
			if name == "" {
				name = fmt.Sprintf("%d", i+1)
			}
			wrong("step %s: %w", name, err)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, rates := range []string{RatesGiven, RatesAuto} {
		if _, err := s.Expand(rates, nil); err != nil {
			return err
		}
	}
	return nil
}

func (s Step) check() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	id := s.ID
	if s.ladder() {
		id = strings.ReplaceAll(id, rateMark, "1k")
	}
	if !stepID.MatchString(id) || s.ID == result.SetupStep {
		wrong("id %q; want small letters, digits, dots and dashes, not %q, and %s only with rates", s.ID, result.SetupStep, rateMark)
	}
	if s.Path == arena.PathService {
		if w, err := workload.Lookup(s.Workload); err == nil {
			if _, ok := w.(workload.Serving); !ok {
				wrong("workload %s can't stand behind a Service", s.Workload)
			}
		}
	}
	if !slices.Contains(paths(), s.Path) {
		errs = append(errs, text.Unknown("path", s.Path, paths()))
	}
	if s.ladder() {
		errs = append(errs, s.checkLadder()...)
	}
	if len(errs) == 0 {
		for _, rates := range []string{RatesGiven, RatesAuto} {
			if _, err := s.expand(rates); err != nil {
				return err
			}
		}
	}
	return errors.Join(errs...)
}

func (s Step) checkLadder() (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !strings.Contains(s.ID, rateMark) {
		wrong("a step with rates needs %s in its id", rateMark)
	}
	if len(s.Rates) == 0 || len(s.Shares) == 0 {
		wrong("rates and shares stand for each other; give both")
	}
	if _, twice := s.Params[result.RateParam]; twice {
		wrong("parameter rate beside rates; give one of them")
	}
	for _, rate := range s.Rates {
		if !(rate > 0) || math.IsInf(rate, 0) {
			wrong("rate %v; want a number above zero", rate)
		}
	}
	for _, share := range s.Shares {
		if _, ok := workload.Share(share); !ok {
			wrong("share %q; want one such as 30%%", share)
		}
	}
	return errs
}
