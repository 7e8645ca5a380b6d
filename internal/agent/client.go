package agent

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/sysmon"
)

const (
	answerTimeout = 15 * time.Second // generous: the measured load may starve an agent
	endTimeout    = 3 * time.Second  // until an agent that was told to end is killed
)

var (
	// ErrEnded says that the agent's process is gone.
	ErrEnded = errors.New("the agent has ended")
	// ErrNoAnswer says that the agent did not answer in time; it may still run.
	ErrNoAnswer = errors.New("no answer")
)

// Client speaks with the agent at one endpoint. Its methods may be called
// from several goroutines; their errors name the endpoint and the operation.
type Client struct {
	name    string
	process host.Process
	timeout time.Duration

	writeMu sync.Mutex
	in      *os.File

	mu      sync.Mutex
	last    uint64
	pending map[uint64]chan answer

	gone    chan struct{} // closed when the agent has ended
	why     error         // then: ErrEnded with the reason
	endErr  error         // and how the process ended
	closing sync.Once
}

// Start starts `EXE agent` at the endpoint, beside what is measured, and waits
// until it answers. Its recordings have this scope and these labels. The agent
// lives until Close, until ctx ends, or until this process dies.
func Start(ctx context.Context, r host.Runner, exe string, labels map[string]string, scope sysmon.Scope) (*Client, error) {
	c := &Client{
		name:    cmp.Or(labels["endpoint"], "this machine"),
		timeout: answerTimeout,
		pending: make(map[uint64]chan answer),
		gone:    make(chan struct{}),
	}
	argv := []string{exe, "agent", "--scope", string(scope)}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		argv = append(argv, "--label", name+"="+labels[name])
	}
	// Pipes of the system, not of io: the agent holds its ends itself, so
	// that the death of either side shows at once on the other.
	stdin, in, err := os.Pipe()
	if err != nil {
		return nil, c.wrap("start", err)
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		stdin.Close()
		in.Close()
		return nil, c.wrap("start", err)
	}
	c.in = in
	c.process, err = r.Start(ctx, host.Command{Argv: argv, Stdin: stdin, Stdout: stdout, Aside: true})
	if err != nil {
		for _, f := range []*os.File{stdin, in, out, stdout} {
			f.Close()
		}
		return nil, c.wrap("start", err)
	}
	ended := make(chan error, 1)
	go func() {
		err := c.process.Wait()
		stdin.Close()
		stdout.Close()
		ended <- err
	}()
	go func() {
		defer out.Close()
		c.read(out, ended)
	}()
	if _, err := c.Hello(ctx, netip.Addr{}); err != nil {
		_ = c.Close() // err says more
		return nil, err
	}
	return c, nil
}

func (c *Client) wrap(op string, err error) error {
	return fmt.Errorf("agent at %s: %s: %w", c.name, op, err)
}

// read hands each answer to the call that waits for it, until the agent ends.
func (c *Client) read(out io.Reader, ended <-chan error) {
	r := bufio.NewReader(out)
	var why error
	for why == nil {
		line, err := readAnswer(r)
		if errors.Is(err, errLongAnswer) {
			why = fmt.Errorf("%w: %w", ErrEnded, err)
			_ = c.process.Signal(os.Kill)
			break
		}
		if err != nil {
			break
		}
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			why = fmt.Errorf("%w: it wrote no answer but %.80q", ErrEnded, bytes.TrimSpace(line))
			_ = c.process.Signal(os.Kill) // nothing that it says can be trusted
			break
		}
		c.mu.Lock()
		waiting := c.pending[a.ID]
		delete(c.pending, a.ID)
		c.mu.Unlock()
		if waiting != nil { // else who asked has given up
			waiting <- a
		}
	}
	c.endErr = <-ended
	switch {
	case why != nil:
		c.endErr = nil // we killed it
	case c.endErr != nil:
		why = fmt.Errorf("%w: %w", ErrEnded, c.endErr)
	default:
		why = ErrEnded
	}
	c.why = why
	close(c.gone)
}

// maxAnswer is more than any agent writes in a line.
const maxAnswer = 64 << 20

var errLongAnswer = fmt.Errorf("it wrote an answer longer than %d bytes", maxAnswer)

