package load

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls below are raw: they never block, so telling Go's scheduler of
// each would only cost time. None allocates.

// connectSocket starts a connection that does not block.
func connectSocket(target netip.AddrPort) (fd int32, err error) {
	family := unix.AF_INET6
	var addr unix.Sockaddr
	if ip := target.Addr().Unmap(); ip.Is4() {
		family = unix.AF_INET
		addr = &unix.SockaddrInet4{Port: int(target.Port()), Addr: ip.As4()}
	} else {
		addr = &unix.SockaddrInet6{Port: int(target.Port()), Addr: ip.As16(), ZoneId: zoneID(ip.Zone())}
	}
	s, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	for _, o := range []struct{ level, name, value int }{
		{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		{unix.SOL_SOCKET, unix.SO_TIMESTAMPING, unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE},
	} {
		if err := unix.SetsockoptInt(s, o.level, o.name, o.value); err != nil {
			unix.Close(s)
			return -1, os.NewSyscallError("setsockopt", err)
		}
	}
	// Closing resets, so that a run leaves no ports in TIME_WAIT to the next.
	if err := unix.SetsockoptLinger(s, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
		unix.Close(s)
		return -1, os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Connect(s, addr); err != nil && err != unix.EINPROGRESS {
		unix.Close(s)
		return -1, os.NewSyscallError("connect", err)
	}
	return int32(s), nil
}

func zoneID(zone string) uint32 {
	if zone == "" {
		return 0
	}
	link, err := net.InterfaceByName(zone)
	if err != nil {
		return 0 // the connection then fails and says so
	}
	return uint32(link.Index)
}

// receiver reads a socket together with the kernel's receive timestamp.
type receiver struct {
	buf     []byte
	control [128]byte
	iov     unix.Iovec
	msg     unix.Msghdr
}

func newReceiver(size int) *receiver {
	r := &receiver{buf: make([]byte, size)}
	r.iov.Base = &r.buf[0]
	r.iov.SetLen(size)
	r.msg.Iov = &r.iov
	r.msg.SetIovlen(1)
	r.msg.Control = &r.control[0]
	return r
}

// recv reads what is there, at most the buffer. stamp is the wall-clock time
// at which the kernel received the last segment of it, in nanoseconds since
// 1970, or 0 if the kernel gave none.
func (r *receiver) recv(fd int32) (n int, stamp int64, errno unix.Errno) {
	r.msg.SetControllen(len(r.control))
	got, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&r.msg)), unix.MSG_DONTWAIT)
	if errno != 0 {
		return 0, 0, errno
	}
	return int(got), r.stamp(), 0
}

// stamp finds the software timestamp, the first of the three timespecs of an
// SCM_TIMESTAMPING message (linux/errqueue.h).
func (r *receiver) stamp() int64 {
	const need = unix.SizeofCmsghdr + int(unsafe.Sizeof(unix.Timespec{}))
	if int(r.msg.Controllen) < need {
		return 0
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&r.control[0]))
	if h.Level != unix.SOL_SOCKET || h.Type != unix.SCM_TIMESTAMPING || int(h.Len) < need {
		return 0
	}
	return (*unix.Timespec)(unsafe.Pointer(&r.control[unix.SizeofCmsghdr])).Nano()
}

// send writes b at once or fails.
func send(fd int32, b []byte) bool {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return errno == 0 && int(n) == len(b)
}

// socketError is the pending error of a socket that was connecting.
func socketError(fd int32) error {
	code, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	if err != nil {
		return os.NewSyscallError("connect", err)
	}
	return nil
}

// poller waits for readiness; its fields keep what the kernel reads and
// writes in one place, off the stack.
type poller struct {
	fd      int
	timeout unix.Timespec
	events  [256]unix.EpollEvent
}

// wait waits until something is ready or the timeout is over; 0 only looks.
// An interrupted wait is a short one.
func (p *poller) wait(timeout time.Duration) ([]unix.EpollEvent, error) {
	p.timeout = unix.NsecToTimespec(int64(timeout))
	var n uintptr
	var errno unix.Errno
	if timeout == 0 {
		n, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events)), uintptr(len(p.events)), uintptr(unsafe.Pointer(&p.timeout)), 0, 0)
	} else {
		n, _, errno = unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events)), uintptr(len(p.events)), uintptr(unsafe.Pointer(&p.timeout)), 0, 0)
	}
	switch errno {
	case 0:
		return p.events[:n], nil
	case unix.EINTR:
		return nil, nil
	case unix.ENOSYS:
		return nil, fmt.Errorf("load: the kernel lacks epoll_pwait2 (Linux 5.11): %w", errors.ErrUnsupported)
	}
	return nil, os.NewSyscallError("epoll_pwait2", errno)
}

// watch makes events of fd carry the number id.
func (p *poller) watch(fd, id int32, events uint32) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, int(fd), &unix.EpollEvent{Events: events, Fd: id}))
}

// rewatch changes the events that fd is watched for.
func (p *poller) rewatch(fd, id int32, events uint32) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, unix.EPOLL_CTL_MOD, int(fd), &unix.EpollEvent{Events: events, Fd: id}))
}

// threadCPU is the CPU time that the calling thread has used.
func threadCPU() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
