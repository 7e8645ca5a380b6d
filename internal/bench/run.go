package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/prometheus/procfs"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
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
	// Enough, if set, is asked after each round that is complete, with its number; true
	// ends the run.
	Enough func(round int) bool
	// Keep, if set, is called with the endpoints of the last contender while
	// it is still up; that goes down when Keep returns.
	Keep func(ctx context.Context, endpoints []string)

	lookup func(name string) (workload.Workload, error) // a test's; nil is workload.Lookup
	gate   gate                                         // a test's; nil is the machine's

	sealed map[result.Key]bool
	order  int
	left   []error          // contenders that did not go down cleanly
	held   []*result.Sample // sealed by the runner, refused by a full disk
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

// Run goes through what is left of the plan. When ctx ends, the step under
// way is dropped, the network is taken down, and ctx's error comes back: what
// was sealed is a valid run that can be resumed. A contender that does not go
// down ends no run; ErrLeft comes back when all is measured.
func (r *Runner) Run(ctx context.Context, plan *result.Plan, sealed map[result.Key]bool) (err error) {
	defer func() { err = errors.Join(append([]error{err, r.release()}, r.left...)...) }()
	visits := left(Visits(plan), sealed)
	clock := newEstimate(plan, visits)
	r.sealed, r.order = sealed, len(sealed)
	for turns := groups(plan, visits); len(turns) > 0; turns = turns[1:] {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.round(ctx, plan, turns[0], clock, len(turns) == 1); err != nil {
			return err
		}
		round := turns[0][0].Round
		if complete := len(turns) == 1 || turns[1][0].Round != round; complete && r.Enough != nil && r.Enough(round) {
			break
		}
	}
	r.Progress(clock.now("done"))
	return nil
}

// standing is a contender of a round that has come up, or failed to.
type standing struct {
	Visit
	where  string // for progress and errors
	site   *site
	failed error // why it did not come up
	// memory is what the machine uses with this contender alone, bytes: what it used
	// before the first one came up, and what this one added. 0 where it stands alone,
	// or is not known.
	memory float64
}

// round brings up the contenders of a round that stand together, takes their
// steps one after the other, and takes them down. Errors end the run; whatever
// goes wrong with a contender is a sample with its reason.
func (r *Runner) round(ctx context.Context, plan *result.Plan, visits []Visit, clock *estimate, last bool) (err error) {
	var all []*standing
	takeDown := func(list []*standing) {
		for _, s := range list {
			r.noteLeft(s.where, s.site.close(ctx))
		}
	}
	defer func() { takeDown(all) }()
	bare := usedMemory()
	for _, v := range visits {
		before := usedMemory()
		s := &standing{Visit: v, where: plan.InRound(v.Round) + ": " + entryName(v.Entry)}
		all = append(all, s)
		r.Progress(clock.now(s.where))
		if err := r.raise(ctx, s); err != nil {
			return err
		}
		if len(visits) > 1 && before > 0 && inLab() {
			s.memory = bare + max(0, usedMemory()-before)
		}
	}
	for _, step := range stepsOf(plan, visits) {
		if err := r.take(ctx, plan, step, all, clock); err != nil {
			return err
		}
	}
	if kept := all[len(all)-1]; last && r.Keep != nil && kept.site.net != nil {
		takeDown(all[:len(all)-1])
		all = all[len(all)-1:]
		r.Keep(ctx, kept.site.names())
	}
	return nil
}

// inLab says that this machine is the one that is measured, and that the processes that
// this one sees are the run's: it is the first process of the lab's container.
func inLab() bool { return os.Getpid() == 1 }

// usedMemory is what programs and the kernel use of this machine's memory, bytes, as
// sysmon's node_memory_used_bytes; 0 where it can't be read.
func usedMemory() float64 {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return 0
	}
	m, err := proc.Meminfo()
	if err != nil || m.MemTotalBytes == nil || m.MemFreeBytes == nil || m.BuffersBytes == nil || m.CachedBytes == nil || m.SReclaimableBytes == nil {
		return 0
	}
	return float64(*m.MemTotalBytes) - float64(*m.MemFreeBytes) - float64(*m.BuffersBytes) - float64(*m.CachedBytes) - float64(*m.SReclaimableBytes)
}

