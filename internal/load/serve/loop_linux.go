package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/load/fdtable"
)

// loop is one serving thread: it waits, reads what came and answers. It does
// not allocate for a request.
type loop struct {
	s      *Server
	socket socket
	stop   int // an eventfd that becomes readable, for good, when the server ends
	epoll  int
	events [256]unix.EpollEvent
	buf    []byte

	start     time.Time
	nextStall time.Time // zero if there is none
	stalls    int       // that have begun

	conns streams
	peers datagrams
}

// serve runs the threads. Each opens its files in a table of its own.
func (s *Server) serve(ctx context.Context) error {
	defer s.closeSockets()
	stop, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("eventfd", err)
	}
	defer unix.Close(stop)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, len(s.sockets))
	start := time.Now()
	for _, socket := range s.sockets {
		go func() {
			// Never unlocked: the thread and its file table end with the goroutine.
			runtime.LockOSThread()
			l := &loop{s: s, socket: socket, stop: stop, start: start, buf: make([]byte, max(MaxSize, s.cfg.Request))}
			done <- l.run()
		}()
	}
	var failed error
	ended := ctx.Done()
	for running := len(s.sockets); running > 0; {
		select {
		case <-ended:
			ended = nil
			if _, err := unix.Write(stop, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
				return os.NewSyscallError("write to an eventfd", err)
			}
		case err := <-done:
			running--
			failed = errors.Join(failed, err)
			cancel() // one thread without the others would answer a part only
		}
	}
	return failed
}

func (l *loop) run() error {
	// A container's usual seccomp profile refuses it to users other than root, as in pods of
	// Pod Security level restricted: then all threads share one table.
	if err := fdtable.Own(); err != nil && !errors.Is(err, unix.EPERM) {
		return err
	}
	var err error
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	defer unix.Close(l.epoll)
	takeNew := l.accept
	if l.s.cfg.Protocol == UDP {
		takeNew = l.answerDatagrams
	}
	defer l.closeStreams()
	for _, fd := range []int{l.stop, int(l.socket)} {
		if err := l.watch(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN); err != nil {
			return err
		}
	}
	if l.s.cfg.Stall > 0 {
		l.nextStall = l.start.Add(l.s.cfg.Every)
	}
	for {
		n, err := unix.EpollWait(l.epoll, l.events[:], l.patience())
		if err != nil && !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("epoll_wait", err)
		}
		for _, event := range l.events[:max(0, n)] {
			if err := l.rest(); err != nil {
				return err
			}
			switch fd := int(event.Fd); fd {
			case l.stop:
				return nil
			case int(l.socket):
				err = takeNew()
			default:
				err = l.readStream(fd)
			}
			if err != nil {
				return err
			}
		}
		if err := l.rest(); err != nil {
			return err
		}
	}
}

func (l *loop) watch(op, fd int, events uint32) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(l.epoll, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}))
}

// patience is how long epoll_wait may wait, in milliseconds: up to the next
// stall, rounded down so that it begins in time.
func (l *loop) patience() int {
	if l.nextStall.IsZero() {
		return -1
	}
	return int(max(0, time.Until(l.nextStall)/time.Millisecond))
}

// rest sends nothing during a stall. Stalls are planned from the server's
// start on, whatever happens; one that this thread slept through counts as
// held from when it noticed.
func (l *loop) rest() error {
	for !l.nextStall.IsZero() {
		from := time.Now()
		if from.Before(l.nextStall) {
			return nil
		}
		end := l.nextStall.Add(l.s.cfg.Stall)
		fds := []unix.PollFd{{Fd: int32(l.stop), Events: unix.POLLIN}}
		for now := from; now.Before(end); now = time.Now() {
			timeout := unix.NsecToTimespec(int64(end.Sub(now)))
			n, err := unix.Ppoll(fds, &timeout, nil)
			if err != nil && !errors.Is(err, unix.EINTR) {
				return os.NewSyscallError("ppoll", err)
			}
			if n > 0 {
				break // the server ends
			}
		}
		l.s.noteStall(l.stalls, from, time.Now())
		l.stalls++
		l.nextStall = l.nextStall.Add(l.s.cfg.Every)
		if fds[0].Revents != 0 {
			return nil
		}
	}
	return nil
}

// fullTable explains an accept that found no free file descriptor.
func (l *loop) fullTable(err error) error {
	limit, limitErr := fdtable.Limit()
	if limitErr != nil {
		return err
	}
	return fmt.Errorf("%w: each of the %d threads may hold %d open files; use more --threads, or raise the limit with ulimit -Hn as root or LimitNOFILE= in a systemd unit",
		err, l.s.cfg.Threads, limit)
}
