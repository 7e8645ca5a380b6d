package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
)

// Runner runs a plan in an arena and seals its samples.
type Runner struct {
	Arena     arena.Arena
	Catalogue func(id string) (*contender.Contender, error)
	Store     *result.Store
	Exe       string       // this program, as the endpoints start it for agents
	Kernel    string       // release of the kernel that the arena runs on
	LineRate  unit.BitRate // of each node's link; 0 is unlimited
	MTU       int          // of the underlay, bytes
	Progress  func(Progress)
	Log       *slog.Logger
	// Search, if set, is asked before each round whether it takes the steps whose workload
	// searches for a rate (workload.Info.Search). Such a step may take as long as dozens of
	// others.
	Search func() bool
	// Enough, if set, is called after each complete round with its number and how much of
	// its time such steps took; true ends the run.
	Enough func(round int, searched time.Duration) bool
	// Keep, if set, is called with the endpoints of the last contender while that
	// contender is up. The contender goes down when Keep returns.
	Keep func(ctx context.Context, endpoints []string)

	lookup   func(name string) (workload.Workload, error) // for tests; nil is workload.Lookup
	detector disturbanceDetector                          // for tests; nil is the machine's

	sealed   map[result.Key]bool
	order    int
	searched time.Duration    // what steps that search took of this round
	unclean  []error          // of contenders that did not go down cleanly
	held     []*result.Sample // samples that a full disk has refused
}

// workload finds a workload by name.
func (r *Runner) workload(name string) (workload.Workload, error) {
	if r.lookup != nil {
		return r.lookup(name)
	}
	return workload.Lookup(name)
}

// Progress is where a run stands.
type Progress struct {
	Done, Total int           // steps
	Text        string        // what is going on now
	Remaining   time.Duration // estimated from what is done
}

// ErrLeft is in the error of Run when a contender did not go down cleanly:
// something of it may be left in the arena.
var ErrLeft = errors.New("a contender did not go down cleanly")

// Run takes the plan's steps that are not sealed yet. When ctx ends, Run drops the
// current step, takes the network down and returns ctx's error; the sealed samples
// are a valid run that can be resumed. A contender that does not go down does not end
// the run: Run returns ErrLeft after all other steps.
func (r *Runner) Run(ctx context.Context, plan *result.Plan, sealed map[result.Key]bool) (err error) {
	defer func() { err = errors.Join(append([]error{err, r.release()}, r.unclean...)...) }()
	visits := dropSealed(Visits(plan), sealed)
	clock := newEstimate(plan, visits)
	r.sealed, r.order = sealed, len(sealed)
	begun, search := 0, true
	for rest, ended := groups(plan, visits), false; len(rest) > 0 && !ended; rest = rest[1:] {
		if err := ctx.Err(); err != nil {
			return err
		}
		round := rest[0][0].Round
		if round != begun {
			begun, search, r.searched = round, r.Search == nil || r.Search(), 0
		}
		now := rest[0]
		if !search {
			now = dropDone(now, func(_ Visit, s result.Step) bool { return r.searches(s) })
			clock.total -= stepsIn(rest[0]) - stepsIn(now)
		}
		err := r.round(ctx, plan, now, clock, func() bool {
			last := len(rest) == 1
			complete := last || rest[1][0].Round != round
			ended = complete && r.Enough != nil && r.Enough(round, r.searched) || last
			return ended
		})
		if err != nil {
			return err
		}
	}
	r.Progress(clock.now("done"))
	return nil
}

// upContender is a contender of a round that has come up, or failed to.
type upContender struct {
	Visit
	where      string // for progress and errors
	deployment *deployment
	failed     error // why it did not come up
	// memory is what the machine would use with this contender alone, bytes: its use
	// before any contender came up, and what this contender added. 0 where only one
	// contender is up, or where it is unknown.
	memory     float64
	namespaces map[string]bool // the network namespaces of its processes; none where unknown
}

