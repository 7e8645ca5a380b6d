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
	kill           context.CancelFunc // this program alone
	started        time.Time          // just before the start
	stdout, stderr bytes.Buffer       // to be read once exited is closed; startTo leaves stdout empty
	exited         chan struct{}      // closed when the program has ended
	err            error              // of the exit; set once exited is closed
}

// failure returns the program's error with its standard error; nil if it ended without
// one. It may be called only once exited is closed.
func (p *program) failure() error { return p.failureWith(p.stderr.String()) }

func (p *program) failureWith(output string) error {
	if p.err == nil {
		return nil
	}
	if output = strings.Join(strings.Fields(output), " "); output != "" {
		return fmt.Errorf("%s: %w: %s", p.role, p.err, output)
	}
	return fmt.Errorf("%s: %w", p.role, p.err)
}

// explainEnd returns an error for a program that ended although it should still run. It may be
// called only once exited is closed.
func (p *program) explainEnd() error {
	if err := p.failure(); err != nil {
		return err
	}
	return fmt.Errorf("%s: %s: ended too early, without an error", p.role, p.command)
}

// ended says whether the program has ended.
func (p *program) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// programGroup holds the programs of one drive. All of them have ended when stopAll returns.
type programGroup struct {
	ctx  context.Context
	kill context.CancelFunc
	s    *Session
	all  []*program
	logs []io.Closer
}

func newProgramGroup(ctx context.Context, s *Session) *programGroup {
	c := &programGroup{s: s}
	c.ctx, c.kill = context.WithCancel(ctx)
	return c
}

// start starts a program. Its command and output go to the raw folder, named
// after its role: "server 1" gives server-1.command, server-1.ext for
// standard output, and server-1.stderr.
func (c *programGroup) start(e arena.Endpoint, role, ext string, argv ...string) (*program, error) {
	return c.startTo(nil, e, role, ext, argv...)
}

// startTo starts a program as start does, but writes its standard output to w instead of
// keeping it in memory.
func (c *programGroup) startTo(w io.Writer, e arena.Endpoint, role, ext string, argv ...string) (*program, error) {
	return c.startBetween(nil, w, e, role, ext, argv...)
}

// startBetween starts a program as startTo does, with r, if not nil, as its standard input.
func (c *programGroup) startBetween(r io.Reader, w io.Writer, e arena.Endpoint, role, ext string, argv ...string) (*program, error) {
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
	ctx, kill := context.WithCancel(c.ctx)
	p.kill = kill
	if p.process, err = e.Start(ctx, p.command); err != nil {
		kill()
		return nil, fmt.Errorf("%s: start %s: %w", role, argv[0], err)
	}
	c.all = append(c.all, p)
	go func() {
		defer close(p.exited)
		defer kill()
		p.err = p.process.Wait()
	}()
	return p, nil
}

// keep returns a writer to a new raw file and to w.
func (c *programGroup) keep(name string, w io.Writer) (io.Writer, error) {
	f, err := c.s.Raw.Create(name)
	if err != nil {
		return nil, err
	}
	c.logs = append(c.logs, f)
	return io.MultiWriter(f, w), nil
}

// stopAll ends every program that still runs, waits for all of them and closes
// the raw files.
func (c *programGroup) stopAll() error {
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

// await waits until all the programs have ended, at most until limit. Errors: the
// context's own, and that a program still runs at limit.
func (c *programGroup) await(limit time.Time, programs ...*program) error {
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

// measure waits for the warm-up after start, marks the window, and says whether the
// window is whole. If marking the begin takes long, the end moves by the same time, at
// most by spare; the load must last that much longer. If the context or one of the
// programs ends, measure returns at once: the window is cut short or, if it had not
// begun, not marked. The errors of the programs then say why.
func measure(ctx context.Context, s *Session, start time.Time, warmup, duration, spare time.Duration, programs ...*program) bool {
	ended := make(chan struct{}, len(programs))
	for _, p := range programs {
		go func() {
			<-p.exited
			ended <- struct{}{}
		}()
	}
	pause := func(until time.Time) bool {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
		case <-ended:
			return !time.Now().Before(until) // true: it ended after until, and this goroutine woke up late
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
