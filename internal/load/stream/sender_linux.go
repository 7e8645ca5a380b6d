package stream

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Sender holds connections to a Sink and sends over all of them in slices.
type Sender struct {
	cfg     Config
	control *net.TCPConn
	lines   *json.Decoder
	token   token
	threads []*thread
	stop    atomic.Bool
	release func() // of the threads' processors
}

// How long the Sender waits.
const (
	answerPatience = 10 * time.Second       // for the Sink's counts, which queue behind the data
	stopPatience   = 100 * time.Millisecond // for a write that blocks, until it checks whether to stop
	drainPatience  = 2 * time.Second        // for the data of a slice to leave the send queues
	dialPause      = 20 * time.Millisecond  // from one try to connect to the next
)

// Connect opens the connections. Errors: ErrConfig, and a Sink that does not answer
// within cfg.Wait. It tries at least once.
func Connect(ctx context.Context, cfg Config) (*Sender, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	s := &Sender{cfg: cfg}
	if err := s.connect(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("stream: %v: %w", cfg.Target, err), s.Close())
	}
	return s, nil
}

func (s *Sender) connect(ctx context.Context) error {
	if err := s.greet(ctx); err != nil {
		return err
	}
	s.release = addProcessors(s.cfg.Connections)
	for k := range s.cfg.Connections {
		var connection sender
		var err error
		if s.cfg.Protocol == UDP {
			connection, err = newPackets(s.cfg, s.token, k, k < maxRaw)
		} else {
			connection, err = newBlocks(ctx, s.cfg, s.token, k < maxRaw)
		}
		if err != nil {
			return err
		}
		s.threads = append(s.threads, startThread(connection, &s.stop))
	}
	return nil
}

// greet opens the session. While nothing listens at the target, it tries again.
func (s *Sender) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Wait+answerPatience)
	defer cancel()
	for until := time.Now().Add(s.cfg.Wait); ; {
		conn, err := dial(ctx, s.cfg.Target, controlKind, token{}, 0)
		if err == nil {
			s.control = conn
			break
		}
		if !errors.Is(err, unix.ECONNREFUSED) || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(dialPause):
		}
	}
	s.lines = json.NewDecoder(bufio.NewReader(s.control))
	var hello greeting
	if err := s.read(&hello); err != nil {
		return err
	}
	s.token = hello.Token
	return nil
}

func dial(ctx context.Context, target netip.AddrPort, kind string, session token, window int) (*net.TCPConn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", target.String())
	if err != nil {
		return nil, err
	}
	preamble := append([]byte(kind), session[:]...)
	preamble = binary.BigEndian.AppendUint32(preamble, uint32(window))
	if _, err := conn.Write(preamble); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn.(*net.TCPConn), nil
}

func (s *Sender) read(v any) error {
	if err := s.control.SetReadDeadline(time.Now().Add(answerPatience)); err != nil {
		return err
	}
	if err := s.lines.Decode(v); err != nil {
		return fmt.Errorf("no answer, or none of `cnibench serve stream`: %w; is the address right, and the server of the same version?", err)
	}
	return nil
}

// counts asks the Sink for its counts.
func (s *Sender) counts() (c counts, err error) {
	if _, err := s.control.Write([]byte{'?'}); err != nil {
		return c, err
	}
	return c, s.read(&c)
}

// Slice sends on all connections for leadIn, which is not measured, and then for
// duration. Between slices the connections stay open and idle. begin and end, if any,
// are called at the begin and the end of duration. ctx ends a slice early.
func (s *Sender) Slice(ctx context.Context, leadIn, duration time.Duration, begin, end func()) (Slice, error) {
	out, err := s.slice(ctx, leadIn, duration, begin, end)
	if err != nil {
		return out, fmt.Errorf("stream: %w", err)
	}
	return out, nil
}

func (s *Sender) slice(ctx context.Context, leadIn, duration time.Duration, begin, end func()) (out Slice, err error) {
	s.stop.Store(false)
	for _, t := range s.threads {
		t.start <- struct{}{}
	}
	defer func() {
		s.stop.Store(true)
		for _, t := range s.threads {
			err = errors.Join(err, <-t.done)
		}
		if err == nil {
			err = s.drain()
		}
	}()
	wait := func(d time.Duration) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			out.Interrupted = true
		}
	}
	wait(leadIn)
	before, err := s.counts()
	if err != nil {
		return out, err
	}
	clocks, used := s.clocks(), ownCPU()
	call(begin)
	wait(duration)
	after, err := s.counts()
	call(end)
	if err != nil {
		return out, err
	}
	out.CPU = ownCPU() - used
	out.addClocks(s.clocks(), clocks)
	out.Elapsed = time.Duration(after.At - before.At)
	out.Bytes = after.Bytes - before.Bytes
	for k, n := range after.Connections {
		if k < len(before.Connections) {
			n -= before.Connections[k]
		}
		out.Connections = append(out.Connections, n)
	}
	out.Packets = after.Packets - before.Packets
	// Packets that were sent before the slice and arrive within it count as received.
	out.Lost = max(0, after.Sent-before.Sent-out.Packets)
	out.Jitter = time.Duration(after.Jitter)
	return out, nil
}

// ownCPU returns the CPU time of this process so far.
func ownCPU() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		return 0 // every kernel has this clock
	}
	return time.Duration(ts.Nano())
}

func call(f func()) {
	if f != nil {
		f()
	}
}

// clocks returns what TCP counts on all connections together.
func (s *Sender) clocks() (sum clocks) {
	for _, t := range s.threads {
		c := t.sender.clocks()
		sum.retransmits += c.retransmits
		sum.segments += c.segments
		sum.busy += c.busy
		sum.rwnd += c.rwnd
		sum.sndbuf += c.sndbuf
	}
	return sum
}

// clocks are counters of TCP_INFO; the times are microseconds.
type clocks struct{ retransmits, segments, busy, rwnd, sndbuf int64 }

func (s *Slice) addClocks(after, before clocks) {
	s.Retransmits, s.Segments = after.retransmits-before.retransmits, after.segments-before.segments
	s.Busy = time.Duration(after.busy-before.busy) * time.Microsecond
	s.RwndLimited = time.Duration(after.rwnd-before.rwnd) * time.Microsecond
	s.SndLimited = time.Duration(after.sndbuf-before.sndbuf) * time.Microsecond
}

// drain waits until the send queues are empty, so that no data of this slice is sent in
// the next one.
func (s *Sender) drain() error {
	for until := time.Now().Add(drainPatience); ; time.Sleep(200 * time.Microsecond) {
		queued := 0
		for _, t := range s.threads {
			n, err := t.sender.queueLength()
			if err != nil {
				return err
			}
			queued += n
		}
		if queued == 0 || time.Now().After(until) {
			return nil
		}
	}
}

// Close ends the session and closes all connections. Bytes that are still queued
// are thrown away.
func (s *Sender) Close() error {
	var err error
	for _, t := range s.threads {
		close(t.start)
		err = errors.Join(err, <-t.ended)
	}
	if s.release != nil {
		s.release()
	}
	if s.control != nil {
		err = errors.Join(err, s.control.Close())
	}
	return err
}

// sender sends over one connection, from a thread of its own.
type sender interface {
	// send sends a block or a batch. After stopPatience without progress it returns nil.
	send() error
	begin() // is called when a slice begins
	clocks() clocks
	queueLength() (bytes int, err error)
	close() error
}
