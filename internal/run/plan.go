package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/secret"
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
	if steps, err = f.capped(earlier.Steps); err != nil {
		return err
	}
	j.asked.SuiteText, j.asked.Earlier = f.SuiteText, f.Earlier // a process in a guest does not see the files
	j.Plan = result.Plan{
		SharesOf: s.SharesOf, Capacity: earlier.Capacity, RatesFrom: earlier.RatesFrom,
		Suite: s.ID, Rounds: s.Rounds, Seed: f.Seed, Steps: steps, Settings: f.Settings(),
		Duration: unit.Seconds(s.Duration.Seconds()), Warmup: unit.Seconds(s.Warmup.Seconds()),
		Slice: unit.Seconds(f.Slice.Seconds()),
	}
	if _, keys := secret.Mask(f.cniText); f.CNIConf != "" && len(keys) > 0 {
		console.Logger(os.Stderr).Warn("the run directory keeps the CNI configuration without what looks like a credential", "masked", strings.Join(keys, ", "))
	}
	f.setEnd(&j.Plan, s)
	if f.Given["duration"] {
		j.Plan.Duration = unit.Seconds(f.Duration.Seconds())
	}
	if f.Given["warmup"] {
		j.Plan.Warmup = unit.Seconds(f.Warmup.Seconds())
	}
	if f.Arena == Kube {
		f.lengthen(&j.Plan)
	}
	if !f.Given["seed"] {
		j.Plan.Seed = rand.Uint64() >> 12 // exact in a JSON reader's double
	}
	if _, err := j.Catalogue.Contender(f.Baseline); err != nil {
		return err
	}
	if j.Wanted, err = f.contenders(j.Catalogue, j.Place); err != nil {
		return err
	}
	if f.Study != "" && j.Wanted == nil && (f.Arena != Kube || f.Cluster.Install) {
		j.only = j.Catalogue.OfStudy(f.Study)
		for _, own := range j.Place.Own() {
			j.only = append(j.only, own.ID)
		}
	}
	return j.programs(steps)
}

