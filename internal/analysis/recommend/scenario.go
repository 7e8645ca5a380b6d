package recommend

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/strictyaml"
	"github.com/cnibench/cnibench/internal/text"
)

// Scenario is a typical use of a cluster, with the needs and weights for it.
type Scenario struct {
	Name    string             `yaml:"name" json:"name"`
	Summary string             `yaml:"summary" json:"summary"`
	Needs   []string           `yaml:"needs,omitempty" json:"needs,omitempty"`
	Weights map[string]float64 `yaml:"weights" json:"weights"` // by criterion; a missing criterion has weight 0
	Run     string             `yaml:"run" json:"run"`         // flags of `cnibench run` that measure the criteria
}

//go:embed scenarios.yaml
var scenarios []byte

// Scenarios lists the cases of scenarios.yaml, in its order.
func Scenarios() ([]*Scenario, error) { return readScenarios(scenarios) }

func readScenarios(text []byte) ([]*Scenario, error) {
	const file = "internal/analysis/recommend/scenarios.yaml"
	var list struct {
		Scenarios []*Scenario `yaml:"scenarios"`
	}
	if err := strictyaml.Decode(file, bytes.NewReader(text), &list); err != nil {
		return nil, err
	}
	for _, s := range list.Scenarios {
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("%s: scenario %q: %w", file, s.Name, err)
		}
	}
	return list.Scenarios, nil
}

func (s *Scenario) check() error {
	if s.Name == "" || s.Summary == "" || s.Run == "" {
		return fmt.Errorf("name, summary and run must be given")
	}
	for _, need := range s.Needs {
		if !slices.Contains(NeedNames(), need) {
			return text.Unknown("need", need, NeedNames())
		}
	}
	for name, weight := range s.Weights {
		if !slices.Contains(CriterionNames(), name) {
			return text.Unknown("criterion", name, CriterionNames())
		}
		if !(weight > 0 && weight <= 1000) {
			return fmt.Errorf("weight of %s: want a number above 0, at most 1000", name)
		}
	}
	if len(s.Weights) == 0 {
		return fmt.Errorf("no weights")
	}
	return nil
}

// WeightsText returns the weights in the form of the flag --weight, in the order of the
// criteria.
func (s *Scenario) WeightsText() string {
	var words []string
	for _, name := range CriterionNames() {
		if weight := s.Weights[name]; weight > 0 {
			words = append(words, fmt.Sprintf("%s=%g", name, weight))
		}
	}
	return strings.Join(words, ",")
}

// Wish adds the scenario's needs and weights to a wish. Weights of the wish take precedence.
func (s *Scenario) Wish(wish Wish) Wish {
	wish.Needs = slices.Concat(s.Needs, wish.Needs)
	var weights []analysis.Weight
	for _, name := range CriterionNames() {
		weights = append(weights, analysis.Weight{Criterion: name, Weight: s.Weights[name]})
	}
	wish.Weights = append(weights, wish.Weights...)
	return wish
}

// Advice returns the advice with r, the recommendation for the scenario's wish.
func (s *Scenario) Advice(r *analysis.Recommendation) analysis.Advice {
	a := analysis.Advice{Scenario: s.Name, Summary: s.Summary, Run: s.Run, Recommendation: r}
	maximum := 0.0
	for _, weight := range s.Weights {
		maximum = max(maximum, weight)
	}
	for _, name := range CriterionNames() {
		if s.Weights[name] == maximum {
			a.Chief = append(a.Chief, name)
		}
	}
	return a
}

// Advise returns the advice for every scenario.
func Advise(rec *result.Record, wish Wish) ([]analysis.Advice, error) {
	list, err := Scenarios()
	var advice []analysis.Advice
	for _, s := range list {
		advice = append(advice, s.Advice(Choose(rec, s.Wish(wish))))
	}
	return advice, err
}
