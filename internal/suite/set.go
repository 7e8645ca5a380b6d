package suite

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/nearest"
	"github.com/cnibench/cnibench/internal/workload"
)

// Set returns the suite with parameters of its steps changed. A change is
// STEP.PARAMETER=VALUE; STEP is a step's id as the suite has it, or a pattern such
// as http-* that at least one of them matches. Errors: a *nearest.Error for an
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
	ids := make([]string, len(s.Steps))
	found := false
	for i := range s.Steps {
		one := &s.Steps[i]
		ids[i] = one.ID
		if match, err := path.Match(step, one.ID); step != one.ID && (err != nil || !match) {
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
		return nearest.Unknown("step of suite "+s.ID, step, ids)
	}
	return nil
}

// Only returns the suite with these steps, in the suite's order. A step is named as
// Set names it. Its error is a *nearest.Error.
func (s *Suite) Only(steps []string) (*Suite, error) {
	out := *s
	out.Steps = nil
	wanted := map[string]bool{}
	for _, step := range s.Steps {
		for _, name := range steps {
			if match, err := path.Match(name, step.ID); name == step.ID || err == nil && match {
				wanted[name] = true
				out.Steps = append(out.Steps, step)
				break
			}
		}
	}
	for _, name := range steps {
		if !wanted[name] {
			var ids []string
			for _, step := range s.Steps {
				ids = append(ids, step.ID)
			}
			return nil, nearest.Unknown("step of suite "+s.ID, name, ids)
		}
	}
	return &out, nil
}