// raise brings one contender up and seals how long that took.
func (r *Runner) raise(ctx context.Context, s *standing) error {
	begin := time.Now()
	var took time.Duration
	s.site, took, s.failed = r.setUp(ctx, s.Entry, s.Steps)
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.failed != nil {
		r.Log.Warn("contender does not work", "contender", entryName(s.Entry), "round", s.Round, "error", s.failed)
	}
	return r.sealSetup(s.Visit, begin, took, s.failed)
}

// take takes one step with those contenders that have it left: in slices by turns
// where the plan has slices and the load can pause, else one after the other.
func (r *Runner) take(ctx context.Context, plan *result.Plan, step result.Step, all []*standing, clock *estimate) error {
	var up []*standing
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
	for _, s := range shuffled(up, plan.Seed, up[0].Round, step.ID) {
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

// noteLeft keeps why a contender did not go down, for the end of the run. The
// next one is measured all the same: it is its arena's to refuse it where what
// is left would disturb.
func (r *Runner) noteLeft(where string, err error) {
	if err == nil {
		return
	}
	r.Log.Warn("contender did not go down cleanly", "at", where, "error", err)
	r.left = append(r.left, fmt.Errorf("%s: %w: %w", where, ErrLeft, err))
}

func entryName(e result.Entry) string {
	if e.Underlay == "" || e.Underlay == "switch" {
		return e.ID
	}
	return e.ID + " on " + e.Underlay
}

// sample is a sample of the visit with what is known before the step.
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

// sealSetup seals the time to bring the contender up, once a round: a resumed
// run that comes back to the round keeps the first.
func (r *Runner) sealSetup(v Visit, begin time.Time, took time.Duration, failed error) error {
	if r.sealed[result.Key{Contender: v.Entry.ID, Underlay: v.Entry.Underlay, Step: result.SetupStep, Round: v.Round}] {
		return nil
	}
	s := r.sample(v, result.Step{ID: result.SetupStep, Workload: result.SetupStep, Path: arena.PathPod})
	s.Started, s.Elapsed = begin.UTC(), unit.Seconds(took.Seconds())
	if failed != nil {
		invalidate(s, "setup_failed", failed.Error())
	} else {
		s.Metrics[result.SetupTime] = took.Seconds()
	}
	return r.seal(s)
}

// seal writes samples, those of a step that were taken together with one write. A
// full disk does not end the run: the samples are held back, marked, and written as
// soon as there is room.
func (r *Runner) seal(samples ...*result.Sample) error {
	for _, s := range samples {
		lists := [][]result.Reason{s.Reasons, s.Notes}
		if len(s.Spoiled) > 0 { // its clocks share one list
			lists = append(lists, s.Spoiled[0].Reasons)
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

// release writes what a full disk held back, or says what is lost.
func (r *Runner) release() error {
	for i, s := range r.held {
		if err := r.Store.Seal(s); err != nil {
			return fmt.Errorf("%d samples could not be written: %w; free some space and go on with --resume", len(r.held)-i, err)
		}
	}
	r.held = nil
	return nil
}

// estimate tells the remaining time from the time that steps took so far.
type estimate struct {
	total, done int
	part        float64 // of the steps under way: how many of them are done
	begin       time.Time
	guess       time.Duration // of a step, before one is done
	most        time.Duration // that the run takes in all; 0: as long as its steps
}

func newEstimate(plan *result.Plan, visits []Visit) *estimate {
	e := &estimate{begin: time.Now(), most: seconds(plan.MaxTime)}
	for _, v := range visits {
		e.total += len(v.Steps)
	}
	const overhead = 700 * time.Millisecond // start, stop and a share of the set-up
	e.guess = time.Duration(float64(plan.Warmup+plan.Duration)*float64(time.Second)) + overhead
	return e
}

func (e *estimate) step() { e.done++ }

func (e *estimate) now(text string) Progress {
	each, done := e.guess, float64(e.done)+e.part
	if done > 0 {
		each = time.Duration(float64(time.Since(e.begin)) / done)
	}
	remaining := time.Duration(float64(each) * (float64(e.total) - done))
	if e.most > 0 {
		remaining = min(remaining, max(0, e.most-time.Since(e.begin)))
	}
	return Progress{Done: int(done), Total: e.total, Text: text, Remaining: remaining}
}
