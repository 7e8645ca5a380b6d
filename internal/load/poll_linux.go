package load

import (
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller waits for readiness; its fields keep what the kernel reads and
// writes in one place, off the stack.
type poller struct {
	fd      int
	timeout unix.Timespec
	events  [256]unix.EpollEvent
}

// watched are the events of a connection, told once each as they begin: that
// it is connected, that bytes came, that the other side closed.
const watched = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET

// wait waits until something is ready or the timeout is over; 0 only looks.
// An interrupted wait is a short one. The call is raw though it blocks: to let
// go of one of Go's processors and to get it back takes longer than waking up.
// That costs one of GOMAXPROCS, which Run adds. Go's monitor interrupts a
// goroutine that has kept its processor for 10 ms, some 50 times a second here;
// an ordinary system call does not keep it from that, because only the
// scheduler starts those 10 ms anew.
func (p *poller) wait(timeout time.Duration) ([]unix.EpollEvent, error) {
	p.timeout = unix.NsecToTimespec(int64(timeout))
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events)), uintptr(len(p.events)), uintptr(unsafe.Pointer(&p.timeout)), 0, 0)
	switch errno {
	case 0:
		return p.events[:n], nil
	case unix.EINTR:
		return nil, nil
	case unix.ENOSYS:
		return nil, fmt.Errorf("the kernel lacks epoll_pwait2 (Linux 5.11): %w", errors.ErrUnsupported)
	}
	return nil, os.NewSyscallError("epoll_pwait2", errno)
}

// watch makes the events of fd carry the number id, and generation in Pad: an
// event that was fetched before its connection was made anew is not the new
// one's.
func (p *poller) watch(fd int32, events uint32, id, generation int32) error {
	event := unix.EpollEvent{Events: events, Fd: id, Pad: generation}
	_, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(p.fd), unix.EPOLL_CTL_ADD, uintptr(fd), uintptr(unsafe.Pointer(&event)), 0, 0)
	if errno != 0 {
		return os.NewSyscallError("epoll_ctl", errno)
	}
	return nil
}
