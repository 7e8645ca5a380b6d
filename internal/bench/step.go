package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/verdict"
	"github.com/cnibench/cnibench/internal/workload"
)

// stepPatience is how much longer than its window a step may take: programs
// start and end, which under an emulated CPU takes seconds each.
const stepPatience = time.Minute

// step drives one step while every endpoint is recorded, and fills in the
// sample with its verdict. It never fails: what goes wrong is the sample's
// reason.
func (r *Runner) step(ctx context.Context, plan *result.Plan, site *site, s *result.Sample, step result.Step) {
	w, err := workload.Lookup(step.Workload)
	if err != nil {
		invalidate(s, "workload_failed", err.Error())
		return
	}
	params, err := workload.Complete(w.Info(), step.Params)
	if err != nil {
		invalidate(s, "workload_failed", err.Error())
		return
	}
	pair, sync, err := site.pair(ctx, w, params, step)
	if err != nil {
		invalidate(s, "workload_failed", err.Error())
		return
	}
	raw := r.Store.Raw(s)
	watch, err := site.watch(ctx)
	if err != nil {
		_, _ = watch.stop() // those that did start
		invalidate(s, "recorder_failed", err.Error())
		return
	}
	session := &workload.Session{
		Client: pair.Client, Server: pair.Server, Target: pair.Target, Ports: pair.Ports, Params: params,
		Warmup: seconds(plan.Warmup), Duration: seconds(plan.Duration),
		Raw: raw, Begin: watch.begin, End: watch.end,
	}
	limit, cancel := context.WithTimeout(ctx, session.Warmup+session.Duration+stepPatience)
	out, err := w.Drive(limit, session)
	late := limit.Err() != nil && ctx.Err() == nil
	cancel()
	recordings, recErr := watch.stop()
	if err != nil {
		code := "workload_failed"
		if late {
			code = "workload_timeout"
		}
		invalidate(s, code, err.Error())
	}
	if out.Metrics != nil {
		s.Metrics = out.Metrics
	}
	if step.Path == arena.PathService {
		s.Metrics[result.ServiceSyncTime] = sync.Seconds()
	}
	s.Histograms, s.Notes = out.Histograms, slices.Concat(site.net.Notes(), out.Notes)
	for _, f := range out.Faults {
		invalidate(s, f.Code, f.Text)
	}
	if fault := site.net.Fault(); fault != nil {
		invalidate(s, "network_failed", fault.Error())
	}
	cpus := 0
	if recErr == nil {
		cpus, recErr = r.figures(s, pair, watch, recordings, raw, out.ClientSpin)
	}
	if recErr != nil && err == nil {
		invalidate(s, "recorder_failed", recErr.Error())
	}
	if err != nil {
		return // that results are missing is the consequence
	}
	context := verdict.Context{
		LineRate: r.LineRate, Ceiling: r.ceiling(s), Duration: plan.Duration, CPUs: cpus,
		Required: w.Info().Metrics,
	}
	for _, reason := range verdict.Judge(s, context) {
		invalidate(s, reason.Code, reason.Text)
	}
	s.SpoilGenerator(out.Spoiled)
}

// ceiling is the most goodput that the link leaves to the sample's contender:
// of UDP, whose header is the smallest. 0 is unknown.
func (r *Runner) ceiling(s *result.Sample) unit.BitRate {
	c, err := r.Catalogue(s.Contender)
	if err != nil || r.LineRate <= 0 {
		return 0
	}
	return unit.Ceiling(r.LineRate, r.MTU, int(c.Datapath.Overhead), true)
}

