package load

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// spin is how long before a send the loop stops sleeping and looks
	// without pause: waking a sleeping thread takes about 45 µs in a virtual
	// machine, which would be added to every latency.
	spin = 50 * time.Microsecond
	// spinStep is the longest turn of the loop that counts as spinning;
	// longer ones were interrupted by something that needed the CPU.
	spinStep = 20 * time.Microsecond
	// batch is how many requests are sent before responses are looked at again.
	batch = 8
	// handshakes is how many connections are being made at once in the
	// beginning, less than any server's backlog.
	handshakes = 128
	// retry is the pause before a connection that failed is made again.
	retry = 10 * time.Millisecond
	// stopID is the number under which the stop signal is watched.
	stopID = -1
)

// engine is one sending thread: a loop that sends what is due, waits, and
// reads what came. Nothing in the loop allocates, takes a lock or blocks
// except waiting.
type engine struct {
	cfg     HTTPConfig
	pace    pace
	request []byte
	poll    poller
	rx      *receiver
	conns   []conn
	lists   [states]list
	stopFD  int
	stopped atomic.Bool
	marks   chan func() // what to call when the window begins and ends

	start      time.Time
	begin, end int64 // of the window, nanoseconds since start
	giveUp     int64 // end of the drain
	next       int64 // number of the next request of the plan
	nextAt     int64 // when it is due
	planned    int64 // requests of the plan up to the end of the window
	pending    int64 // measured requests that are out
	begun      bool
	ended      bool
	spinning   bool
	cpu, spun  time.Duration // at begin; then what the window took
	res        Result
}

func newEngine(cfg HTTPConfig) (*engine, error) {
	e := &engine{
		cfg: cfg, pace: pace{cfg.Rate}, request: cfg.request(),
		rx: newReceiver(64 << 10), conns: make([]conn, cfg.Connections),
		marks: make(chan func(), 2),
		res: Result{
			Errors: map[Kind]int64{}, Latency: newHistogram(), ServiceTime: newHistogram(),
			NetworkTime: newHistogram(), SendLag: newHistogram(),
		},
	}
	for s := range e.lists {
		e.lists[s] = list{head: -1, tail: -1}
	}
	for i := range e.conns {
		e.conns[i].fd = -1
		e.link(int32(i), down, 0)
	}
	var err error
	if e.poll.fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("load: %w", os.NewSyscallError("epoll_create1", err))
	}
	if e.stopFD, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		unix.Close(e.poll.fd)
		return nil, fmt.Errorf("load: %w", os.NewSyscallError("eventfd", err))
	}
	if err := e.poll.watch(int32(e.stopFD), stopID, unix.EPOLLIN|unix.EPOLLET); err != nil {
		e.close()
		return nil, fmt.Errorf("load: %w", err)
	}
	return e, nil
}