// round brings up the contenders of a round that stand together, takes their
// steps one after the other, and takes them down. Before that it asks ends whether the run
// ends. Errors end the run; a failure of one contender is no error but the reason in its
// sample.
func (r *Runner) round(ctx context.Context, plan *result.Plan, visits []Visit, clock *estimate, ends func() bool) (err error) {
	var all []*upContender
	takeDown := func(list []*upContender) {
		for _, s := range list {
			r.noteLeft(s.where, s.deployment.close(ctx))
		}
	}
	defer func() { takeDown(all) }()
	bare := sysmon.ReadUsedMemory()
	for _, v := range visits {
		before, others := sysmon.ReadUsedMemory(), netNamespaces()
		s := &upContender{Visit: v, where: plan.InRound(v.Round) + ": " + entryName(v.Entry)}
		all = append(all, s)
		r.Progress(clock.now(s.where))
		if err := r.bringUp(ctx, s); err != nil {
			return err
		}
		if len(visits) > 1 && before > 0 && inLab() {
			s.memory = bare + max(0, sysmon.ReadUsedMemory()-before)
		}
		s.namespaces = listAddedNamespaces(others, netNamespaces())
	}
	for _, step := range stepsOf(plan, visits) {
		if err := r.takeStep(ctx, plan, step, all, clock); err != nil {
			return err
		}
	}
	if !ends() || r.Keep == nil || len(all) == 0 {
		return nil
	}
	if kept := all[len(all)-1]; kept.deployment.net != nil {
		takeDown(all[:len(all)-1])
		all = all[len(all)-1:]
		r.Keep(ctx, kept.deployment.names())
	}
	return nil
}

// inLab says whether this process is the first of the lab's container. Then this machine
// is the measured one, and the processes that this one sees are the run's.
func inLab() bool { return os.Getpid() == 1 }

// bringUp brings one contender up and seals how long that took.
func (r *Runner) bringUp(ctx context.Context, s *upContender) error {
	begin := time.Now()
	var took time.Duration
	s.deployment, took, s.failed = r.setUp(ctx, s.Entry, s.Steps)
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.failed != nil {
		r.Log.Warn("contender does not work", "contender", entryName(s.Entry), "round", s.Round, "error", s.failed)
	}
	return r.sealSetup(ctx, s, begin, took)
}

// takeStep takes one step with every contender whose sample of it is not sealed: in
// turns, slice by slice, where the plan has slices and the load can pause, else one
// contender after the other.
func (r *Runner) takeStep(ctx context.Context, plan *result.Plan, step result.Step, all []*upContender, clock *estimate) error {
	var up []*upContender
	for _, s := range all {
		if !slices.ContainsFunc(s.Steps, func(left result.Step) bool { return left.ID == step.ID }) {
			continue
		}
		if s.failed == nil {
			up = append(up, s)
			continue
		}
		sample := r.sample(s.Visit, step)
		invalidate(sample, "setup_failed", fmt.Sprintf("the contender did not come up: %v", s.failed))
		if err := r.seal(sample); err != nil {
			return err
		}
		clock.step()
	}
	if len(up) == 0 {
		return nil
	}
	if w, ok := r.sliceable(plan, step); ok {
		return r.cycles(ctx, plan, step, w, up, clock)
	}
	if begin := time.Now(); r.searches(step) {
		defer func() { r.searched += time.Since(begin) }()
	}
	for _, s := range shuffle(up, plan.Seed, up[0].Round, step.ID) {
		r.Progress(clock.now(s.where + ": " + step.ID))
		sample := r.sample(s.Visit, step)
		r.step(ctx, plan, s, sample, step)
		if ctx.Err() != nil { // spoiled by the interruption: dropped, so that --resume repeats it
			return ctx.Err()
		}
		if err := r.seal(sample); err != nil {
			return err
		}
		clock.step()
	}
	return nil
}

// searches says whether the step's workload searches for a rate.
func (r *Runner) searches(step result.Step) bool {
	w, err := r.workload(step.Workload)
	return err == nil && w.Info().Search > 0
}

// noteLeft keeps the reason why a contender did not go down, for the end of the run.
// The run goes on with the next contender: the arena refuses to bring it up where
// the remains of this one would disturb it.
func (r *Runner) noteLeft(where string, err error) {
	if err == nil {
		return
	}
	r.Log.Warn("contender did not go down cleanly", "at", where, "error", err)
	r.unclean = append(r.unclean, fmt.Errorf("%s: %w: %w", where, ErrLeft, err))
}

func entryName(e result.Entry) string {
	if e.Underlay == "" || e.Underlay == "switch" {
		return e.ID
	}
	return e.ID + " on " + e.Underlay
}

