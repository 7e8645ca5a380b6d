package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/cnibench/cnibench/internal/load/fdtable"
)

// mark is a moment of the window.
type mark int

const (
	begins mark = iota
	ends
)

// Run opens a load, takes one slice, which is as long as cfg's warm-up and window,
// and closes the load. If ctx ends within the window, the result is marked as
// interrupted. Errors: ErrConfig, a target that cannot be reached or answers wrongly
// at the start, limits on files or ports, and ctx's if it ends before the window.
// Later failures are counted in Result.Errors.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	s, err := open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.slice(ctx, s.cfg)
}

// Session is an open load: its connections stay open from slice to slice.
type Session struct {
	cfg     Config
	cpus    []int
	engines []*engine
	done    chan error // the result of each thread's task
	seconds *collector
	stamps  int32
	size    int64 // of the first response
	slices  uint64
}

// Open opens the connections of a load whose slices are taken one by one. It sends a
// single request, over another connection, to check the target. cfg's Warmup,
// Duration, Begin and End are not used; Ramp, Steps and Log are for Run only. Errors:
// those of Run.
func Open(ctx context.Context, cfg Config) (*Session, error) {
	cfg.Warmup, cfg.Duration = 0, time.Second
	switch {
	case cfg.Ramp != 0 || len(cfg.Steps) > 0:
		return nil, wrong("a slice has one rate, no ramp and no steps")
	case cfg.Log != nil:
		return nil, wrong("slices have no histogram log")
	}
	return open(ctx, cfg)
}

func open(ctx context.Context, cfg Config) (*Session, error) {
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
	s := &Session{cfg: cfg, cpus: cfg.CPUs, done: make(chan error), seconds: newCollector(threads, cfg.Log)}
	if s.stamps, err = keepStamps(); err != nil {
		return nil, err
	}
	if s.size, err = firstAnswer(ctx, cfg); err != nil {
		hangUp(s.stamps)
		return nil, err
	}
	// Each loop keeps one of Go's processors for itself. Everything else, such as the
	// end of ctx, needs another processor, even on a single CPU.
	if n := threads + 1; runtime.GOMAXPROCS(0) < n {
		runtime.GOMAXPROCS(n)
	}
	if len(s.cpus) == 0 {
		s.cpus = usableCPUs()
	}
	for k := range threads {
		e, err := newEngine(cfg, k, threads, s.seconds)
		if err != nil {
			s.Close()
			return nil, err
		}
		s.engines = append(s.engines, e)
		go e.serve(s.done)
	}
	defer s.stopWith(ctx)()
	if err := s.each(func(e *engine) error { return e.setUp(ownTables, cfg.CPUs) }); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the threads and closes the connections.
func (s *Session) Close() {
	for _, e := range s.engines {
		close(e.work)
		<-e.over
		e.close()
	}
	hangUp(s.stamps)
}

// stopWith stops the threads if ctx ends before undo is called. After undo has returned,
// the end of ctx stops no thread.
func (s *Session) stopWith(ctx context.Context) (undo func()) {
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		s.stop()
	})
	return func() {
		if !stop() {
			<-stopped
		}
	}
}

func (s *Session) stop() {
	for _, e := range s.engines {
		e.stop()
	}
}

// each runs the task on every thread and waits for all threads. When the task fails on
// one thread, the others are stopped: they would do only a part of the load.
func (s *Session) each(task func(*engine) error) (failed error) {
	for _, e := range s.engines {
		e.work <- task
	}
	for range s.engines {
		if err := <-s.done; err != nil {
			failed = errors.Join(failed, err)
			s.stop()
		}
	}
	return failed
}

// Slice runs the load for lead, which is not measured, and then for length. First, it
// opens again the connections that the previous slice lost or left without a response.
// Every slice starts the plan anew; Poisson arrivals get other gaps each time. begin and
// end, if not nil, are called at the begin and the end of length, from another goroutine.
// The histograms of the result are valid until the next slice. After an error, or once
// ctx has ended, the session can only be closed.
func (s *Session) Slice(ctx context.Context, lead, length time.Duration, begin, end func()) (*Result, error) {
	if lead < 0 || length <= 0 || lead > longest || length > longest-lead {
		return nil, wrong("a slice of %v after a lead of %v; the slice must be above 0, and both together at most %v", length, lead, longest)
	}
	cfg := s.cfg
	cfg.Warmup, cfg.Duration, cfg.Begin, cfg.End = lead, length, begin, end
	cfg.Seed += s.slices
	return s.slice(ctx, cfg)
}

// slice takes the next slice: cfg's warm-up and window.
func (s *Session) slice(ctx context.Context, cfg Config) (*Result, error) {
	defer s.stopWith(ctx)()
	if s.slices > 0 {
		if err := s.each((*engine).restore); err != nil {
			return nil, err
		}
	}
	s.slices++
	w := &watch{cfg: cfg, cpus: s.cpus, marks: make(chan mark, 2), done: make(chan struct{})}
	s.engines[0].marks = w.marks
	go w.run()
	start := time.Now()
	s.seconds.start(start.Add(cfg.Warmup))
	go func() {
		yieldToOthers()
		s.seconds.collect()
	}()
	failed := s.each(func(e *engine) error { return e.run(cfg, start) })
	close(w.marks)
	<-w.done
	close(s.seconds.full)
	<-s.seconds.done
	switch {
	case failed != nil:
		return nil, failed
	case !s.engines[0].begun:
		return nil, fmt.Errorf("load: ended before the measured window began: %w", context.Cause(ctx))
	case s.seconds.err != nil:
		return nil, s.seconds.err
	}
	return s.result(w), nil
}

// watch calls cfg.Begin and cfg.End at the borders of the window, away from the sending threads.
type watch struct {
	cfg    Config
	cpus   []int
	marks  chan mark
	stolen [2]time.Duration // time that the hypervisor had taken at the begin and at the end of the window
	done   chan struct{}
}

func (w *watch) run() {
	defer close(w.done)
	call := func(f func()) {
		if f != nil {
			f()
		}
	}
	for m := range w.marks {
		switch m {
		case begins:
			w.stolen[0] = readStolenTime(w.cpus)
			call(w.cfg.Begin)
		case ends:
			call(w.cfg.End)
			w.stolen[1] = readStolenTime(w.cpus)
		}
	}
}

// result returns the result of the slice that the threads have just ended.
func (s *Session) result(w *watch) *Result {
	res := newResult()
	for _, e := range s.engines {
		res.add(&e.res)
	}
	res.ResponseBytes = s.size
	if n := len(w.cpus); n > 0 && res.Elapsed > 0 {
		res.Steal = share(int64(w.stolen[1]-w.stolen[0]), int64(res.Elapsed)*int64(n))
	}
	s.seconds.into(&res)
	res.judge()
	return &res
}

// serve runs tasks on the engine's own thread until there are no more, and then closes
// its connections.
func (e *engine) serve(done chan<- error) {
	defer close(e.over)
	// The goroutine never unlocks the thread, so that the thread ends with the goroutine.
	// No other goroutine may get its file table, timer slack and CPU.
	runtime.LockOSThread()
	for task := range e.work {
		done <- task(e)
	}
	for i := range e.conns { // on this thread: its file table may hold the connections
		e.drop(&e.conns[i])
	}
	if e.self != nil {
		e.self.close()
	}
}

// setUp makes the thread ready to send and opens its connections.
func (e *engine) setUp(ownTable bool, cpus []int) error {
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