// stop ends the window at once; it may be called from any goroutine.
func (e *engine) stop() {
	e.stopped.Store(true)
	// A full eventfd has woken the loop already.
	_, _ = unix.Write(e.stopFD, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

func (e *engine) close() {
	for i := range e.conns {
		if e.conns[i].fd >= 0 {
			unix.Close(int(e.conns[i].fd))
		}
	}
	unix.Close(e.stopFD)
	unix.Close(e.poll.fd)
}

// now is nanoseconds since the start.
func (e *engine) now() int64 { return int64(time.Since(e.start)) }

func (e *engine) open() bool { return e.cfg.Rate > 0 }

// run makes the connections, then sends and reads until the window and the
// drain are over.
func (e *engine) run() error {
	// Best effort: a coarser timer only makes sends later, and they are counted.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	e.start = time.Now()
	if err := e.connectAll(); err != nil {
		return err
	}
	e.start = time.Now()
	e.begin, e.end = int64(e.cfg.Warmup), int64(e.cfg.Warmup+e.cfg.Duration)
	if e.open() {
		e.planned = e.pace.planned(time.Duration(e.end))
	}
	for i := range e.conns {
		e.conns[i].freeAt, e.conns[i].since = 0, 0
	}
	for {
		now := e.now()
		if e.turn(now) {
			return nil
		}
		if e.stopped.Load() && !e.begun {
			return nil
		}
		e.sendDue(now)
		e.expire(now)
		if err := e.readReady(); err != nil {
			return err
		}
	}
}

// turn begins and ends the window when it is time, and says when all is over.
func (e *engine) turn(now int64) (over bool) {
	if !e.begun && now >= e.begin {
		e.begun = true
		e.res.Begin = e.start.Add(time.Duration(e.begin))
		e.cpu, e.spun = threadCPU(), 0
		e.mark(e.cfg.Begin)
	}
	if !e.begun {
		return false
	}
	if !e.ended && (now >= e.end || e.stopped.Load()) {
		e.ended = true
		if now < e.end {
			e.end = now
			e.res.Interrupted = true
			if e.open() {
				e.planned = e.pace.planned(time.Duration(e.end))
			}
		}
		e.giveUp = now + int64(drain)
		e.res.Elapsed = time.Duration(e.end - e.begin)
		if e.open() {
			e.res.Planned = e.planned - e.pace.planned(time.Duration(e.begin))
		}
		took := time.Duration(now - e.begin).Seconds()
		e.res.GeneratorSpin = e.spun.Seconds() / took
		e.res.GeneratorCPU = max(0, (threadCPU()-e.cpu-e.spun).Seconds()/took)
		e.mark(e.cfg.End)
	}
	if !e.ended || now < e.giveUp && (e.pending > 0 || e.next < e.planned) {
		return false
	}
	e.recordMissed(now)
	return true
}

func (e *engine) mark(f func()) {
	if f != nil {
		e.marks <- f
	}
}

// recordMissed counts what has no answer at the end, and records how long it
// has waited by now: the true latency is at least that.
func (e *engine) recordMissed(now int64) {
	for i := e.lists[busy].head; i >= 0; i = e.conns[i].next {
		if c := &e.conns[i]; c.measured {
			e.res.Missed++
			e.recordTimes(c, now)
		}
	}
	for ; e.next < e.planned; e.next++ {
		if at := int64(e.pace.at(e.next)); at >= e.begin {
			e.res.Missed++
			record(e.res.Latency, now-at)
		}
	}
}

// recordTimes records what c's request took, or has taken so far, by two
// clocks. One that could not even be sent has no service time.
func (e *engine) recordTimes(c *conn, now int64) {
	if now > c.since {
		record(e.res.ServiceTime, now-c.since)
	}
	if e.open() {
		record(e.res.Latency, now-c.planned)
	}
}

// sendDue sends requests that are due over connections that are free, at most
// a batch. In a closed loop a request is due whenever a connection is free.
func (e *engine) sendDue(now int64) {
	for range batch {
		i := e.lists[idle].head
		switch {
		case i < 0:
			return
		case !e.open():
			if e.ended {
				return
			}
			e.transmit(i, -1)
		case e.next >= e.planned || e.nextAt > now:
			return
		default:
			at := e.nextAt
			e.next++
			e.nextAt = int64(e.pace.at(e.next))
			now = e.transmit(i, at)
		}
	}
}

// transmit sends a request that was planned for the given time, or at once and
// within the window if that is negative. It returns the time of the send.
func (e *engine) transmit(i int32, planned int64) int64 {
	c := &e.conns[i]
	t := time.Now() // right before the send: writing to a veth or loopback delivers the packet, which takes its time
	sent := int64(t.Sub(e.start))
	if planned < 0 {
		if sent >= e.end {
			return sent
		}
		planned = sent
	}
	c.resp.reset()
	c.planned, c.sentWall = planned, t.UnixNano()
	c.measured = planned >= e.begin && planned < e.end
	e.move(i, busy, sent)
	if c.measured {
		e.pending++
	}
	if !send(c.fd, e.request) {
		e.fail(i, Reset, sent)
		return sent
	}
	if c.measured {
		e.res.Sent++
		if e.open() {
			own := sent - max(planned, c.freeAt)
			record(e.res.SendLag, own)
			switch {
			case own > int64(LateAfter):
				e.res.Late++
			case sent-planned > int64(LateAfter):
				e.res.Queued++
			}
		}
	}
	return sent
}

// expire ends what has taken too long and connects again what is down.
func (e *engine) expire(now int64) {
	for i := e.lists[busy].head; i >= 0 && now-e.conns[i].since >= int64(e.cfg.Timeout); i = e.lists[busy].head {
		e.fail(i, Timeout, now)
	}
	for i := e.lists[connecting].head; i >= 0 && now-e.conns[i].since >= int64(e.cfg.Timeout); i = e.lists[connecting].head {
		e.lost(i, now)
	}
	for i := e.lists[down].head; i >= 0 && now-e.conns[i].since >= int64(retry); i = e.lists[down].head {
		if err := e.connect(i, now); err != nil {
			e.lost(i, now)
		}
	}
}

// pause is how long the loop may sleep: until the next thing that it has to
// do by itself. Shortly before a send it must not sleep any more.
func (e *engine) pause(now int64) time.Duration {
	until := e.end
	switch {
	case !e.begun:
		until = e.begin
	case e.ended:
		until = e.giveUp
	}
	after := func(s state, d time.Duration) {
		if i := e.lists[s].head; i >= 0 {
			until = min(until, e.conns[i].since+int64(d))
		}
	}
	after(busy, e.cfg.Timeout)
	after(connecting, e.cfg.Timeout)
	after(down, retry)
	if e.lists[idle].head >= 0 {
		if !e.open() && !e.ended {
			return 0
		}
		if e.open() && e.next < e.planned && e.nextAt-int64(spin) < until {
			sleep := time.Duration(e.nextAt - int64(spin) - now)
			e.spinning = sleep <= 0
			return max(0, sleep)
		}
	}
	return max(0, time.Duration(until-now))
}

// readReady waits and handles what is ready.
func (e *engine) readReady() error {
	now := e.now()
	e.spinning = false
	events, err := e.poll.wait(e.pause(now))
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	if len(events) == 0 && e.spinning {
		if turn := time.Duration(e.now() - now); turn <= spinStep {
			e.spun += turn
		}
	}
	for k := range events {
		i := events[k].Fd
		if i == stopID {
			continue
		}
		switch e.conns[i].state {
		case connecting:
			e.connected(i)
		case idle, busy:
			e.sendDue(e.read(i))
		}
	}
	return nil
}

// read takes what came on connection i, and returns the time.
func (e *engine) read(i int32) int64 {
	c := &e.conns[i]
	n, stamp, errno := e.rx.recv(c.fd)
	t := time.Now()
	now := int64(t.Sub(e.start))
	if errno == unix.EAGAIN || errno == unix.EINTR {
		return now
	}
	if kind := broken(c, n, errno); kind != "" {
		e.fail(i, kind, now)
		return now
	}
	used, done, bad := c.resp.feed(e.rx.buf[:n])
	switch {
	case bad != "":
		e.fail(i, bad, now)
	case done && used < n:
		e.fail(i, Malformed, now)
	case done:
		if stamp < c.sentWall || stamp > t.UnixNano() {
			stamp = 0 // the wall clock was set meanwhile
		}
		e.complete(i, now, t.UnixNano(), stamp)
	}
	return now
}

// broken says why a read of n bytes ends the connection, or "".
func broken(c *conn, n int, errno unix.Errno) Kind {
	switch {
	case errno != 0:
		return Reset
	case n > 0 && c.state == idle:
		return Malformed
	case n > 0:
		return ""
	case c.state == idle:
		return Closed
	case c.resp.size > 0:
		return Short
	}
	return Reset
}

// complete records a response that was read at now, which is nowWall on the
// kernel's clock, and had been received at stamp, or 0 if that is not known.
func (e *engine) complete(i int32, now, nowWall, stamp int64) {
	c := &e.conns[i]
	good := c.resp.status >= 200 && c.resp.status <= 299
	if good && now >= e.begin && now < e.end {
		e.res.Completed++
	}
	switch {
	case !c.measured:
	case !good:
		e.pending--
		e.res.Errors[Status]++
		e.recordTimes(c, now)
	default:
		e.pending--
		e.res.Requests++
		e.recordTimes(c, now)
		if stamp > 0 {
			record(e.res.NetworkTime, stamp-c.sentWall)
		}
	}
	c.measured = false
	e.move(i, idle, now)
	c.freeAt = now
	if stamp > 0 {
		c.freeAt = now - (nowWall - stamp)
	}
	if c.resp.close {
		e.fail(i, Closed, now)
	}
}
