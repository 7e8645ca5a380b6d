package load

import (
	"context"
	"fmt"
	"runtime"
)

// HTTP asks cfg.Target for cfg.Path until the window is over or ctx ends,
// which gives a result marked as interrupted. Errors: ErrConfig, a target
// that cannot be reached or answers wrongly at the start, limits on files or
// ports, ctx's if it ends before the window. What goes wrong later is counted
// in Result.Errors.
func HTTP(ctx context.Context, cfg HTTPConfig) (*Result, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	if err := raiseFileLimit(cfg.Connections); err != nil {
		return nil, err
	}
	if err := checkPorts(cfg.Connections); err != nil {
		return nil, err
	}
	size, err := firstAnswer(ctx, cfg)
	if err != nil {
		return nil, err
	}
	// The loop keeps one of Go's processors for itself; everything else, such
	// as seeing that ctx has ended, needs another, also on a single CPU.
	if runtime.GOMAXPROCS(0) < 2 {
		runtime.GOMAXPROCS(2)
	}
	e, err := newEngine(cfg)
	if err != nil {
		return nil, err
	}
	defer e.close()
	stop := context.AfterFunc(ctx, e.stop)
	defer stop()

	marked := make(chan struct{})
	go func() {
		defer close(marked)
		for mark := range e.marks {
			mark()
		}
	}()
	done := make(chan error)
	go func() {
		// Never unlocked: the thread, with its timer slack, ends with the goroutine.
		runtime.LockOSThread()
		done <- e.run()
	}()
	err = <-done
	close(e.marks)
	<-marked
	if err != nil {
		return nil, err
	}
	if !e.begun {
		return nil, fmt.Errorf("load: ended before the measured window began: %w", context.Cause(ctx))
	}
	e.res.ResponseBytes = size
	return &e.res, nil
}
