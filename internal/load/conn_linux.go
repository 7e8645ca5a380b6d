package load

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// state is what a connection is doing; it is in the engine's list of that
// state and in no other.
type state uint8

const (
	idle       state = iota // without a request; the longest idle first, so that all connections are used in turn
	busy                    // with a request under way; in the order of sending, so that the first times out first
	connecting              // without a request; in the order of their starts
	down                    // waiting to be connected again
	states
)

// conn is one connection, or the place for one where each request makes its
// own. All times are nanoseconds since the engine's start.
type conn struct {
	fd         int32 // -1: none
	generation int32 // of the descriptor
	prev, next int32 // in the list of its state, -1 at the ends
	state      state
	up         bool   // the descriptor is connected
	served     bool   // it has completed a request
	measured   bool   // the request was planned within the window
	seq        uint64 // number of the request on this connection
	planned    int64  // when the request should have been sent
	since      int64  // when the state began: for a busy connection the actual send
	sentWall   int64  // the actual send in wall-clock nanoseconds, as the kernel stamps
	freeAt     int64  // when the last response had arrived
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

// newQueues makes n places for connections, all down.
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

// move takes connection i out of the list of its state and puts it at the end
// of that of the new one.
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

// fail ends a connection, counts why, and lets its life go on: an error of the
// request that was out on it, or of the connection if none was. The age of that
// request is the least that its answer would have taken; left out, it would
// flatter the latency.
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
	e.life.failed(e, i, now)
}

// drop closes c's connection, if it has one.
func (e *engine) drop(c *conn) {
	if c.fd >= 0 {
		hangUp(c.fd)
		c.fd, c.up = -1, false
	}
}

// connect starts to connect i.
func (e *engine) connect(i int32) error {
	c := &e.conns[i]
	fd, err := e.dialer.dial(int(i)*e.threads + e.thread)
	if err != nil {
		return err
	}
	c.fd, c.up, c.served = fd, false, false
	c.generation++
	return e.poll.watch(fd, watched, i, c.generation)
}

// established sees how the connecting of i went.
func (e *engine) established(i int32, flags uint32) error {
	c := &e.conns[i]
	if flags&unix.EPOLLOUT == 0 || flags&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		if err := socketError(c.fd); err != nil {
			return err
		}
	}
	c.up = true
	return nil
}

// connectAll makes all connections before the load begins. Unlike later, the
// first that fails is an error.
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
				return nil // run sees it
			case e.conns[i].state != connecting:
				if events[k].Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
					return fail(errors.New("the server closed it at once; does it allow so many?"))
				}
				continue
			}
			if err := e.established(i, events[k].Events); err != nil {
				return fail(err)
			}
			e.move(i, idle, e.now())
		}
	}
	return nil
}

// advice is which setting helps, where one does.
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
