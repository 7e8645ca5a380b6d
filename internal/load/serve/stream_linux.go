package serve

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// acceptBatch is how many connections are accepted before the others are
// looked at again.
const acceptBatch = 64

// streams are the TCP connections of one thread, by file descriptor.
type streams []stream

// stream is one connection.
type stream struct {
	open    bool
	blocked bool // what is owed waits until the peer reads
	had     int  // HTTP: bytes of the line, TCP: bytes of the request, that have come
	owed    int  // bytes of responses that are still to be written
}

// accept takes connections and what they bring along.
func (l *loop) accept() error {
	for range acceptBatch {
		// Raw: the peer's address is not wanted, and would be allocated.
		n, _, errno := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(l.socket), 0, 0, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
		switch errno {
		case 0:
		case unix.EAGAIN:
			return nil
		case unix.EINTR, unix.ECONNABORTED, unix.EPROTO, unix.EPERM: // of that connection alone (accept(2))
			continue
		case unix.EMFILE:
			return l.fullTable(os.NewSyscallError("accept", errno))
		default:
			return os.NewSyscallError("accept", errno)
		}
		fd := int(n)
		for fd >= len(l.conns) {
			l.conns = append(l.conns, stream{})
		}
		l.conns[fd] = stream{open: true}
		if err := l.watch(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN); err != nil {
			return err
		}
		if err := l.readStream(fd); err != nil {
			return err
		}
	}
	return nil
}

// readStream reads once and answers, or goes on with an answer that the
// peer was too slow for.
func (l *loop) readStream(fd int) error {
	c := &l.conns[fd]
	if !c.open {
		return nil // closed earlier in the same batch of events
	}
	if c.blocked {
		return l.answerStream(fd, c)
	}
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&l.buf[0])), uintptr(len(l.buf)))
	if errno == unix.EAGAIN || errno == unix.EINTR {
		return nil
	}
	if errno != 0 || n == 0 {
		return l.hangUp(fd)
	}
	var requests int
	if l.s.cfg.Protocol == HTTP {
		requests, c.had = httpRequests(c.had, l.buf[:n])
	} else {
		requests, c.had = byteRequests(l.s.cfg.Request, c.had, l.buf[:n])
	}
	if requests == 0 {
		return nil
	}
	l.s.requests.Add(int64(requests))
	c.owed += requests * len(l.s.response)
	return l.answerStream(fd, c)
}

// answerStream writes what is owed, as far as the socket takes it. While it
// takes no more, nothing more is read either.
func (l *loop) answerStream(fd int, c *stream) error {
	size := len(l.s.response)
	for c.owed > 0 {
		part := l.s.response[(size-c.owed%size)%size:]
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&part[0])), uintptr(len(part)), unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			c.owed -= int(n)
		case unix.EINTR:
		case unix.EAGAIN:
			if c.blocked {
				return nil
			}
			c.blocked = true
			return l.watch(unix.EPOLL_CTL_MOD, fd, unix.EPOLLOUT)
		default:
			return l.hangUp(fd)
		}
	}
	if c.blocked {
		c.blocked = false
		return l.watch(unix.EPOLL_CTL_MOD, fd, unix.EPOLLIN)
	}
	return nil
}

func (l *loop) hangUp(fd int) error {
	l.conns[fd].open = false
	return os.NewSyscallError("close", unix.Close(fd))
}

func (l *loop) closeStreams() {
	for fd, c := range l.conns {
		if c.open {
			_ = unix.Close(fd) // the server ends
		}
	}
}