// contenders returns the ids that the request names, after a check that they are known;
// nil if the request wants all supported contenders.
func (f *Request) contenders(catalogue *Catalogue, place Place) ([]string, error) {
	if f.Contenders == "supported" || f.Contenders == "all" {
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
	ids, err := place.Named(ids)
	if err != nil {
		return nil, err
	}
	_, err = catalogue.Pick(ids)
	return ids, err
}

// programs tells the place which programs the steps run.
func (j *Job) programs(steps []result.Step) error {
	var wanted []string
	for _, step := range steps {
		wanted = append(wanted, stepPrograms(step.Workload, step.Params)...)
	}
	slices.Sort(wanted)
	return j.Place.Equip(slices.Compact(wanted))
}

// enlist puts the contenders that run into the plan: first the baseline, once for every
// underlay that another contender runs on, then the others. Contenders that can't run go
// to the run's list of unsupported ones. No contender at all is no error.
func (j *Job) enlist(ctx context.Context, a arena.Arena, run *result.Run) error {
	base, err := j.Catalogue.Contender(j.request.Baseline)
	if err != nil {
		return err
	}
	if err := a.Supports(ctx, base); err != nil {
		u, own := arena.AsUnsupported(err), j.Place.Own()
		if u == nil || j.request.Arena != Kube || j.request.Given["baseline"] || len(own) != 1 || slices.Contains(j.Wanted, base.ID) {
			return fmt.Errorf("baseline %s: %w", base.ID, err)
		}
		console.Logger(os.Stderr).Warn("baseline left out: there are no ratios to it", "contender", base.ID, "why", u)
		if j.Wanted != nil {
			run.Unsupported = append(run.Unsupported, result.Unsupported{Contender: base.ID, Reason: u.Reason, Remedy: u.Remedy})
		}
		base = own[0]
		j.request.Baseline, run.Baseline = base.ID, base.ID
	}
	candidates := j.Place.Candidates(j.Catalogue.Contenders)
	if j.Wanted != nil {
		if candidates, err = j.Catalogue.Pick(j.Wanted); err != nil {
			return err
		}
	}
	if j.only != nil {
		candidates = slices.DeleteFunc(slices.Clone(candidates), func(c *contender.Contender) bool { return !slices.Contains(j.only, c.ID) })
	}
	var entries []result.Entry
	var underlays []string
	var left []error  // why contenders that the user named are left out: a program or a right is missing
	forGuest := false // the guest that follows may run a contender
	log := console.Logger(os.Stderr)
	run.Contenders = append(run.Contenders, j.Place.Describe(base))
	for _, c := range candidates {
		err := a.Supports(ctx, c)
		switch u := arena.AsUnsupported(err); {
		case u != nil && (j.Wanted != nil || slices.Contains(j.Place.Own(), c)) && !j.guestMayRun(u) && !u.Program && !u.Denied: // the user named the contender
			return fmt.Errorf("contender %s: %w", c.ID, withGuestRemedy(u))
		case u != nil:
			forGuest = forGuest || j.guestMayRun(u)
			if j.Wanted != nil && !j.guestMayRun(u) {
				left = append(left, fmt.Errorf("contender %s: %w", c.ID, u))
				log.Warn("contender left out", "contender", c.ID, "why", u)
			}
			u = withGuestRemedy(u)
			run.Unsupported = append(run.Unsupported, result.Unsupported{Contender: c.ID, Reason: u.Reason, Remedy: u.Remedy, OtherKernel: u.OtherKernel})
			continue
		case err != nil:
			return err
		}
		underlay := a.Variant(c)
		if !slices.Contains(underlays, underlay) {
			underlays = append(underlays, underlay)
		}
		if c.ID == base.ID {
			continue
		}
		entries = append(entries, result.Entry{ID: c.ID, Underlay: underlay})
		run.Contenders = append(run.Contenders, j.Place.Describe(c))
	}
	if left != nil && len(underlays) == 0 && !forGuest {
		return exit.With(exit.Unsupported, errors.Join(left...))
	}
	var baselines []result.Entry
	for _, underlay := range underlays {
		baselines = append(baselines, result.Entry{ID: base.ID, Underlay: underlay})
	}
	run.Plan.Contenders = append(baselines, entries...)
	run.Plan.Rounds = cmp.Or(run.Plan.Rounds, analysis.RoundsForContenders(len(entries)+1))
	j.planSlices(a, &run.Plan, len(baselines))
	return j.findGaps(a, run)
}

// The shortest slice that can be asked for, and the shortest load before each slice that does
// not count.
const (
	leastSlice = 20 * time.Millisecond
	leastLead  = 50 * time.Millisecond
)

// planSlices plans that all contenders are up at the same time and take slices in
// turns: all in one block if the arena has room for their loads, else in blocks beside the
// baseline. There are no slices if there is no room for another load beside the baseline's,
// or if each contender must be up alone: if a step measures an idle contender, or is between
// the nodes of a cluster, whose ports all contenders share. baselines is on how many underlays
// the baseline is.
func (j *Job) planSlices(a arena.Arena, p *result.Plan, baselines int) {
	upAlone := slices.ContainsFunc(p.Steps, func(s result.Step) bool {
		return s.Workload == analysis.Idle || s.Path == arena.PathHost && a.Name() == Kube
	})
	if p.Slice > 0 && !j.request.Given["slice"] {
		p.Slice = unit.Seconds(a.Slice().Seconds())
	}
	n, room := len(p.Contenders), 1
	if p.Slice > 0 && !upAlone {
		room = min(n, a.MaxUp())
	}
	if n < 2 || room < min(n, baselines+1) {
		p.Slice = 0
		j.request.lengthen(p)
		return
	}
	p.Together, p.Lead = room, max(unit.Seconds(leastLead.Seconds()), p.Slice/2)
}

// The shortest windows and warm-ups of runs in which building a round takes longer than
// its loads.
const (
	leastWindow = time.Second
	leastWarmup = 300 * time.Millisecond
)

// lengthen raises windows and warm-ups to leastWindow and leastWarmup, unless the user has
// chosen them. It is for rounds that take seconds to build, and for contenders that take no
// turns.
func (f *Request) lengthen(p *result.Plan) {
	if f.isSelfTest || f.SuiteText != "" {
		return
	}
	if !f.Given["duration"] {
		p.Duration = max(p.Duration, unit.Seconds(leastWindow.Seconds()))
	}
	if !f.Given["warmup"] {
		p.Warmup = max(p.Warmup, unit.Seconds(leastWarmup.Seconds()))
	}
}

// findGaps adds to the plan's gaps the steps whose path a contender lacks.
func (j *Job) findGaps(a arena.Arena, run *result.Run) error {
	seen := map[string]bool{}
	for _, entry := range run.Plan.Contenders {
		if seen[entry.ID] {
			continue
		}
		seen[entry.ID] = true
		c, err := j.Catalogue.Contender(entry.ID)
		if err != nil {
			return err
		}
		for _, step := range run.Plan.Steps {
			err := a.HasPath(c, step.Path)
			u := arena.AsUnsupported(err)
			if u == nil {
				if err != nil {
					return err
				}
				continue
			}
			run.Plan.Gaps = append(run.Plan.Gaps, result.Gap{Contender: c.ID, Step: step.ID})
			if c.ID != run.Baseline { // the baseline's figures from pod to pod stand in for its own
				run.Unsupported = append(run.Unsupported, result.Unsupported{Contender: c.ID, Step: step.ID, Reason: u.Reason, Remedy: u.Remedy})
			}
		}
	}
	return nil
}
