package suite

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/workload"
)

// Set returns the suite with parameters of its steps changed. A change is
// STEP.PARAMETER=VALUE; STEP is a step's id as the suite has it, or a pattern such
// as http-* that at least one of them matches. Errors: a *text.UnknownError for an
// unknown step or parameter; else what is wrong with the change, or with the suite
// that it makes.
func (s *Suite) Set(changes []string) (*Suite, error) {
	out := *s
	out.Steps = slices.Clone(s.Steps)
	for _, change := range changes {
		target, value, ok := strings.Cut(change, "=")
		dot := strings.LastIndex(target, ".")
		if !ok || dot < 1 {
			return nil, fmt.Errorf("%q: want STEP.PARAMETER=VALUE, e.g. dts.streams=4", change)
		}
		if err := out.set(target[:dot], target[dot+1:], value); err != nil {
			return nil, fmt.Errorf("%s: %w", change, err)
		}
	}
	return &out, out.check()
}

func (s *Suite) set(step, param, value string) error {
	found := false
	for i := range s.Steps {
		one := &s.Steps[i]
		if !names(step, one.ID) {
			continue
		}
		found = true
		w, err := workload.Lookup(one.Workload)
		if err != nil {
			return err
		}
		parsed, err := workload.ParseParam(w.Info(), param, value)
		if err != nil {
			return err
		}
		if one.Params = maps.Clone(one.Params); one.Params == nil {
			one.Params = map[string]any{}
		}
		one.Params[param] = parsed
	}
	if !found {
		return s.unknown(step)
	}
	return nil
}

// Only returns the suite with these steps, in the suite's order. A step is named as
// Set names it. Its error is a *text.UnknownError.
func (s *Suite) Only(steps []string) (*Suite, error) {
	out := *s
	out.Steps = nil
	wanted := map[string]bool{}
	for _, step := range s.Steps {
		rungs := Step{Rates: []float64{}, Shares: []string{}}
		whole := false
		for _, name := range steps {
			switch one := step.rungsNamed(name); {
			case names(name, step.ID):
				wanted[name], whole = true, true
			case one.ladder():
				wanted[name] = true
				rungs.Rates, rungs.Shares = append(rungs.Rates, one.Rates...), append(rungs.Shares, one.Shares...)
			}
		}
		if !whole {
			step.Rates, step.Shares = rungs.Rates, rungs.Shares
		}
		if whole || rungs.ladder() {
			out.Steps = append(out.Steps, step)
		}
	}
	for _, name := range steps {
		if !wanted[name] {
			return nil, s.unknown(name)
		}
	}
	return &out, nil
}

// rungsNamed returns the rates and shares of the step whose expanded id is the name, as a
// plan or a report shows it: http-350-30pct is the share of 30 % of http-350-{rate}.
func (s Step) rungsNamed(name string) (rungs Step) {
	for _, rates := range []string{RatesAuto, RatesGiven} {
		for i, rung := range s.rungs(rates) {
			switch {
			case !names(name, strings.ReplaceAll(s.ID, rateMark, rung.id)):
			case rates == RatesAuto:
				rungs.Shares = append(rungs.Shares, s.Shares[i])
			default:
				rungs.Rates = append(rungs.Rates, s.Rates[i])
			}
		}
	}
	return rungs
}

// names reports whether the name, an id or a pattern, means the step of that id.
func names(name, id string) bool {
	match, err := path.Match(name, id)
	return name == id || err == nil && match
}

// unknown returns the error for a name that no step has.
func (s *Suite) unknown(name string) error {
	ids := make([]string, len(s.Steps))
	for i := range s.Steps {
		ids[i] = s.Steps[i].ID
	}
	return text.Unknown("step of suite "+s.ID, name, ids)
}
