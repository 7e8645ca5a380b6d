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
	"os"
	"runtime"
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
	pacedQueue     = 10 * time.Millisecond  // of data at a rate that a connection holds unsent, but no less than
	leastQueue     = 16 << 10               // bytes
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
		var sending sender
		var err error
		if s.cfg.Protocol == UDP {
			sending, err = newPackets(s.cfg, s.token, k, k < mostRaw)
		} else {
			sending, err = newBlocks(ctx, s.cfg, s.token, k < mostRaw)
		}
		if err != nil {
			return err
		}
		s.threads = append(s.threads, startThread(sending, &s.stop))
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
		return fmt.Errorf("no answer, or not that of `cnibench serve stream`: %w; is the address right, and the server of the same version?", err)
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
	retransmits, used := s.retransmits(), ownCPU()
	call(begin)
	wait(duration)
	after, err := s.counts()
	call(end)
	if err != nil {
		return out, err
	}
	out.Retransmits, out.CPU = s.retransmits()-retransmits, ownCPU()-used
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

func (s *Sender) retransmits() (sum int64) {
	for _, t := range s.threads {
		sum += t.sender.retransmits()
	}
	return sum
}

// drain waits until the send queues are empty, so that no data of this slice is sent in
// the next one.
func (s *Sender) drain() error {
	for until := time.Now().Add(drainPatience); ; time.Sleep(200 * time.Microsecond) {
		queued := 0
		for _, t := range s.threads {
			n, err := t.sender.queued()
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
	retransmits() int64
	queued() (bytes int, err error)
	close() error
}

// thread sends over one connection while a slice lasts.
type thread struct {
	sender sender
	start  chan struct{} // a value begins a slice; closing it ends the thread
	done   chan error    // the error of a slice, or nil, when it is over
	ended  chan error    // the error of closing the connection, or nil
}

func startThread(sending sender, stop *atomic.Bool) *thread {
	t := &thread{sender: sending, start: make(chan struct{}), done: make(chan error, 1), ended: make(chan error, 1)}
	go func() {
		// Never unlocked: the thread, with its timer slack, ends with the goroutine.
		runtime.LockOSThread()
		// Best effort: without it timers are coarser, and paced packets later.
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
		for range t.start {
			sending.begin()
			var err error
			for err == nil && !stop.Load() {
				err = sending.send()
			}
			t.done <- err
		}
		t.ended <- sending.close()
	}()
	return t
}

// blocks sends blocks over a TCP connection.
type blocks struct {
	conn  *net.TCPConn
	fd    int
	block []byte
	file  int // descriptor of the block as a file in memory, for zero copy; -1: none
	raw   bool
}

func newBlocks(ctx context.Context, cfg Config, session token, raw bool) (sender, error) {
	conn, err := dial(ctx, cfg.Target, dataKind, session, cfg.Window)
	if err != nil {
		return nil, err
	}
	b := &blocks{conn: conn, fd: -1, block: make([]byte, cfg.Size), file: -1, raw: raw}
	// Nagle's algorithm stays on, as in iperf3; Go turns it off for every connection.
	if err := conn.SetNoDelay(false); err != nil {
		return nil, errors.Join(err, b.close())
	}
	if b.fd, err = blocking(conn); err != nil {
		return nil, errors.Join(err, b.close())
	}
	timeout := unix.NsecToTimeval(int64(stopPatience))
	if err := unix.SetsockoptTimeval(b.fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &timeout); err != nil {
		return nil, errors.Join(os.NewSyscallError("setsockopt SO_SNDTIMEO", err), b.close())
	}
	// Closing resets the connection: no port stays in TIME_WAIT, and close does not wait for the send queue.
	if err := unix.SetsockoptLinger(b.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
		return nil, errors.Join(os.NewSyscallError("setsockopt SO_LINGER", err), b.close())
	}
	if cfg.Rate > 0 { // the kernel paces segments, those that it sends again too, with any qdisc
		share := uint64(max(1, float64(cfg.Rate)/8/float64(cfg.Connections)))
		if err := unix.SetsockoptUint64(b.fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, share); err != nil {
			return nil, errors.Join(os.NewSyscallError("setsockopt SO_MAX_PACING_RATE", err), b.close())
		}
		// Else the send buffer would hold seconds of a low rate, which go out after the slice.
		if err := unix.SetsockoptInt(b.fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, max(leastQueue, int(min(float64(share)*pacedQueue.Seconds(), 1<<30)))); err != nil {
			return nil, errors.Join(os.NewSyscallError("setsockopt TCP_NOTSENT_LOWAT", err), b.close())
		}
	}
	if cfg.ZeroCopy {
		if b.file, err = unix.MemfdCreate("cnibench-block", unix.MFD_CLOEXEC); err == nil {
			_, err = unix.Write(b.file, b.block)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("make the file in memory for zero copy: %w", err), b.close())
		}
	}
	return b, nil
}

func (b *blocks) begin() {}

func (b *blocks) send() (err error) {
	switch {
	case b.file >= 0:
		var offset int64
		_, err = unix.Sendfile(b.fd, b.file, &offset, len(b.block))
	case b.raw:
		if errno := writeRaw(b.fd, b.block); errno != 0 {
			err = errno
		}
	default:
		_, err = unix.Write(b.fd, b.block)
	}
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return nil
	}
	return os.NewSyscallError("send", err)
}

