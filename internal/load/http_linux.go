package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"syscall"
	"time"
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

// firstAnswer asks once over a connection of its own, so that a target that
// is not there or answers something else is an error in words, and gives the
// size of the answer.
func firstAnswer(ctx context.Context, cfg HTTPConfig) (int64, error) {
	giveUp := time.Now().Add(cfg.Wait)
	for {
		size, err := askOnce(ctx, cfg)
		if err == nil || !time.Now().Before(giveUp) || ctx.Err() != nil {
			return size, err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func askOnce(ctx context.Context, cfg HTTPConfig) (int64, error) {
	d := net.Dialer{Timeout: cfg.Timeout}
	conn, err := d.DialContext(ctx, "tcp", cfg.Target.String())
	if errors.Is(err, syscall.ECONNREFUSED) {
		return 0, fmt.Errorf("load: %w; is a server listening there?", err)
	}
	if err != nil {
		return 0, fmt.Errorf("load: cannot reach the target: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(cfg.Timeout)); err != nil {
		return 0, fmt.Errorf("load: %w", err)
	}
	if _, err := conn.Write(cfg.request()); err != nil {
		return 0, fmt.Errorf("load: %w", err)
	}
	status, size, err := readResponse(conn)
	switch {
	case err != nil:
		return 0, fmt.Errorf("load: the first answer of %v: %w", cfg.Target, err)
	case status < 200 || status > 299:
		return 0, fmt.Errorf("load: http://%s%s at %v answers with status %d, want 2xx; check the path", cfg.Host, cfg.Path, cfg.Target, status)
	}
	return size, nil
}

// readResponse reads one response and gives its status and whole size.
func readResponse(r io.Reader) (status int, size int64, err error) {
	var resp response
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		used, done, bad := resp.feed(buf[:n])
		switch {
		case bad != "":
			return 0, 0, fmt.Errorf("not a response that can be used: %s", bad)
		case done && used < n:
			return 0, 0, errors.New("more bytes than the response declares")
		case done:
			return resp.status, resp.size, nil
		case err == io.EOF:
			return 0, 0, io.ErrUnexpectedEOF
		case err != nil:
			return 0, 0, err
		}
	}
}
