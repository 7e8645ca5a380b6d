package run

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/suite"
	"github.com/cnibench/cnibench/internal/text/console"
	"github.com/cnibench/cnibench/internal/unit"
)

// newPlan makes the plan of a new run without its contenders: only the arena knows
// which of them the kernel supports.
func (j *Job) newPlan() error {
	f := j.request
	s, err := f.suite(j.Catalogue)
	if err != nil {
		return err
	}
	if f.justAShell() {
		var notes []string
		if s, notes, err = ownEngine(s); err != nil {
			return err
		}
		for _, note := range notes {
			logInfo("%s", note)
		}
	}
	if f.Given[maxRateFlag] && !f.Given["rates"] && f.RatesFrom == "" { // the search for a share takes the network to its limit
		f.Rates = suite.RatesGiven
	}
	steps, err := s.Expand(f.Rates, f.Services)
	if err != nil {
		return exit.With(exit.WrongUsage, err)
	}
	earlier := result.Plan{Steps: steps}
	if err := f.takeRates(&earlier); err != nil {
		return err
	}
	if steps, err = f.capped(earlier.Steps, j.Venue.Traits().InUse); err != nil {
		return err
	}
	j.Plan = result.Plan{
		SharesOf: s.SharesOf, Capacity: earlier.Capacity, RatesFrom: earlier.RatesFrom,
		Suite: s.ID, Rounds: s.Rounds, Seed: f.Seed, Steps: steps, Settings: f.Settings(),
		Duration: unit.Seconds(s.Duration.Seconds()), Warmup: unit.Seconds(s.Warmup.Seconds()),
		Slice: unit.Seconds(f.Slice.Seconds()),
	}
	if _, keys := maskSecrets(f.CNIText); f.CNIConf != "" && len(keys) > 0 {
		console.Logger(os.Stderr).Warn("the run directory keeps the CNI configuration without what looks like a credential", "masked", strings.Join(keys, ", "))
	}
	f.setEnd(&j.Plan, s)
	if f.Given["duration"] {
		j.Plan.Duration = unit.Seconds(f.Duration.Seconds())
	}
	if f.Given["warmup"] {
		j.Plan.Warmup = unit.Seconds(f.Warmup.Seconds())
	}
	j.Alone.Duration, j.Alone.Warmup = j.Plan.Duration, j.Plan.Warmup
	ours := !f.ForSelfTest && f.SuiteText == ""
	if ours && !f.Given["duration"] {
		j.Alone.Duration = max(j.Plan.Duration, unit.Seconds(minWindow.Seconds()))
	}
	if ours && !f.Given["warmup"] {
		j.Alone.Warmup = max(j.Plan.Warmup, unit.Seconds(minWarmup.Seconds()))
	}
	if j.Venue.Traits().SlowRounds {
		j.Plan.Duration, j.Plan.Warmup = j.Alone.Duration, j.Alone.Warmup
	}
	j.ArenaSlice = !f.Given["slice"]
	j.Baseline, j.BaselineAsked, j.NeedThisKernel, j.Checks = f.Baseline, f.Given["baseline"], f.Arena == Lab, f.Checks
	if !f.Given["seed"] {
		j.Plan.Seed = rand.Uint64() >> 12 // exact in a JSON reader's double
	}
	if _, err := j.Catalogue.Contender(f.Baseline); err != nil {
		return err
	}
	if j.Wanted, err = f.contenders(j.Catalogue, j.Venue); err != nil {
		return err
	}
	if f.Study != "" && j.Wanted == nil && j.Venue.Traits().Choice {
		j.Only = j.Catalogue.OfStudy(f.Study)
		for _, own := range j.Venue.Own() {
			j.Only = append(j.Only, own.ID)
		}
	}
	return nil
}

// namesContenders says whether the user named contenders.
func (f *Request) namesContenders() bool {
	return f.Contenders != "supported" && f.Contenders != "all"
}

// contenders returns the ids that the request names, after a check that they are known;
// nil if the request wants all supported contenders.
func (f *Request) contenders(catalogue *Catalogue, venue Venue) ([]string, error) {
	if !f.namesContenders() {
		return nil, nil
	}
	var ids []string
	for id := range strings.SplitSeq(f.Contenders, ",") {
		if id = strings.TrimSpace(id); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, exit.Usage("--contenders: none given; see `cnibench list contenders`")
	}
	ids, err := venue.Named(ids)
	if err != nil {
		return nil, err
	}
	_, err = catalogue.Pick(ids)
	return ids, err
}

// equip tells the venue which programs the steps run.
func equip(venue Venue, steps []result.Step) error {
	var wanted []string
	for _, step := range steps {
		wanted = append(wanted, stepPrograms(step.Workload, step.Params)...)
	}
	slices.Sort(wanted)
	return venue.Equip(slices.Compact(wanted))
}

// The shortest windows and warm-ups, unless the user has chosen them, of runs in which
// building a round takes longer than its loads, or contenders take no turns.
const (
	minWindow = time.Second
	minWarmup = 300 * time.Millisecond
)
