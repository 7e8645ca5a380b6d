package run

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/suite"
	"github.com/cnibench/cnibench/internal/text/console"
	"github.com/cnibench/cnibench/internal/unit"
)

// newPlan makes the plan of a new run as far as the request decides it, and the list of
// candidates: only the arena knows which of them can run.
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
	if steps, err = f.capSteps(earlier.Steps, !j.Venue.Traits().Choice); err != nil {
		return err
	}
	j.Record = result.Run{Schema: result.RunSchema, ID: filepath.Base(f.Out), Tool: f.Tool, Baseline: f.Baseline, Plan: result.Plan{
		SharesOf: s.SharesOf, Capacity: earlier.Capacity, RatesFrom: earlier.RatesFrom,
		Suite: s.ID, Rounds: s.Rounds, Seed: f.Seed, Steps: steps, Settings: f.Settings(),
		Duration: unit.Seconds(s.Duration.Seconds()), Warmup: unit.Seconds(s.Warmup.Seconds()),
		Slice: unit.Seconds(f.Slice.Seconds()),
	}}
	p := &j.Record.Plan
	if j.SelfTest != nil {
		j.Record.Environment = result.Environment{"selftest": j.SelfTest.String()}
	}
	if _, keys := maskSecrets(f.CNIText); f.CNIConf != "" && len(keys) > 0 {
		console.Logger(os.Stderr).Warn("the run directory keeps the CNI configuration without what looks like a credential", "masked", strings.Join(keys, ", "))
	}
	f.setEnd(p, s)
	if f.Given["duration"] {
		p.Duration = unit.Seconds(f.Duration.Seconds())
	}
	if f.Given["warmup"] {
		p.Warmup = unit.Seconds(f.Warmup.Seconds())
	}
	if !j.Venue.Traits().ThisMachine {
		f.lengthen(p)
	}
	if !f.Given["seed"] {
		p.Seed = rand.Uint64() >> 12 // exact in a JSON reader's double
	}
	if _, err := j.Catalogue.Contender(f.Baseline); err != nil {
		return err
	}
	j.named = f.namesContenders()
	if j.candidates, err = f.candidates(j.Catalogue, j.Venue); err != nil {
		return err
	}
	if f.Study != "" && !j.named && j.Venue.Traits().Choice {
		only := j.Catalogue.OfStudy(f.Study)
		j.candidates = slices.DeleteFunc(slices.Clone(j.candidates), func(c *contender.Contender) bool {
			return !slices.Contains(only, c.ID) && !slices.Contains(j.Venue.Own(), c)
		})
	}
	return nil
}

// namesContenders says whether the user named contenders.
func (f *Request) namesContenders() bool {
	return f.Contenders != "supported" && f.Contenders != "all"
}