// readAnswer reads a line with its end.
func readAnswer(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxAnswer {
			return nil, errLongAnswer
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// call sends one request and returns its answer, which may take longer than usual
// by that time.
func call[R any](ctx context.Context, c *Client, op string, args any, longer time.Duration) (result R, err error) {
	if err := c.exchange(ctx, op, args, &result, c.timeout+longer); err != nil {
		return result, c.wrap(op, err)
	}
	return result, nil
}

func (c *Client) exchange(ctx context.Context, op string, args, result any, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%w within %v", ErrNoAnswer, timeout))
	defer cancel()
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	got := make(chan answer, 1)
	c.mu.Lock()
	c.last++
	r := request{ID: c.last, Op: op, Args: raw}
	c.pending[r.ID] = got
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, r.ID)
		c.mu.Unlock()
	}()
	if err := c.write(ctx, r); err != nil {
		if errors.Is(err, syscall.EPIPE) && c.waitGone() {
			return c.why
		}
		return err
	}
	var a answer
	select {
	case a = <-got:
	case <-c.gone:
		select {
		case a = <-got: // its last words
		default:
			return c.why
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if a.Error != "" {
		return errors.New(a.Error)
	}
	if err := json.Unmarshal(a.Result, result); err != nil {
		return fmt.Errorf("the answer: %w", err)
	}
	return nil
}

func (c *Client) write(ctx context.Context, r request) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	deadline, _ := ctx.Deadline()
	if err = c.in.SetWriteDeadline(deadline); err == nil {
		_, err = c.in.Write(append(b, '\n'))
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		// A part of the line may be in the pipe: nothing can follow it.
		_ = c.process.Signal(os.Kill)
		return fmt.Errorf("%w: it reads no requests, and was killed", ErrNoAnswer)
	case errors.Is(err, os.ErrClosed):
		return errors.New("the client is closed")
	}
	return err
}

// Hello asks the agent what it is and sees; with an address that is valid,
// also for the MTU of the interface that holds it.
func (c *Client) Hello(ctx context.Context, addr netip.Addr) (Hello, error) {
	return call[Hello](ctx, c, opHello, helloArgs{addr}, 0)
}

// Record starts a recording, with a snapshot at once. Only one runs at a time.
func (c *Client) Record(ctx context.Context) error {
	_, err := call[none](ctx, c, opRecord, none{}, 0)
	return err
}

// Mark takes a snapshot now and returns its time by the endpoint's clock, for
// the recording's Delta, Rate and Mean.
func (c *Client) Mark(ctx context.Context) (time.Time, error) {
	at, err := call[timeResult](ctx, c, opMark, none{}, 0)
	return at.Time, err
}

// Stop ends the recording and returns it.
func (c *Client) Stop(ctx context.Context) (*sysmon.Recording, error) {
	return call[*sysmon.Recording](ctx, c, opStop, none{}, 0)
}

// Echo opens a TCP and a UDP echo at addr, which must be the endpoint's, and
// returns the port of both. It stays until the agent ends.
func (c *Client) Echo(ctx context.Context, addr netip.Addr) (uint16, error) {
	at, err := c.EchoAt(ctx, netip.AddrPortFrom(addr, 0))
	return at.Port(), err
}

// EchoAt is Echo at a chosen port.
func (c *Client) EchoAt(ctx context.Context, addr netip.AddrPort) (netip.AddrPort, error) {
	at, err := call[echoResult](ctx, c, opEcho, echoArgs{Addr: addr}, 0)
	return at.Addr, err
}

// EchoSCTP opens an SCTP echo at addr. The error says whether the endpoint's
// kernel has no SCTP.
func (c *Client) EchoSCTP(ctx context.Context, addr netip.AddrPort) error {
	_, err := call[echoResult](ctx, c, opEcho, echoArgs{Addr: addr, SCTP: true}, 0)
	return err
}

// Probe asks an echo from the endpoint. An echo that was not reached is a result,
// not an error.
func (c *Client) Probe(ctx context.Context, p Probe) (Reached, error) {
	return call[Reached](ctx, c, opReach, p, p.Timeout)
}

// Reach returns nil if the echo at addr answers the endpoint over TCP and UDP,
// each within a second; else the error names the protocol that failed.
func (c *Client) Reach(ctx context.Context, addr netip.Addr, port uint16) error {
	target := netip.AddrPortFrom(addr, port)
	r, err := c.Probe(ctx, Probe{Target: target})
	if err != nil {
		return err
	}
	if err := r.Err(); err != nil {
		return c.wrap(opReach, fmt.Errorf("%s: %w", target, err))
	}
	return nil
}

// Close has the agent end, by force if it must be, and waits for that. An
// agent that ended before, or not cleanly, is an error. A second Close does
// nothing.
func (c *Client) Close() error {
	var err error
	c.closing.Do(func() { err = c.close() })
	if err != nil {
		return c.wrap("close", err)
	}
	return nil
}

func (c *Client) close() error {
	select {
	case <-c.gone:
		c.in.Close()
		return c.why
	default:
	}
	c.in.Close()
	if c.waitGone() {
		return c.endErr
	}
	if err := c.process.Signal(os.Kill); err != nil {
		return err
	}
	if c.waitGone() {
		return errors.New("the agent did not end when asked, and was killed")
	}
	return errors.New("the agent does not end, not even when killed")
}

func (c *Client) waitGone() bool {
	select {
	case <-c.gone:
		return true
	case <-time.After(endTimeout):
		return false
	}
}