func (b *blocks) retransmits() int64 {
	info, err := unix.GetsockoptTCPInfo(b.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return 0 // the connection has broken, which the sending thread reports
	}
	return int64(info.Total_retrans)
}

func (b *blocks) queued() (int, error) {
	n, err := unix.IoctlGetInt(b.fd, unix.SIOCOUTQ)
	return n, os.NewSyscallError("ioctl SIOCOUTQ", err)
}

func (b *blocks) close() error {
	err := b.conn.Close()
	for _, fd := range []int{b.fd, b.file} {
		if fd >= 0 {
			err = errors.Join(err, unix.Close(fd))
		}
	}
	return err
}

// packets sends packets over a UDP socket.
type packets struct {
	fd       int
	batch    *batch
	raw      bool
	sequence uint64
	started  time.Time
	pace     time.Duration // between packets; 0 is none
	due      time.Time     // of the next packet
}

func newPackets(cfg Config, session token, connection int, raw bool) (sender, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(cfg.Target))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	p := &packets{fd: -1, batch: newBatch(cfg.Size), raw: raw, started: time.Now()}
	if p.fd, err = blocking(conn); err != nil {
		return nil, err
	}
	timeout := unix.NsecToTimeval(int64(stopPatience))
	if err := unix.SetsockoptTimeval(p.fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &timeout); err != nil {
		return nil, errors.Join(os.NewSyscallError("setsockopt SO_SNDTIMEO", err), p.close())
	}
	if cfg.Rate > 0 {
		p.pace = time.Duration(float64(cfg.Size) * 8 * float64(cfg.Connections) / float64(cfg.Rate) * 1e9)
	}
	for _, packet := range p.batch.buffers {
		copy(packet, session[:])
		binary.BigEndian.PutUint32(packet[8:], uint32(connection))
	}
	return p, nil
}

func (p *packets) begin() { p.due = time.Now() }

// send sends the packets that are due, at most a batch; if none is due, it waits for the next.
func (p *packets) send() error {
	now, n := time.Now(), batchSize
	if p.pace > 0 {
		n = 0
		for ; n < batchSize && !p.due.After(now); n++ {
			p.due = p.due.Add(p.pace)
		}
		if n == 0 {
			time.Sleep(min(p.due.Sub(now), stopPatience))
			return nil
		}
	}
	for k := range n {
		packet := p.batch.buffers[k]
		binary.BigEndian.PutUint64(packet[16:], p.sequence+uint64(k))
		binary.BigEndian.PutUint64(packet[24:], uint64(now.Sub(p.started)))
	}
	sent, errno := p.batch.send(p.fd, n, p.raw)
	p.sequence += uint64(sent)
	switch errno {
	case 0, unix.EAGAIN, unix.EINTR, unix.ENOBUFS, unix.ECONNREFUSED: // the Sink refused an earlier packet
		return nil
	}
	return os.NewSyscallError("sendmmsg", errno)
}

func (p *packets) retransmits() int64 { return 0 }

func (p *packets) queued() (int, error) {
	n, err := unix.IoctlGetInt(p.fd, unix.SIOCOUTQ)
	return n, os.NewSyscallError("ioctl SIOCOUTQ", err)
}

func (p *packets) close() error { return unix.Close(p.fd) }
