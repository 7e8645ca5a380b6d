package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/cnibench/cnibench/internal/fdtable"
)

// mark is a moment of the window.
type mark int

const (
	begins mark = iota
	ends
)

// Run does the exchange with the target again and again until the window is
// over or ctx ends, which gives a result marked as interrupted. Errors:
// ErrConfig, a target that cannot be reached or answers wrongly at the start,
// limits on files or ports, ctx's if it ends before the window. What goes
// wrong later is counted in Result.Errors.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	threads, ownTables, err := spread(cfg)
	if err != nil {
		return nil, err
	}
	if err := checkPorts(cfg); err != nil {
		return nil, err
	}
	stamps, err := keepStamps()
	if err != nil {
		return nil, err
	}
	defer hangUp(stamps)
	size, err := firstAnswer(ctx, cfg)
	if err != nil {
		return nil, err
	}
	// Each loop keeps one of Go's processors for itself; everything else, such
	// as seeing that ctx has ended, needs another, also on a single CPU.
	if n := threads + 1; runtime.GOMAXPROCS(0) < n {
		runtime.GOMAXPROCS(n)
	}
	r := &run{cfg: cfg, cpus: cfg.CPUs, seconds: newCollector(threads, cfg.Log), marks: make(chan mark, 2)}
	if len(r.cpus) == 0 {
		r.cpus = usableCPUs()
	}
	defer r.close()
	for k := range threads {
		e, err := newEngine(cfg, k, threads, r.seconds)
		if err != nil {
			return nil, err
		}
		r.engines = append(r.engines, e)
	}
	r.engines[0].marks = r.marks
	res, err := r.do(ctx, ownTables)
	if err != nil {
		return nil, err
	}
	res.ResponseBytes = size
	return res, nil
}

// run is one load, on all its threads.
type run struct {
	cfg     Config
	cpus    []int
	engines []*engine
	seconds *collector
	marks   chan mark
	stolen  [2]time.Duration // at the begin and the end of the window
}

func (r *run) close() {
	for _, e := range r.engines {
		e.close()
	}
}

// do makes the connections on every thread, and when all are there lets the
// threads begin together.
func (r *run) do(ctx context.Context, ownTables bool) (*Result, error) {
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		for _, e := range r.engines {
			e.stop()
		}
	})
	defer func() {
		if !stop() {
			<-stopped // an engine is not closed while it is being stopped
		}
	}()

	ready, done := make(chan error), make(chan error)
	start := make(chan time.Time)
	for _, e := range r.engines {
		go e.live(ownTables, r.cfg.CPUs, ready, start, done)
	}
	var failed error
	for range r.engines {
		if err := <-ready; err != nil && failed == nil {
			failed = err
		}
	}
	if failed != nil {
		close(start)
		for range r.engines {
			failed = errors.Join(failed, <-done)
		}
		return nil, failed
	}
	marked := make(chan struct{})
	go r.watch(marked)
	at := time.Now()
	r.seconds.head(at.Add(r.cfg.Warmup))
	go func() {
		yieldToOthers()
		r.seconds.collect()
	}()
	for range r.engines {
		start <- at
	}
	for range r.engines {
		if err := <-done; err != nil {
			failed = errors.Join(failed, err)
			for _, e := range r.engines { // the others alone would send a part of the plan
				e.stop()
			}
		}
	}
	close(r.marks)
	<-marked
	close(r.seconds.full)
	<-r.seconds.done
	switch {
	case failed != nil:
		return nil, failed
	case !r.engines[0].begun:
		return nil, fmt.Errorf("load: ended before the measured window began: %w", context.Cause(ctx))
	case r.seconds.err != nil:
		return nil, r.seconds.err
	}
	return r.result(), nil
}

// watch tells of the window's begin and end, off the sending threads.
func (r *run) watch(done chan<- struct{}) {
	defer close(done)
	call := func(f func()) {
		if f != nil {
			f()
		}
	}
	for m := range r.marks {
		switch m {
		case begins:
			r.stolen[0] = stolen(r.cpus)
			call(r.cfg.Begin)
		case ends:
			call(r.cfg.End)
			r.stolen[1] = stolen(r.cpus)
		}
	}
}

func (r *run) result() *Result {
	res := &Result{Errors: map[Kind]int64{}, ConnectionErrors: map[Kind]int64{}, Unstamped: map[Unstamped]int64{}}
	for _, e := range r.engines {
		res.add(&e.res)
	}
	if n := len(r.cpus); n > 0 && res.Elapsed > 0 {
		res.Steal = share(int64(r.stolen[1]-r.stolen[0]), int64(res.Elapsed)*int64(n))
	}
	r.seconds.into(res)
	res.judge()
	return res
}

// live returns the whole life of a sending thread. A start that is closed instead
// of told means that another thread failed.
func (e *engine) live(ownTable bool, cpus []int, ready chan<- error, start <-chan time.Time, done chan<- error) {
	// Never unlocked: the thread, with its file table, timer slack and CPU,
	// ends with the goroutine.
	runtime.LockOSThread()
	prepare := func() error {
		if ownTable {
			if err := fdtable.Own(); err != nil {
				return fmt.Errorf("load: %w", err)
			}
		}
		if len(cpus) > 0 {
			if err := pin(cpus[e.thread%len(cpus)]); err != nil {
				return err
			}
		}
		return e.prepare()
	}
	ready <- prepare()
	at, all := <-start
	var err error
	if all {
		err = e.run(at)
	}
	e.hangUpAll()
	if e.self != nil {
		e.self.close()
	}
	done <- err
}
