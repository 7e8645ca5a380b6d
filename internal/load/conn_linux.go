package load

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// state is the state of a connection. The engine has a list of connections for each
// state.
type state uint8

const (
	idle       state = iota // no request on the way; the longest idle is first in the list, so that connections are used in turn
	busy                    // a request is on the way; in the order of sending, so that the first times out first
	connecting              // no request on the way; in the order in which connecting began
	down                    // not connected, until the retry
	states
)

// conn is one connection. If each request has a connection of its own, conn holds one
// connection after the other. All times are nanoseconds since the engine's start.
type conn struct {
	fd         int32 // -1: none
	generation int32 // how many descriptors this conn has had
	prev, next int32 // in the list of its state, -1 at the ends
	state      state
	connected  bool   // the socket is connected
	served     bool   // the connection has completed a request
	measured   bool   // the current request was planned within the window
	seq        uint64 // number of the current request on this connection
	planned    int64  // when the current request was due
	since      int64  // when the state began: for a busy connection the actual send
	sentWall   int64  // the actual send in wall-clock nanoseconds, comparable with the kernel's timestamps
	freeAt     int64  // when the last response arrived
	resp       response
}

// list is a queue of connections, linked through conn.prev and conn.next.
type list struct {
	head, tail int32
	n          int
}

// queues are the connections of a thread, each in the list of its state.
type queues struct {
	conns []conn
	lists [states]list
}

// newQueues returns n connections in state down.
func newQueues(n int) queues {
	q := queues{conns: make([]conn, n)}
	for s := range q.lists {
		q.lists[s] = list{head: -1, tail: -1}
	}
	for i := range q.conns {
		q.conns[i].fd = -1
		q.link(int32(i), down, 0)
	}
	return q
}

// move takes connection i out of its list and puts it at the end of the list of the
// new state.
func (q *queues) move(i int32, to state, now int64) {
	q.unlink(i)
	q.link(i, to, now)
}

func (q *queues) link(i int32, to state, now int64) {
	c := &q.conns[i]
	c.state, c.since = to, now
	l := &q.lists[to]
	c.prev, c.next = l.tail, -1
	if l.tail >= 0 {
		q.conns[l.tail].next = i
	} else {
		l.head = i
	}
	l.tail = i
	l.n++
}

func (q *queues) unlink(i int32) {
	c := &q.conns[i]
	l := &q.lists[c.state]
	if c.prev >= 0 {
		q.conns[c.prev].next = c.next
	} else {
		l.head = c.next
	}
	if c.next >= 0 {
		q.conns[c.next].prev = c.prev
	} else {
		l.tail = c.prev
	}
	l.n--
}

// fail ends a connection and counts the error, for the request that was on the way or,
// without one, for the connection. The age of that request is recorded as its latency:
// the response would have taken at least that long, and leaving the request out would
// make the latency look better than it is.
func (e *engine) fail(i int32, kind Kind, now int64) {
	c := &e.conns[i]
	switch {
	case c.measured:
		e.countError(c, kind)
		e.recordTimes(c, now)
		e.pending--
		c.measured = false
	case c.state != busy && e.begun && !e.ended:
		e.res.ConnectionErrors[kind]++
		e.rec.connectionErrors++
	}
	e.drop(c)
	e.life.onFailure(e, i, now)
}

// drop closes c's connection, if it has one.
func (e *engine) drop(c *conn) {
	if c.fd >= 0 {
		hangUp(c.fd)
		c.fd, c.connected = -1, false
	}
}

// connect begins to open connection i.
func (e *engine) connect(i int32) error {
	c := &e.conns[i]
	fd, err := e.dialer.dial(int(i)*e.threads + e.thread)
	if err != nil {
		return err
	}
	c.fd, c.connected, c.served = fd, false, false
	c.generation++
	return e.poll.watch(fd, watched, i, c.generation)
}

// finishConnect returns the error with which opening connection i failed, or marks it as connected.
func (e *engine) finishConnect(i int32, flags uint32) error {
	c := &e.conns[i]
	if flags&unix.EPOLLOUT == 0 || flags&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		if err := socketError(c.fd); err != nil {
			return err
		}
	}
	c.connected = true
	return nil
}

// connectAll opens all connections before the load begins. Here the first failure is an
// error; later failures are counted.
func (e *engine) connectAll() error {
	fail := func(err error) error {
		share := ""
		if e.threads > 1 {
			share = fmt.Sprintf(" of thread %d", e.thread+1)
		}
		return fmt.Errorf("load: connection %d of %d%s to %v: %w%s", e.lists[idle].n+1, len(e.conns), share, e.cfg.Target, err, advice(err))
	}
	for e.lists[idle].n < len(e.conns) {
		now := e.now()
		for e.lists[down].n > 0 && e.lists[connecting].n < max(1, handshakes/e.threads) {
			i := e.lists[down].head
			if err := e.connect(i); err != nil {
				return fail(err)
			}
			e.move(i, connecting, now)
		}
		left := e.conns[e.lists[connecting].head].since + int64(e.cfg.Timeout) - now
		if left <= 0 {
			return fail(os.ErrDeadlineExceeded)
		}
		events, err := e.poll.wait(time.Duration(left))
		if err != nil {
			return err
		}
		for k := range events {
			i := events[k].Fd
			switch {
			case i == stopID:
				return nil // run notices the stop itself
			case e.conns[i].state != connecting:
				if events[k].Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
					return fail(errors.New("the server closed the connection at once; does it allow that many connections?"))
				}
				continue
			}
			if err := e.finishConnect(i, events[k].Events); err != nil {
				return fail(err)
			}
			e.move(i, idle, e.now())
		}
	}
	return nil
}

// advice returns the setting that helps against the error, "" if none is known.
func advice(err error) string {
	switch {
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return "; no local port is left: widen net.ipv4.ip_local_port_range or give more --source addresses"
	case errors.Is(err, unix.EMFILE):
		return "; the limit on open files is reached: raise it with ulimit -Hn, or give more --threads, which have a table each"
	case errors.Is(err, unix.ENFILE):
		return "; the machine's limit on open files is reached: raise fs.file-max"
	}
	return ""
}
