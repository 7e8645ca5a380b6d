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
	answerTimeout = 15 * time.Second // long, because the measured load may starve an agent
	endTimeout    = 3 * time.Second  // from the request to end until the agent is killed
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

	ended   chan struct{} // closed when the agent has ended
	cause   error         // ErrEnded with the reason; set once ended is closed
	endErr  error         // the error of the process; set once ended is closed
	closing sync.Once
}

// Start starts `EXE agent` at the endpoint, on the CPUs that are not for measured
// commands, and waits for its first answer. The agent's recordings have this scope and
// these labels. The agent ends with Close, with ctx or with this process.
func Start(ctx context.Context, r host.Runner, exe string, labels map[string]string, scope sysmon.Scope) (*Client, error) {
	c := &Client{
		name:    cmp.Or(labels["endpoint"], "this machine"),
		timeout: answerTimeout,
		pending: make(map[uint64]chan answer),
		ended:   make(chan struct{}),
	}
	argv := []string{exe, "agent", "--scope", string(scope)}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		argv = append(argv, "--label", name+"="+labels[name])
	}
	// Pipes of the system: the agent holds their other ends itself, so that each side
	// notices at once when the other ends.
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
	c.process, err = r.Start(ctx, host.Command{Argv: argv, Stdin: stdin, Stdout: stdout, OffMeasuredCPUs: true})
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
		_ = c.Close() // err is the cause
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
	var cause error
	for cause == nil {
		line, err := readAnswer(r)
		if errors.Is(err, errLongAnswer) {
			cause = fmt.Errorf("%w: %w", ErrEnded, err)
			_ = c.process.Signal(os.Kill)
			break
		}
		if err != nil {
			break
		}
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			cause = fmt.Errorf("%w: it wrote no answer but %.80q", ErrEnded, bytes.TrimSpace(line))
			_ = c.process.Signal(os.Kill) // its further answers can't be trusted
			break
		}
		c.mu.Lock()
		waiting := c.pending[a.ID]
		delete(c.pending, a.ID)
		c.mu.Unlock()
		if waiting != nil { // nil: the call has timed out
			waiting <- a
		}
	}
	c.endErr = <-ended
	switch {
	case cause != nil:
		c.endErr = nil // killed above
	case c.endErr != nil:
		cause = fmt.Errorf("%w: %w", ErrEnded, c.endErr)
	default:
		cause = ErrEnded
	}
	c.cause = cause
	close(c.ended)
}

// maxAnswer limits the length of an answer, bytes; real answers are shorter.
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

// call sends one request and returns its answer. Only ErrNoAnswer comes after the
// client's timeout and extra.
func call[R any](ctx context.Context, c *Client, op string, args any, extra time.Duration) (result R, err error) {
	if err := c.exchange(ctx, op, args, &result, c.timeout+extra); err != nil {
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
		if errors.Is(err, syscall.EPIPE) && c.waitEnded() {
			return c.cause
		}
		return err
	}
	var a answer
	select {
	case a = <-got:
	case <-c.ended:
		select {
		case a = <-got: // written just before the agent ended
		default:
			return c.cause
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
		// A part of the line may be in the pipe, so no other request can be sent.
		_ = c.process.Signal(os.Kill)
		return fmt.Errorf("%w: it reads no requests, and was killed", ErrNoAnswer)
	case errors.Is(err, os.ErrClosed):
		return errors.New("the client is closed")
	}
	return err
}

// Hello asks the agent to describe itself and its namespace. If addr is valid, Hello.MTU
// is that of the interface with that address.
func (c *Client) Hello(ctx context.Context, addr netip.Addr) (Hello, error) {
	return call[Hello](ctx, c, opHello, helloArgs{addr}, 0)
}

// Record starts a recording and takes a snapshot. A second recording at the same time is
// an error.
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

// Echo opens a TCP and a UDP echo at addr, an address of the endpoint, and returns the
// port of both. They stay until the agent ends.
func (c *Client) Echo(ctx context.Context, addr netip.Addr) (uint16, error) {
	at, err := c.EchoAt(ctx, netip.AddrPortFrom(addr, 0))
	return at.Port(), err
}

// EchoAt does the same as Echo at a port of the caller's choice.
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

// Probe has the endpoint ask an echo. If the echo does not answer, that is a result and
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

// Close ends the agent, kills it if necessary, and waits for its end. It is an error if
// the agent had ended before or did not end cleanly. A second Close does nothing.
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
	case <-c.ended:
		c.in.Close()
		return c.cause
	default:
	}
	c.in.Close()
	if c.waitEnded() {
		return c.endErr
	}
	if err := c.process.Signal(os.Kill); err != nil {
		return err
	}
	if c.waitEnded() {
		return errors.New("the agent did not end when asked, and was killed")
	}
	return errors.New("the agent does not end, not even when killed")
}

func (c *Client) waitEnded() bool {
	select {
	case <-c.ended:
		return true
	case <-time.After(endTimeout):
		return false
	}
}
