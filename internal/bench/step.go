package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
)

// stepPatience is how much longer than its search and its window a step may take: programs
// start and end, which under an emulated CPU takes seconds each.
const stepPatience = time.Minute

// stepRun is one step of one contender while it runs: its path, its recorders and its
// sample.
type stepRun struct {
	*upContender
	sample *result.Sample
	info   workload.Info
	pair   arena.Pair
	// servicesTook is how long programming the step's Services took.
	servicesTook time.Duration
	raw          *result.Folder
	watch        *watch
	params       workload.Params
	// foreign is the CPU time of processes that are not the run's (CPU-seconds per second,
	// on all CPUs of the machine); nil is unknown.
	foreign *float64
}

// prepare makes the step's path and starts the recorders at the nodes and pods, or
// at the nodes of client and server only. An error is in the sample.
func (r *Runner) prepare(ctx context.Context, at *upContender, s *result.Sample, step result.Step, everywhere bool) (d *stepRun, w workload.Workload, ok bool) {
	fail := func(code string, err error) (*stepRun, workload.Workload, bool) {
		invalidate(s, code, err.Error())
		return nil, nil, false
	}
	w, err := r.workload(step.Workload)
	if err != nil {
		return fail("workload_failed", err)
	}
	d = &stepRun{upContender: at, sample: s, info: w.Info(), raw: r.Store.Raw(s)}
	if d.params, err = workload.Complete(d.info, step.Params); err != nil {
		return fail("workload_failed", err)
	}
	if d.pair, d.servicesTook, err = at.deployment.pair(ctx, w, d.params, step); err != nil {
		return fail("workload_failed", err)
	}
	names := at.deployment.names()
	if !everywhere {
		names = slices.Compact([]string{d.pair.Client.Node(), d.pair.Server.Node()})
	}
	if d.watch, err = at.deployment.watch(ctx, names); err != nil {
		_, _ = d.watch.stop() // the recorders that did start
		return fail("recorder_failed", err)
	}
	return d, w, true
}

// session returns what the workload needs to know of the step.
func (d *stepRun) session(p *result.Plan) *workload.Session {
	return &workload.Session{
		Client: d.pair.Client, Server: d.pair.Server, Target: d.pair.Target, Ports: d.pair.Ports, Params: d.params,
		Warmup: p.Warmup.Duration(), Duration: p.Duration.Duration(),
		Raw: d.raw, Begin: d.watch.begin, End: d.watch.end,
	}
}

// step drives one step while every endpoint is recorded, and fills in the
// sample with its verdict. It returns no error: a failure is a reason in the sample.
func (r *Runner) step(ctx context.Context, plan *result.Plan, at *upContender, s *result.Sample, step result.Step) {
	d, w, ok := r.prepare(ctx, at, s, step, true)
	if !ok {
		return
	}
	session := d.session(plan)
	limit, cancel := context.WithTimeout(ctx, session.Warmup+w.Info().Search+session.Duration+stepPatience)
	detector := newLocalMachine()
	detector.begin()
	out, err := w.Drive(limit, session)
	_, usage := detector.end()
	d.foreign = usage.foreignRate()
	late := limit.Err() != nil && ctx.Err() == nil
	cancel()
	done := stepOutcome{out: out, err: err, code: "workload_failed", windows: map[string][]sysmon.Window{}}
	done.recordings, done.recordErr = d.watch.stop()
	for name, begin := range d.watch.begins {
		done.windows[name] = []sysmon.Window{{Begin: begin, End: d.watch.ends[name]}}
	}
	if late {
		done.code = "workload_timeout"
	}
	r.conclude(plan, d, done)
}

// stepOutcome is the outcome of a stepRun.
type stepOutcome struct {
	out  workload.Outcome
	err  error  // why the workload failed
	code string // of the sample's reason for err
	// The measured windows and the recording, both by node.
	windows    map[string][]sysmon.Window
	recordings map[string]*sysmon.Recording
	recordErr  error
}

