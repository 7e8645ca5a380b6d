package load

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// batch is how many requests are sent before the loop reads responses.
	batch = 8
	// handshakes is how many connections are opened at once at the start: fewer than a
	// server's backlog usually holds.
	handshakes = 128
	// retry is the pause before a failed connection is opened again.
	retry = 10 * time.Millisecond
	// maxApart (nanoseconds) is how far wall clock and steady clock may diverge
	// during a request. NTP slews both clocks; only a step of the wall clock makes
	// them diverge.
	maxApart = int64(50 * time.Microsecond)
	// stopID is the number under which the stop signal is watched.
	stopID = -1
)

// engine is one sending thread: a loop that sends the requests that are due, waits, and
// reads responses. The loop allocates nothing, takes no lock, and blocks only in its
// wait. Of n threads each sends every n-th request of the plan over its own share of
// the connections.
type engine struct {
	cfg     Config
	thread  int // from 0
	threads int
	plan    schedule
	proto   protocol
	life    life
	dialer  *dialer
	poll    poller
	rx      *receiver
	full    int // a read of at least this many bytes may have left bytes in the socket
	queues
	stopFD  int
	stopped atomic.Bool
	marks   chan<- mark // reports the begin and end of the window; set for the first thread only
	seconds *collector
	rec     *interval // of the current second
	guard   guard
	lag     lag
	self    *thread
	work    chan func(*engine) error // tasks for the thread; the thread ends when it is closed
	over    chan struct{}            // closed when the thread has ended

	start      time.Time
	begin, end int64 // of the window, nanoseconds since start
	rotateAt   int64 // end of the current second
	giveUp     int64 // end of the drain
	reopened   int64 // connections opened again before this slice
	pending    int64 // measured requests without a response yet
	begun      bool
	ended      bool
	wakeAt     int64         // when the current wait should end; 0 if it is not for a send
	spinUntil  int64         // when the current spin should end; 0 if the loop sleeps instead
	preempted  int64         // preemptions of the thread so far
	cpu        time.Duration // CPU time of the thread at the begin of the window
	spin       spin
	waited     time.Duration // time that the thread had waited for a CPU, at the begin of the window
	res        Result
}

// newEngine makes thread k. Its descriptors for waiting and stopping are opened in the
// process's file table, so that a thread with a copy of the table has them, too.
func newEngine(cfg Config, k, threads int, seconds *collector) (*engine, error) {
	share := cfg.Connections / threads
	if k < cfg.Connections%threads {
		share++
	}
	e := &engine{
		cfg: cfg, thread: k, threads: threads, proto: cfg.Exchange.protocol(), life: kept{},
		rx: newReceiver(receiveBuffer), full: receiveBuffer, queues: newQueues(share),
		seconds: seconds, guard: guard{lead: float64(firstLead), disabled: !maySpin(threads)},
		work: make(chan func(*engine) error), over: make(chan struct{}),
	}
	e.dialer = newDialer(cfg, len(e.proto.request(0)))
	if !cfg.Exchange.lasting() {
		e.life = once{}
	}
	if cfg.Exchange.network() == "udp" {
		e.full = 0 // each read takes one datagram
	}
	var err error
	if e.poll.fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("load: %w", os.NewSyscallError("epoll_create1", err))
	}
	if e.stopFD, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		unix.Close(e.poll.fd)
		return nil, fmt.Errorf("load: %w", os.NewSyscallError("eventfd", err))
	}
	if err := e.poll.watch(int32(e.stopFD), unix.EPOLLIN|unix.EPOLLET, stopID, 0); err != nil {
		e.close()
		return nil, fmt.Errorf("load: %w", err)
	}
	return e, nil
}

