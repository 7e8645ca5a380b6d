package suite

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
)

// How the rates of a ladder are chosen.
const (
	RatesAuto  = "auto"  // shares of the highest rate that the baseline sustains
	RatesGiven = "given" // the rates as the study has them
)

const rateMark = "{rate}"

// Expand gives the steps of a plan, their parameters complete. A share stays a
// text such as "30%" until bench has found the capacity. services are how many
// other Services there are on the path "service", each count in turn; nil is
// the suite's own. Errors: a *text.UnknownError for rates that are neither RatesAuto
// nor RatesGiven; the same faults as Read, which has tried both; a count below one.
func (s *Suite) Expand(rates string, services []int) ([]result.Step, error) {
	switch {
	case len(services) == 0 && len(s.Services) == 0:
		services = []int{1}
	case len(services) == 0:
		services = s.Services
	}
	if minimum := slices.Min(services); minimum < 1 || slices.Max(services) > maxServices {
		return nil, fmt.Errorf("%s: services %v: want counts from 1 to %d", s.file, services, maxServices)
	}
	if rates != RatesAuto && rates != RatesGiven {
		return nil, text.Unknown("way to choose rates", rates, []string{RatesAuto, RatesGiven})
	}
	var steps []result.Step
	seen := map[string]bool{}
	for _, step := range s.Steps {
		expanded, err := step.expand(rates)
		if err != nil {
			return nil, fmt.Errorf("%s: step %s: %w", s.file, step.ID, err)
		}
		for _, e := range overServices(expanded, services) {
			if seen[e.ID] {
				return nil, fmt.Errorf("%s: step %s is there twice", s.file, e.ID)
			}
			seen[e.ID] = true
			steps = append(steps, e)
		}
	}
	return steps, nil
}

// maxServices fit into the lab's Service addresses, with room to spare.
const maxServices = 100_000

// overServices gives the steps of the path "service" every count of Services;
// with more than one, the count is in the step's id.
func overServices(steps []result.Step, counts []int) []result.Step {
	var out []result.Step
	for _, step := range steps {
		if step.Path != arena.PathService {
			out = append(out, step)
			continue
		}
		for _, n := range counts {
			one := step
			one.Services = n
			if len(counts) > 1 {
				one.ID += fmt.Sprintf("-svc%d", n)
				one.Summary += fmt.Sprintf(", beside %d other Services", n)
			}
			out = append(out, one)
		}
	}
	return out
}

func (s Step) expand(rates string) ([]result.Step, error) {
	w, err := workload.Lookup(s.Workload)
	if err != nil {
		return nil, err
	}
	one := func(id, summary string, params map[string]any) (result.Step, error) {
		complete, err := workload.Complete(w.Info(), params)
		return result.Step{ID: id, Summary: summary, Workload: s.Workload, Path: s.Path, Params: complete}, err
	}
	if !s.ladder() {
		step, err := one(s.ID, s.Summary, s.Params)
		return []result.Step{step}, err
	}
	var steps []result.Step
	for _, rung := range s.rungs(rates) {
		params := maps.Clone(s.Params)
		if params == nil {
			params = map[string]any{}
		}
		params[result.RateParam] = rung.value
		step, err := one(strings.ReplaceAll(s.ID, rateMark, rung.id), strings.ReplaceAll(s.Summary, rateMark, rung.words), params)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, nil
}

func (s Step) ladder() bool { return len(s.Rates) > 0 || len(s.Shares) > 0 }

// rung is one rate of a ladder: its value, in an id, and in words.
type rung struct {
	value     any
	id, words string
}

func (s Step) rungs(rates string) []rung {
	var rungs []rung
	if rates == RatesAuto {
		for _, share := range s.Shares {
			number := strings.TrimSuffix(share, "%")
			rungs = append(rungs, rung{share, number + "pct", number + " % of the highest sustained rate"})
		}
		return rungs
	}
	for _, rate := range s.Rates {
		rungs = append(rungs, rung{rate, short(rate), unit.PerSecond(rate).String()})
	}
	return rungs
}

// short writes 50000 as 50k.
func short(rate float64) string {
	if thousands := rate / 1000; thousands >= 1 && thousands == float64(int(thousands)) {
		return strconv.Itoa(int(thousands)) + "k"
	}
	return strconv.FormatFloat(rate, 'f', -1, 64)
}