// figures derives metrics from the recordings and keeps them as raw files. It
// returns the number of CPUs of client and server together.
func (r *Runner) figures(s *result.Sample, pair arena.Pair, w *watch, recordings map[string]*sysmon.Recording, raw *result.Folder, spin float64) (cpus int, err error) {
	if err := writeRecordings(raw, w, recordings); err != nil {
		return 0, err
	}
	var sides [2]side
	for i, e := range []arena.Endpoint{pair.Client, pair.Server} {
		sides[i] = side{rec: recordings[e.Node()], begin: w.begins[e.Node()], end: w.ends[e.Node()], cpus: e.CPUs()}
		if sides[i].rec == nil || sides[i].begin.IsZero() || sides[i].end.IsZero() {
			return 0, fmt.Errorf("%s: the window was not recorded", e.Node())
		}
	}
	s.Elapsed = unit.Seconds(sides[0].end.Sub(sides[0].begin).Seconds())
	if err := machineFigures(s, w.site.net.Uplink(), sides[0], sides[1]); err != nil {
		return 0, err
	}
	if apart(pair) {
		return sides[0].count() + sides[1].count(), cpuFigures(s, sides[0], sides[1], spin)
	}
	// Both sides on the same CPUs can't be told apart: all of it is one side's.
	both := sides[0]
	both.cpus = slices.Compact(slices.Sorted(slices.Values(slices.Concat(pair.Client.CPUs(), pair.Server.CPUs()))))
	return both.count(), sharedCPUFigures(s, both, spin)
}

// apart says that the CPU time of client and server can be told apart: they
// are on different CPUs, or on different machines with all of theirs.
func apart(p arena.Pair) bool {
	client, server := p.Client.CPUs(), p.Server.CPUs()
	if len(client) == 0 || len(server) == 0 {
		return p.Client.Node() != p.Server.Node()
	}
	return !slices.ContainsFunc(client, func(cpu int) bool { return slices.Contains(server, cpu) })
}

// writeRecordings writes all recordings of the step as one OpenMetrics file.
func writeRecordings(raw *result.Folder, w *watch, recordings map[string]*sysmon.Recording) (err error) {
	f, err := raw.Create("metrics.om.zst")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := zstd.NewWriter(f)
	if err != nil {
		return err
	}
	var list []*sysmon.Recording
	for _, name := range w.names {
		list = append(list, recordings[name])
	}
	if err := sysmon.WriteOpenMetrics(io.Writer(z), list...); err != nil {
		return err
	}
	return z.Close()
}

// watch records every endpoint of a site and notes the marks of the window.
type watch struct {
	site         *site
	names        []string
	mu           sync.Mutex
	begins, ends map[string]time.Time
	errs         []error
}

// watch starts the recorders of all agents, and first those agents that have
// ended since the step before.
func (s *site) watch(ctx context.Context) (*watch, error) {
	w := &watch{site: s, names: s.names(), begins: map[string]time.Time{}, ends: map[string]time.Time{}}
	record := func(_ string, a *agent.Client) error { return a.Record(context.Background()) }
	err := w.all(record)
	if errors.Is(err, agent.ErrEnded) {
		_, _ = w.stop() // those that did start
		if err = s.mend(ctx); err == nil {
			err = w.all(record)
		}
	}
	return w, err
}

// all asks every agent at once.
func (w *watch) all(ask func(name string, a *agent.Client) error) error {
	errs := make([]error, len(w.names))
	var wg sync.WaitGroup
	for i, name := range w.names {
		wg.Go(func() { errs[i] = ask(name, w.site.agents[name]) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (w *watch) begin() { w.mark(w.begins) }
func (w *watch) end()   { w.mark(w.ends) }

func (w *watch) mark(at map[string]time.Time) {
	err := w.all(func(name string, a *agent.Client) error {
		t, err := a.Mark(context.Background())
		if err != nil {
			return err
		}
		w.mu.Lock()
		at[name] = t
		w.mu.Unlock()
		return nil
	})
	w.errs = append(w.errs, err)
}

// stop ends the recorders and returns what they saw, by endpoint.
func (w *watch) stop() (map[string]*sysmon.Recording, error) {
	recordings := map[string]*sysmon.Recording{}
	err := w.all(func(name string, a *agent.Client) error {
		rec, err := a.Stop(context.Background())
		if err != nil {
			return err
		}
		w.mu.Lock()
		recordings[name] = rec
		w.mu.Unlock()
		return nil
	})
	return recordings, errors.Join(append(w.errs, err)...)
}

func seconds(s unit.Seconds) time.Duration { return time.Duration(float64(s) * float64(time.Second)) }