// stop ends the window at once; it may be called from any goroutine.
func (e *engine) stop() {
	e.stopped.Store(true)
	// The write fails only if the eventfd is full. Then the loop is awake already.
	_, _ = unix.Write(e.stopFD, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

// close closes what newEngine opened.
func (e *engine) close() {
	unix.Close(e.stopFD)
	unix.Close(e.poll.fd)
}

// now is nanoseconds since the start.
func (e *engine) now() int64 { return int64(time.Since(e.start)) }

// prepare makes the thread ready to send.
func (e *engine) prepare() error {
	// An error is ignored: timers are then coarser, and the later sends are counted as late.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	e.self = newThread()
	e.preempted = e.self.countPreemptions()
	e.start = time.Now()
	return e.life.prepare(e)
}

// run sends and reads until cfg's window and the drain are over. All threads
// count from the same start.
func (e *engine) run(cfg Config, start time.Time) error {
	e.reset(cfg, start)
	for {
		now := e.now()
		e.slept(now)
		if e.advance(now) {
			return nil
		}
		if e.stopped.Load() && !e.begun {
			return nil
		}
		if e.sendDue(now) {
			now = e.now()
		}
		e.expire(now)
		events, err := e.await(now, e.pause(now))
		if err != nil {
			return fmt.Errorf("load: %w", err)
		}
		if len(events) > 0 {
			e.wakeAt = 0
			e.handle(events)
		}
	}
}

// sendDue sends requests that are due over idle connections, at most a batch. In a
// closed loop a request is due whenever a connection is idle.
func (e *engine) sendDue(now int64) (sent bool) {
	for range batch {
		i := e.lists[idle].head
		switch {
		case i < 0:
			return sent
		case !e.cfg.open():
			if e.ended {
				return sent
			}
			e.transmit(i, -1)
		case e.plan.due >= e.end || e.plan.due > now:
			return sent
		default:
			due := e.plan.due
			e.plan.advance(int64(e.threads))
			now = e.transmit(i, due)
		}
		sent = true
	}
	return sent
}

// transmit sends a request over connection i and returns the time of the send. planned is
// when the request was due; if planned is negative (closed loop), the request is due now,
// and is not sent after the end of the window.
func (e *engine) transmit(i int32, planned int64) int64 {
	c := &e.conns[i]
	t := time.Now() // right before the send: a write to a veth or loopback also delivers the packet, which takes time
	sent := int64(t.Sub(e.start))
	own := int64(0) // delay caused by the engine
	switch {
	case planned >= 0:
		own = e.lag.own(planned, c.freeAt, sent)
	case sent >= e.end:
		return sent
	default:
		planned = sent
	}
	c.resp.reset()
	c.seq++
	c.planned, c.sentWall = planned, t.UnixNano()
	c.measured = planned >= e.begin && planned < e.end
	measured := c.measured
	e.move(i, busy, sent)
	if measured {
		e.pending++
	}
	e.life.start(e, i, sent)
	if measured {
		e.countSend(planned, sent, own)
	}
	return sent
}

// expire fails connections that have timed out, and opens failed connections again after
// their pause.
func (e *engine) expire(now int64) {
	for i := e.lists[busy].head; i >= 0 && now-e.conns[i].since >= int64(e.cfg.Timeout); i = e.lists[busy].head {
		kind := Timeout
		if !e.conns[i].connected {
			kind = Connect // the request has a connection of its own, which is not open yet
		}
		e.fail(i, kind, now)
	}
	for i := e.lists[connecting].head; i >= 0 && now-e.conns[i].since >= int64(e.cfg.Timeout); i = e.lists[connecting].head {
		e.fail(i, Connect, now)
	}
	for i := e.lists[down].head; i >= 0 && now-e.conns[i].since >= int64(retry); i = e.lists[down].head {
		e.life.revive(e, i, now)
	}
}

// pause returns how long the loop may sleep: until the next send, timeout, retry or
// border of the window or of a second. Shortly before a send the loop spins instead.
func (e *engine) pause(now int64) time.Duration {
	until := e.rotateAt
	switch {
	case !e.begun:
		until = e.begin
	case e.ended:
		until = min(until, e.giveUp)
	default:
		until = min(until, e.end)
	}
	limit := func(s state, d time.Duration) { // to d after the first connection of the list came to s
		if i := e.lists[s].head; i >= 0 {
			until = min(until, e.conns[i].since+int64(d))
		}
	}
	limit(busy, e.cfg.Timeout)
	limit(connecting, e.cfg.Timeout)
	limit(down, retry)
	e.wakeAt, e.spinUntil = 0, 0
	if e.lists[idle].head >= 0 {
		if !e.cfg.open() && !e.ended {
			return 0
		}
		if e.cfg.open() && e.plan.due < e.end {
			spinTime := e.guard.spinTime(now)
			wake := e.plan.due - spinTime
			switch {
			case wake >= until:
			case wake-now > spinTime: // a shorter sleep would probably end after wake
				e.wakeAt, until = wake, wake
			default:
				e.spinUntil = min(e.plan.due, until)
				until = now
			}
		}
	}
	return max(0, time.Duration(until-now))
}

// await waits for events: asleep for the pause, or spinning.
func (e *engine) await(now int64, pause time.Duration) ([]unix.EpollEvent, error) {
	if e.spinUntil == 0 {
		return e.poll.wait(pause)
	}
	for {
		events, err := e.poll.wait(0)
		last := now
		now = e.now()
		if len(events) > 0 || err != nil {
			return events, err
		}
		took := now - last
		e.spin.add(took)
		if took > int64(spinStep) {
			if n := e.self.countPreemptions(); n > e.preempted {
				e.preempted = n
				e.guard.countInterruption(now, took)
			}
		}
		if now >= e.spinUntil || now < e.guard.pausedUntil {
			return nil, nil
		}
	}
}

// slept tells the guard how late the loop woke up, if no event ended the wait.
func (e *engine) slept(now int64) {
	if e.wakeAt > 0 && now >= e.wakeAt && !e.guard.disabled && now >= e.guard.pausedUntil {
		e.guard.learn(now - e.wakeAt)
	}
}

// handle handles the events of connections that are ready.
func (e *engine) handle(events []unix.EpollEvent) {
	for k := range events {
		i := events[k].Fd
		if i == stopID || events[k].Pad != e.conns[i].generation {
			continue
		}
		if e.conns[i].connected {
			e.read(i, events[k].Events)
			continue
		}
		now := e.now()
		if err := e.finishConnect(i, events[k].Events); err != nil {
			e.fail(i, Connect, now)
			continue
		}
		e.life.onConnect(e, i, now)
		e.read(i, events[k].Events)
	}
}

// read reads from connection i, and sends a request that is due once its response is complete.
func (e *engine) read(i int32, flags uint32) {
	c := &e.conns[i]
	if flags&^unix.EPOLLOUT == 0 {
		return
	}
	for generation := c.generation; c.connected && c.generation == generation; {
		n, stamp, errno := e.rx.recv(c.fd)
		if errno == unix.EAGAIN || errno == unix.EINTR {
			return
		}
		t := time.Now()
		now := int64(t.Sub(e.start))
		done, bad := false, e.classifyRead(c, n, errno)
		if bad == "" && c.state == busy {
			done, bad = e.proto.feed(&c.resp, c.seq, e.rx.buf[:n])
		}
		switch {
		case bad != "":
			e.fail(i, bad, now)
			return
		case done:
			e.complete(i, now, t.UnixNano(), stamp)
			if flags&unix.EPOLLRDHUP == 0 {
				e.sendDue(now)
				return
			}
		case n < e.full && flags&unix.EPOLLRDHUP == 0:
			return // the socket is empty
		}
	}
}

// classifyRead returns the kind of error if a read of n bytes with errno ends connection c,
// else "".
func (e *engine) classifyRead(c *conn, n int, errno unix.Errno) Kind {
	switch {
	case errno == unix.ECONNREFUSED:
		return Connect // UDP: nobody listens on the target's port any more
	case errno != 0:
		return Reset
	case n > 0 && c.state == idle:
		return e.proto.stray()
	case n > 0:
		return ""
	case c.state == idle:
		return Closed
	case c.resp.size > 0:
		return Short
	}
	return Reset
}

// checkStamp returns why the kernel's timestamp of a response can't be used, or "". The
// response was read at now, which is nowWall on the wall clock.
func (c *conn) checkStamp(now, nowWall, stamp int64) Unstamped {
	drift := nowWall - c.sentWall - (now - c.since) // of the wall clock against the steady clock
	switch {
	case stamp == 0:
		return NoTimestamp
	case max(drift, -drift) > maxApart || stamp < c.sentWall || stamp > nowWall:
		return ClocksApart
	}
	return ""
}

// complete records a response that was read at now, which is nowWall on the wall clock.
// stamp is when the kernel received the response, on the wall clock; 0 is unknown.
func (e *engine) complete(i int32, now, nowWall, stamp int64) {
	c := &e.conns[i]
	why := c.checkStamp(now, nowWall, stamp)
	c.served = true
	good := c.resp.good()
	if good && now >= e.begin && now < e.end {
		e.res.Completed++
	}
	if c.measured {
		e.pending--
		e.recordTimes(c, now)
		if good {
			e.countAnswer(c)
			if why == "" {
				record(e.rec.networkTime, stamp-c.sentWall)
			} else {
				e.res.Unstamped[why]++
			}
		} else {
			e.countError(c, Status)
		}
		c.measured = false
	}
	c.freeAt = now
	if why == "" {
		c.freeAt = now - (nowWall - stamp)
	}
	e.life.onAnswer(e, i, c.resp.close, now)
}