// sample returns a new sample of the visit with everything that is known before the step.
func (r *Runner) sample(v Visit, step result.Step) *result.Sample {
	r.order++
	return &result.Sample{
		Schema: result.SampleSchema, Contender: v.Entry.ID, Underlay: v.Entry.Underlay, Kernel: r.Kernel,
		Round: v.Round, Order: r.order, Step: step.ID, Workload: step.Workload, Path: step.Path,
		Started: time.Now().UTC(), Verdict: result.Valid, Metrics: map[string]float64{},
	}
}

func invalidate(s *result.Sample, code, text string) {
	s.Verdict = result.Invalid
	s.Reasons = append(s.Reasons, result.Reason{Code: code, Text: text})
}

// sealSetup seals the time to bring the contender up, and what installing it took, once a
// round. A resumed run that brings it up a second time in the round keeps the first.
func (r *Runner) sealSetup(ctx context.Context, up *upContender, begin time.Time, took time.Duration) error {
	v := up.Visit
	if r.sealed[result.Key{Contender: v.Entry.ID, Underlay: v.Entry.Underlay, Step: result.SetupStep, Round: v.Round}] {
		return nil
	}
	s := r.sample(v, result.Step{ID: result.SetupStep, Workload: result.SetupStep, Path: arena.PathPod})
	s.Started, s.Elapsed = begin.UTC(), unit.Seconds(took.Seconds())
	if up.failed != nil {
		invalidate(s, "setup_failed", up.failed.Error())
		return r.seal(s)
	}
	s.Metrics[result.SetupTime] = took.Seconds()
	effort, err := up.deployment.net.Effort(ctx)
	maps.Copy(s.Metrics, effort)
	if err != nil {
		s.Notes = append(s.Notes, result.Reason{Code: "effort_unknown", Text: "what the installation took could not be counted: " + err.Error()})
	}
	return r.seal(s)
}

// seal writes samples; samples that were taken together are written at once. A full
// disk does not end the run: seal marks the samples, keeps them in memory, and writes
// them with the next ones as soon as there is room.
func (r *Runner) seal(samples ...*result.Sample) error {
	for _, s := range samples {
		lists := [][]result.Reason{s.Reasons, s.Notes}
		if len(s.DroppedClocks) > 0 { // all spoiled clocks share one list of reasons
			lists = append(lists, s.DroppedClocks[0].Reasons)
		}
		for _, list := range lists {
			for i := range list {
				list[i].Text = r.Arena.Anonymous(list[i].Text)
			}
		}
	}
	r.held = append(r.held, samples...)
	err := r.Store.SealAll(r.held)
	if errors.Is(err, result.ErrNoSpace) {
		r.Log.Warn("disk full: samples are held in memory", "samples", len(r.held))
		for _, s := range samples {
			if !slices.ContainsFunc(s.Reasons, func(r result.Reason) bool { return r.Code == "disk_full" }) {
				invalidate(s, "disk_full", "the disk was full when the sample was sealed; its raw files may be incomplete")
			}
		}
		return nil
	}
	if err == nil {
		r.held = nil
	}
	return err
}

// release writes the samples that a full disk has refused. Its error says how many are lost.
func (r *Runner) release() error {
	for i, s := range r.held {
		if err := r.Store.Seal(s); err != nil {
			return fmt.Errorf("%d samples could not be written: %w; free some space and go on with --resume", len(r.held)-i, err)
		}
	}
	r.held = nil
	return nil
}

// estimate computes the remaining time of a run from the time of the steps so far.
type estimate struct {
	total, done int
	part        float64 // the done part of the steps that run now; 1 is one step of one contender
	begin       time.Time
	guess       time.Duration // time of a step, until the first step is done
	maximum     time.Duration // limit of the whole run; 0 is none
}

func newEstimate(plan *result.Plan, visits []Visit) *estimate {
	e := &estimate{begin: time.Now(), maximum: plan.MaxTime.Duration()}
	e.total = stepsIn(visits)
	const overhead = 700 * time.Millisecond // of a step: start, stop and a share of the set-up
	e.guess = (plan.Warmup + plan.Duration).Duration() + overhead
	return e
}

func (e *estimate) step() { e.done++ }

func (e *estimate) now(text string) Progress {
	each, done := e.guess, float64(e.done)+e.part
	if done > 0 {
		each = time.Duration(float64(time.Since(e.begin)) / done)
	}
	remaining := time.Duration(float64(each) * (float64(e.total) - done))
	if e.maximum > 0 {
		remaining = min(remaining, max(0, e.maximum-time.Since(e.begin)))
	}
	return Progress{Done: int(done), Total: e.total, Text: text, Remaining: remaining}
}