// conclude fills in the sample: the workload's metrics or its error, the figures from
// the recordings of the windows, and the verdict.
func (r *Runner) conclude(plan *result.Plan, d *stepRun, done stepOutcome) {
	out, err, recErr := done.out, done.err, done.recordErr
	s := d.sample
	if err != nil {
		invalidate(s, done.code, err.Error())
	}
	if out.Metrics != nil {
		s.Metrics = out.Metrics
	}
	if s.Path == arena.PathService {
		s.Metrics[result.ServiceSyncTime] = d.servicesTook.Seconds()
	}
	s.Histograms, s.Notes = out.Histograms, slices.Concat(d.deployment.net.Notes(), out.Notes)
	for _, f := range out.Faults {
		invalidate(s, f.Code, f.Text)
	}
	if fault := d.deployment.net.Fault(); fault != nil {
		invalidate(s, "network_failed", fault.Error())
	}
	cpus := 0
	if recErr == nil {
		if d.foreign != nil {
			s.Metrics[result.CPUForeign] = *d.foreign
		}
		cpus, recErr = r.figures(d, done.windows, done.recordings, deductions{spin: out.ClientSpin, pauses: out.Pauses})
	}
	if d.memory > 0 && s.Metrics[result.MemoryUsed] > 0 {
		s.Metrics[result.MemoryUsed] = d.memory // the recording shows all contenders that are up
	}
	if recErr != nil && err == nil {
		invalidate(s, "recorder_failed", recErr.Error())
	}
	if err != nil {
		return // missing results are a consequence of this error
	}
	planned := plan.Duration
	if s.Slices != nil { // cycles that were left out make no window short
		planned = plan.Slice * unit.Seconds(len(s.Slices.Cycles))
	}
	judged := result.JudgeContext{
		LineRate: r.LineRate, Ceiling: r.ceiling(s), Duration: planned, CPUs: cpus,
		Required: d.info.Metrics,
	}
	for _, reason := range result.Judge(s, judged) {
		invalidate(s, reason.Code, reason.Text)
	}
	s.DropGeneratorClocks(out.ClockFaults)
}

// ceiling returns the highest goodput that the link allows the sample's contender,
// with UDP, which has the smallest header. 0 is unknown.
func (r *Runner) ceiling(s *result.Sample) unit.BitRate {
	c, err := r.Catalogue(s.Contender)
	if err != nil || r.LineRate <= 0 {
		return 0
	}
	return unit.Ceiling(r.LineRate, r.MTU, int(c.Datapath.Overhead), true)
}

// figures derives metrics from the recordings of the windows, both by node, and writes
// the recordings as raw files. It returns the number of CPUs of client and server
// together.
func (r *Runner) figures(d *stepRun, windows map[string][]sysmon.Window, recordings map[string]*sysmon.Recording, deduct deductions) (cpus int, err error) {
	if err := writeRecordings(d.raw, d.watch, recordings); err != nil {
		return 0, err
	}
	s, pair := d.sample, d.pair
	var sides [2]side
	for i, e := range []arena.Endpoint{pair.Client, pair.Server} {
		rec := recordings[e.Node()]
		if rec == nil || len(windows[e.Node()]) == 0 {
			return 0, fmt.Errorf("%s: the window was not recorded", e.Node())
		}
		if rec, err = rec.Within(windows[e.Node()]); err != nil {
			return 0, fmt.Errorf("%s: %w", e.Node(), err)
		}
		sides[i] = side{rec: rec, begin: rec.Times[0], end: rec.Times[len(rec.Times)-1], cpus: e.CPUs()}
	}
	s.Elapsed = unit.Seconds(sides[0].end.Sub(sides[0].begin).Seconds())
	if err := machineFigures(s, d.deployment.net.Uplink(), sides[0], sides[1]); err != nil {
		return 0, err
	}
	if separable(pair) {
		cpus = sides[0].count() + sides[1].count()
		deduct.foreign = foreignOn(cpus, sides[0], s)
		return cpus, cpuFigures(s, sides[0], sides[1], deduct)
	}
	// The CPU time of two sides on the same CPUs can't be told apart: one side gets all.
	both := sides[0]
	both.cpus = slices.Compact(slices.Sorted(slices.Values(slices.Concat(pair.Client.CPUs(), pair.Server.CPUs()))))
	deduct.foreign = foreignOn(both.count(), both, s)
	return both.count(), addSharedCPUFigures(s, both, deduct)
}

// foreignOn returns the CPU time (CPU-seconds per second) of processes that are not the
// run's, on the side's machine. It returns 0 if fewer CPUs than the machine's are
// measured: nobody knows on which CPUs those processes ran.
func foreignOn(cpus int, on side, s *result.Sample) float64 {
	if cpus < len(on.machine()) {
		return 0
	}
	return s.Metrics[result.CPUForeign]
}

// separable reports whether the CPU time of client and server can be told apart: they are
// bound to different CPUs, or each has all CPUs of its own machine.
func separable(p arena.Pair) bool {
	client, server := p.Client.CPUs(), p.Server.CPUs()
	if len(client) == 0 || len(server) == 0 {
		return p.Client.Node() != p.Server.Node()
	}
	return !slices.ContainsFunc(client, func(cpu int) bool { return slices.Contains(server, cpu) })
}
