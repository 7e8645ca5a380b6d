// Package suite reads suite files: data only, strictly decoded, checked
// against the workloads that they name, and expanded to the steps of a plan.
// It runs nothing and knows no arena. Next: read.go; the files themselves are
// in /suites.
package suite

import (
	"fmt"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/text"
)

// Suite is an ordered list of steps with how often and how long they run,
// unless the user says otherwise.
type Suite struct {
	ID       string
	Summary  string
	Study    string        // the publication that it repeats, and what it changed
	Rounds   int           // 0: as many as it takes to tell the contenders apart
	Until    float64       // half-width of ratios' intervals, as a share, at which a run ends; 0: after Rounds
	MaxTime  time.Duration // at which it ends at the latest; 0: none
	Duration time.Duration // of a step's measured window
	Warmup   time.Duration // load before the window
	Steps    []Step
	SharesOf string // of whose highest rate shares are: the baseline's, or result.SharesOfSlowest
	// Services are numbers of other Services: a step on the path "service" runs
	// beside each number in turn; nil is one.
	Services []int

	file string // for errors
}

// Step is a workload with its parameters and path. With Rates it is a ladder:
// one step for every rate, and {rate} in its id and summary is replaced.
type Step struct {
	ID       string         `yaml:"id"`
	Summary  string         `yaml:"summary"`
	Workload string         `yaml:"workload"`
	Path     string         `yaml:"path"`
	Params   map[string]any `yaml:"params,omitempty"`
	// Rates are the workload's parameter rate, 1/s, as the study has them.
	Rates []float64 `yaml:"rates,omitempty"`
	// Shares stand for the rates where they are chosen for the machine:
	// "30%" of the highest rate that the baseline sustains, or see Suite.SharesOf.
	Shares []string `yaml:"shares,omitempty"`
}

// RoundsText is the number of rounds, in words where it depends on the contenders or on
// what the figures come to.
func (s *Suite) RoundsText() string {
	switch {
	case s.Rounds == 0:
		return "by contenders"
	case s.Until > 0:
		return fmt.Sprintf("%d or more, until ±%g %% or %v", s.Rounds, 100*s.Until, s.MaxTime)
	}
	return strconv.Itoa(s.Rounds)
}

// Find is the suite with that id. Its error is a *text.UnknownError, which names
// the nearest id: wrong usage (exit 2).
func Find(all []*Suite, id string) (*Suite, error) {
	return text.Find("suite", id, all, func(x *Suite) string { return x.ID })
}
