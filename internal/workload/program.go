package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/host"
)

// program is one program of a step, running at an endpoint.
type program struct {
	role           string // "server 1", for errors
	command        host.Command
	process        host.Process
	started        time.Time     // just before it was
	stdout, stderr bytes.Buffer  // readable once exited is closed; no stdout after startTo
	exited         chan struct{} // closed when the program has ended
	err            error         // of its exit, once exited is closed
}

// failure returns how the program ended, with what it said on standard error; nil
// if it ended well. Only to be called once exited is closed.
func (p *program) failure() error { return p.failed(p.stderr.String()) }

func (p *program) failed(said string) error {
	if p.err == nil {
		return nil
	}
	if said = strings.Join(strings.Fields(said), " "); said != "" {
		return fmt.Errorf("%s: %w: %s", p.role, p.err, said)
	}
	return fmt.Errorf("%s: %w", p.role, p.err)
}

// died returns how a program ended that should still run; only to be called
// once exited is closed.
func (p *program) died() error {
	if err := p.failure(); err != nil {
		return err
	}
	return fmt.Errorf("%s: %s: ended without an error", p.role, p.command)
}

// ended says whether the program has.
func (p *program) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// crew are the programs of one drive. None of them outlives dismiss.
type crew struct {
	ctx  context.Context
	kill context.CancelFunc
	s    *Session
	all  []*program
	logs []io.Closer
}

func newCrew(ctx context.Context, s *Session) *crew {
	c := &crew{s: s}
	c.ctx, c.kill = context.WithCancel(ctx)
	return c
}

// start starts a program. Its command and output go to the raw folder, named
// after its role: "server 1" gives server-1.command, server-1.ext for
// standard output, and server-1.stderr.
func (c *crew) start(e arena.Endpoint, role, ext string, argv ...string) (*program, error) {
	return c.startTo(nil, e, role, ext, argv...)
}

// startTo starts a program as start does, but hands its standard output to w
// as it comes instead of keeping it in memory.
func (c *crew) startTo(w io.Writer, e arena.Endpoint, role, ext string, argv ...string) (*program, error) {
	return c.startBetween(nil, w, e, role, ext, argv...)
}

// startBetween starts a program as startTo does, and gives it r as its standard
// input if there is one.
func (c *crew) startBetween(r io.Reader, w io.Writer, e arena.Endpoint, role, ext string, argv ...string) (*program, error) {
	p := &program{role: role, command: host.Command{Argv: argv, Stdin: r}, exited: make(chan struct{})}
	if w == nil {
		w = &p.stdout
	}
	name := strings.ReplaceAll(role, " ", "-")
	if err := writeRaw(c.s.Raw, name+".command", p.command.String()+"\n"); err != nil {
		return nil, err
	}
	stdout, err := c.keep(name+ext, w)
	if err != nil {
		return nil, err
	}
	stderr, err := c.keep(name+".stderr", &p.stderr)
	if err != nil {
		return nil, err
	}
	p.command.Stdout, p.command.Stderr = stdout, stderr
	p.started = time.Now()
	if p.process, err = e.Start(c.ctx, p.command); err != nil {
		return nil, fmt.Errorf("%s: start %s: %w", role, argv[0], err)
	}
	c.all = append(c.all, p)
	go func() {
		defer close(p.exited)
		p.err = p.process.Wait()
	}()
	return p, nil
}

// keep writes to a raw file and to w.
func (c *crew) keep(name string, w io.Writer) (io.Writer, error) {
	f, err := c.s.Raw.Create(name)
	if err != nil {
		return nil, err
	}
	c.logs = append(c.logs, f)
	return io.MultiWriter(f, w), nil
}

// dismiss ends every program that still runs, waits for all of them and closes
// the raw files.
func (c *crew) dismiss() error {
	c.kill()
	for _, p := range c.all {
		<-p.exited
	}
	var errs []error
	for _, f := range c.logs {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// await waits until every one of the programs has ended, at most until limit.
// Errors: the context's own, and a program that goes on and on.
func (c *crew) await(limit time.Time, programs ...*program) error {
	timeout := time.NewTimer(time.Until(limit))
	defer timeout.Stop()
	for _, p := range programs {
		select {
		case <-p.exited:
		case <-c.ctx.Done():
			return c.ctx.Err()
		case <-timeout.C:
			return fmt.Errorf("%s: did not end in time: %s", p.role, p.command)
		}
	}
	return nil
}

// measure waits out the warm-up after start, marks the window, and says whether
// it is whole. Where marking its beginning takes long, its end moves with it, by
// no more than spare, for which the load must last longer. As soon as the context
// or one of the programs ends it returns: then the window is cut short, or not
// marked at all when it had not begun, and what the programs left behind says why.
func measure(ctx context.Context, s *Session, start time.Time, warmup, duration, spare time.Duration, programs ...*program) bool {
	lost := make(chan struct{}, len(programs))
	for _, p := range programs {
		go func() {
			<-p.exited
			lost <- struct{}{}
		}()
	}
	pause := func(until time.Time) bool {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
		case <-lost:
			return !time.Now().Before(until) // it ended in time; we woke up late
		}
		return false
	}
	begin := start.Add(warmup)
	if !pause(begin) {
		return false
	}
	s.Begin()
	late := min(time.Since(begin), spare)
	whole := pause(begin.Add(late + duration))
	s.End()
	return whole
}
