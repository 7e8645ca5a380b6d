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
	idle       state = iota // has no request; oldest first, so that all take their turns
	busy                    // a request is out; in the order of sending, so that the first times out first
	connecting              // in the order of starting
	down                    // waits to connect again
	states
)

// conn is one connection. All times are nanoseconds since the engine's start.
type conn struct {
	fd         int32
	state      state
	measured   bool  // the request was planned within the window
	prev, next int32 // in the list of its state, -1 at the ends
	planned    int64 // when the request should have been sent
	since      int64 // when the state began: for a busy connection the actual send
	sentWall   int64 // the actual send in wall-clock nanoseconds, as the kernel stamps
	freeAt     int64 // when the last response had arrived
	resp       response
}

// list is a queue of connections, linked through conn.prev and conn.next.
type list struct {
	head, tail int32
	n          int
}

// move takes connection i out of the list of its state and puts it at the end
// of that of the new one.
func (e *engine) move(i int32, to state, now int64) {
	e.unlink(i)
	e.link(i, to, now)
}

func (e *engine) link(i int32, to state, now int64) {
	c := &e.conns[i]
	c.state, c.since = to, now
	l := &e.lists[to]
	c.prev, c.next = l.tail, -1
	if l.tail >= 0 {
		e.conns[l.tail].next = i
	} else {
		l.head = i
	}
	l.tail = i
	l.n++
}

func (e *engine) unlink(i int32) {
	c := &e.conns[i]
	l := &e.lists[c.state]
	if c.prev >= 0 {
		e.conns[c.prev].next = c.next
	} else {
		l.head = c.next
	}
	if c.next >= 0 {
		e.conns[c.next].prev = c.prev
	} else {
		l.tail = c.prev
	}
	l.n--
}

// fail ends a connection, counts why, and begins to make it again. The age of
// a request that was out on it is the least that its answer would have taken;
// left out, it would flatter the latency.
func (e *engine) fail(i int32, kind Kind, now int64) {
	c := &e.conns[i]
	if c.measured || c.state != busy && e.begun && !e.ended {
		e.res.Errors[kind]++
	}
	if c.measured {
		e.recordTimes(c, now)
		e.pending--
		c.measured = false
	}
	e.hangUp(c)
	if err := e.connect(i, now); err != nil {
		e.lost(i, now)
	}
}

// lost notes that connection i could not be made; expire tries again.
func (e *engine) lost(i int32, now int64) {
	if e.begun && !e.ended {
		e.res.Errors[Connect]++
	}
	e.hangUp(&e.conns[i])
	e.move(i, down, now)
}

func (e *engine) hangUp(c *conn) {
	if c.fd >= 0 {
		unix.Close(int(c.fd))
		c.fd = -1
	}
}

// connect starts to connect i.
func (e *engine) connect(i int32, now int64) error {
	fd, err := connectSocket(e.cfg.Target)
	if err != nil {
		return err
	}
	e.conns[i].fd = fd
	e.move(i, connecting, now)
	return e.poll.watch(fd, i, unix.EPOLLOUT)
}

// connected sees how the connecting of i went.
func (e *engine) connected(i int32) {
	now := e.now()
	if err := e.established(i, now); err != nil {
		e.lost(i, now)
	}
}

func (e *engine) established(i int32, now int64) error {
	c := &e.conns[i]
	if err := socketError(c.fd); err != nil {
		return err
	}
	if err := e.poll.rewatch(c.fd, i, unix.EPOLLIN); err != nil {
		return err
	}
	e.move(i, idle, now)
	c.freeAt = now
	return nil
}

// connectAll makes all connections before the load begins. Unlike later, the
// first that fails is an error.
func (e *engine) connectAll() error {
	fail := func(err error) error {
		return fmt.Errorf("load: connection %d of %d to %v: %w", e.lists[idle].n+1, len(e.conns), e.cfg.Target, err)
	}
	for e.lists[idle].n < len(e.conns) {
		now := e.now()
		for e.lists[down].n > 0 && e.lists[connecting].n < handshakes {
			if err := e.connect(e.lists[down].head, now); err != nil {
				return fail(err)
			}
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
				return fail(errors.New("the server closed it at once; does it allow so many?"))
			}
			if err := e.established(i, e.now()); err != nil {
				return fail(err)
			}
		}
	}
	return nil
}
