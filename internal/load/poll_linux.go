package load

import (
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller waits until a connection is ready. Its fields hold the memory that the kernel
// reads and writes: memory on a goroutine's stack may move.
type poller struct {
	fd      int
	timeout unix.Timespec
	events  [256]unix.EpollEvent
}

// watched are the events of a connection: it is connected, bytes have arrived, the
// other side has closed. Each is reported once, when it begins (EPOLLET).
const watched = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET

// wait waits until an event arrives or the timeout is over; a timeout of 0 does not
// wait. A signal ends the wait early, without an error. The system call is raw although
// it blocks, because giving one of Go's processors back and getting it again takes
// longer than waking up. So the thread keeps a processor, and open adds one to
// GOMAXPROCS for it. Go's monitor interrupts a goroutine that has kept its processor for
// 10 ms, here some 50 times a second, as it would with ordinary system calls.
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

// watch asks for the events of fd. Each event carries id in Fd and generation in Pad. If
// the connection was opened again meanwhile, its generation differs from that of an old
// event.
func (p *poller) watch(fd int32, events uint32, id, generation int32) error {
	event := unix.EpollEvent{Events: events, Fd: id, Pad: generation}
	_, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(p.fd), unix.EPOLL_CTL_ADD, uintptr(fd), uintptr(unsafe.Pointer(&event)), 0, 0)
	if errno != 0 {
		return os.NewSyscallError("epoll_ctl", errno)
	}
	return nil
}