// candidates returns the contenders that the request names, after a check that they are known,
// or all that the venue considers.
func (f *Request) candidates(catalogue *Catalogue, venue Venue) ([]*contender.Contender, error) {
	if !f.namesContenders() {
		return venue.Candidates(catalogue.Contenders), nil
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
	ids, err := venue.CheckNames(ids)
	if err != nil {
		return nil, err
	}
	return catalogue.Pick(ids)
}

// question returns what the arena must be asked about the job.
func (j *Job) question() SurveyTask {
	ids := []string{j.Record.Baseline}
	for _, c := range j.candidates {
		ids = append(ids, c.ID)
	}
	for _, entry := range j.Record.Plan.Contenders { // of a resumed run
		ids = append(ids, entry.ID)
	}
	var paths []string
	for _, step := range j.Record.Plan.Steps {
		paths = append(paths, step.Path)
	}
	return SurveyTask{Contenders: compact(ids), Paths: compact(paths)}
}

// complete completes the plan by what the arena says: which contenders run on which
// underlays, in slices or not, and which steps they lack. guest is that of the worker.
// A resumed run keeps its plan.
func (j *Job) complete(s *Survey, guest *vm.Facts) error {
	if j.Resume {
		return j.checkContenders(s)
	}
	run := &j.Record
	run.Arena = s.Arena
	if guest != nil { // chosen with it
		run.Plan.Settings["cpus"], run.Plan.Settings["accel"] = j.request.CPUs, guest.Accel()
	}
	baselines, err := j.enlist(s, guest != nil)
	if err != nil {
		return err
	}
	j.planSlices(s, baselines)
	j.findGaps(s)
	return j.End.tooShort(&run.Plan)
}

// enlist puts the contenders that run into the plan: first the baseline, once for every
// underlay that another contender runs on, then the others. Contenders that can't run go
// to the run's list of unsupported ones. First it says which contenders another kernel may
// run. It returns on how many underlays the baseline is.
func (j *Job) enlist(s *Survey, inGuest bool) (baselines int, err error) {
	f, run, own, choice := j.request, &j.Record, j.Venue.Own(), j.Venue.Traits().Choice
	log := console.Logger(os.Stderr)
	base, err := j.Catalogue.Contender(run.Baseline)
	if err != nil {
		return 0, err
	}
	if u := s.Contenders[base.ID].Unsupported; u != nil {
		if choice || f.Given["baseline"] || len(own) != 1 || j.named && slices.Contains(j.candidates, base) {
			return 0, fmt.Errorf("baseline %s: %w", base.ID, u)
		}
		log.Warn("baseline left out: there are no ratios to it", "contender", base.ID, "why", u)
		if j.named {
			run.Unsupported = append(run.Unsupported, result.Unsupported{Contender: base.ID, Reason: u.Reason, Remedy: u.Remedy})
		}
		base = own[0]
		run.Baseline = base.ID
	}
	var entries []result.Entry
	var underlays []string
	var left []error         // why contenders that the user named are left out
	var otherKernel []string // contenders that this kernel can't run, and another may
	run.Contenders = append(run.Contenders, j.Venue.Describe(base))
	for _, c := range j.candidates {
		surveyed := s.Contenders[c.ID]
		if u := surveyed.Unsupported; u != nil {
			why := *u
			if u.OtherKernel && !inGuest {
				why.Remedy += ", or run it in a guest: --arena " + MicroVM
			}
			if (j.named || slices.Contains(own, c)) && !u.Program && !u.Denied && (!u.OtherKernel || f.Arena == Lab) {
				return 0, fmt.Errorf("contender %s: %w", c.ID, &why)
			}
			if u.OtherKernel && !inGuest {
				otherKernel = append(otherKernel, c.ID)
			}
			if j.named {
				left = append(left, fmt.Errorf("contender %s: %w", c.ID, &why))
				log.Warn("contender left out", "contender", c.ID, "why", &why)
			}
			run.Unsupported = append(run.Unsupported, result.Unsupported{Contender: c.ID, Reason: why.Reason, Remedy: why.Remedy, OtherKernel: u.OtherKernel})
			continue
		}
		if !slices.Contains(underlays, surveyed.Underlay) {
			underlays = append(underlays, surveyed.Underlay)
		}
		if c.ID == base.ID {
			continue
		}
		entries = append(entries, result.Entry{ID: c.ID, Underlay: surveyed.Underlay})
		run.Contenders = append(run.Contenders, j.Venue.Describe(c))
	}
	for _, c := range j.Copies {
		s.Contenders[c.ID] = s.Contenders[base.ID]
		entries = append(entries, result.Entry{ID: c.ID, Underlay: s.Contenders[c.ID].Underlay})
		run.Contenders = append(run.Contenders, j.Venue.Describe(c))
	}
	if left != nil && (len(underlays) == 0 || choice && len(entries) == 0) {
		return 0, exit.With(exit.Unsupported, errors.Join(left...))
	}
	if otherKernel != nil {
		log.Warn("left out, since another kernel or other rights are needed: "+unit.Plural(len(otherKernel), "contender"), "measure", f.inGuest(otherKernel))
	}
	for _, underlay := range underlays {
		run.Plan.Contenders = append(run.Plan.Contenders, result.Entry{ID: base.ID, Underlay: underlay})
	}
	run.Plan.Contenders = append(run.Plan.Contenders, entries...)
	if len(run.Plan.Contenders) == 0 {
		return 0, exit.With(exit.Unsupported, errors.New("none of the contenders can run here; `cnibench probe` says why"))
	}
	run.Plan.Rounds = cmp.Or(run.Plan.Rounds, analysis.RoundsForContenders(len(entries)+1))
	return len(underlays), nil
}

// planSlices plans that all contenders are up at the same time and take slices in
// turns: all in one block if the arena has room for their loads, else in blocks beside the
// baseline. There are no slices if there is no room for another load beside the baseline's,
// or if each contender must be up alone: if a step measures an idle contender, or is between
// the nodes of a cluster, whose ports all contenders share. baselines is on how many underlays
// the baseline is.
func (j *Job) planSlices(s *Survey, baselines int) {
	p := &j.Record.Plan
	single := j.Single || slices.ContainsFunc(p.Steps, func(s result.Step) bool {
		return s.Workload == analysis.Idle || s.Path == arena.PathHost && !j.Venue.Traits().ThisMachine
	})
	if p.Slice > 0 && !j.request.Given["slice"] {
		p.Slice = unit.Seconds(s.Slice.Seconds())
	}
	n, room := len(p.Contenders), 1
	if p.Slice > 0 && !single {
		room = min(n, s.MaxUp)
	}
	if n < 2 || room < min(n, baselines+1) {
		p.Slice = 0
		j.request.lengthen(p)
		return
	}
	p.Together, p.Lead = room, unit.Seconds(s.Lead.Seconds())
}

// findGaps adds to the plan's gaps the steps whose path a contender lacks.
func (j *Job) findGaps(s *Survey) {
	run := &j.Record
	for _, entry := range run.Plan.Contenders {
		for _, step := range run.Plan.Steps {
			u, gap := s.Contenders[entry.ID].Missing[step.Path], result.Gap{Contender: entry.ID, Step: step.ID}
			if u == nil || slices.Contains(run.Plan.Gaps, gap) { // the baseline's, on another underlay
				continue
			}
			run.Plan.Gaps = append(run.Plan.Gaps, gap)
			if entry.ID != run.Baseline { // the baseline's figures from pod to pod stand in for its own
				run.Unsupported = append(run.Unsupported, result.Unsupported{Contender: entry.ID, Step: step.ID, Reason: u.Reason, Remedy: u.Remedy})
			}
		}
	}
}

// checkContenders refuses to resume a run with a contender that can't run any more, or that
// another file describes now: new samples must be comparable with the sealed ones.
func (j *Job) checkContenders(s *Survey) error {
	run := &j.Record
	for _, entry := range run.Plan.Contenders {
		c, err := j.Catalogue.Contender(entry.ID)
		if err != nil {
			return err
		}
		if u := s.Contenders[c.ID].Unsupported; u != nil {
			return fmt.Errorf("contender %s: %w", c.ID, u)
		}
		at := slices.IndexFunc(run.Contenders, func(i result.ContenderInfo) bool { return i.ID == c.ID })
		if at >= 0 && run.Contenders[at].SHA256 != "" && run.Contenders[at].SHA256 != c.SHA256 {
			return exit.Usage("contender %s: its file is not the one with which the run was begun; go on with cnibench %s, or begin a new run", c.ID, run.Tool)
		}
	}
	return nil
}

// equip tells the venue which programs the steps run.
func equip(venue Venue, steps []result.Step) error {
	var wanted []string
	for _, step := range steps {
		wanted = append(wanted, stepPrograms(step.Workload, step.Params)...)
	}
	return venue.Equip(compact(wanted))
}

// lengthen gives the plan longer windows and warm-ups where the user has chosen none: for runs
// in which building a round takes longer than its loads, or contenders take no turns.
func (f *Request) lengthen(p *result.Plan) {
	ours := !f.ForSelfTest && f.SuiteText == ""
	if ours && !f.Given["duration"] {
		p.Duration = max(p.Duration, 1)
	}
	if ours && !f.Given["warmup"] {
		p.Warmup = max(p.Warmup, 0.3)
	}
}

// minSlice is the shortest slice that can be asked for.
const minSlice = 20 * time.Millisecond
