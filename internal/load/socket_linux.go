package load

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls below are raw. They never block, so that telling Go's scheduler of
// each call would only cost time. None allocates.

// ipBindAddressNoPort lets connect(2) choose the port of a bound address, so
// that one port serves several targets (ip(7), since Linux 4.2).
const ipBindAddressNoPort = 24

// stampReceived asks for the time at which the kernel received a packet.
const stampReceived = unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE

// keepStamps opens a socket that makes the kernel timestamp packets as long as the
// socket is open. The kernel begins some time after the first socket asks for
// timestamps, and ends when the last such socket closes. With a connection for each
// request it would begin and end all the time.
func keepStamps() (fd int32, err error) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, stampReceived)
	}
	if err != nil {
		return -1, fmt.Errorf("load: ask for receive timestamps: %w", err)
	}
	return int32(s), nil
}

// address is a socket address as the kernel reads it.
type address struct {
	raw    unix.RawSockaddrInet6 // or a RawSockaddrInet4, which is shorter
	length uintptr
}

func newAddress(a netip.AddrPort) address {
	var out address
	port := func(p *uint16) { binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(p))[:], a.Port()) }
	if ip := a.Addr().Unmap(); ip.Is4() {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(&out.raw))
		v4.Family, v4.Addr = unix.AF_INET, ip.As4()
		port(&v4.Port)
		out.length = unix.SizeofSockaddrInet4
	} else {
		out.raw.Family, out.raw.Addr, out.raw.Scope_id = unix.AF_INET6, ip.As16(), zoneID(ip.Zone())
		port(&out.raw.Port)
		out.length = unix.SizeofSockaddrInet6
	}
	return out
}

func zoneID(zone string) uint32 {
	if zone == "" {
		return 0
	}
	link, err := net.InterfaceByName(zone)
	if err != nil {
		return 0 // connecting then fails with a clear error
	}
	return uint32(link.Index)
}

// dialer makes the connections of one thread.
type dialer struct {
	target  address
	sources []address
	kind    int // SOCK_STREAM or SOCK_DGRAM
	options []option
}

type option struct {
	level, name int
	value       []byte
}

func newDialer(cfg Config, request int) *dialer {
	d := &dialer{target: newAddress(cfg.Target), kind: unix.SOCK_STREAM}
	number := func(level, name int, values ...int32) {
		var value []byte
		for _, v := range values {
			value = binary.NativeEndian.AppendUint32(value, uint32(v))
		}
		d.options = append(d.options, option{level, name, value})
	}
	number(unix.SOL_SOCKET, unix.SO_TIMESTAMPING, stampReceived)
	if cfg.Exchange.network() == "udp" {
		d.kind = unix.SOCK_DGRAM
	} else {
		number(unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		// Closing resets the connection, so that a run leaves no ports in TIME_WAIT behind.
		number(unix.SOL_SOCKET, unix.SO_LINGER, 1, 0)
	}
	if request > 4<<10 {
		number(unix.SOL_SOCKET, unix.SO_SNDBUF, 4*MaxMessage) // so that a request is sent with one call
	}
	for _, source := range cfg.Sources {
		d.sources = append(d.sources, newAddress(netip.AddrPortFrom(source, 0)))
	}
	if len(d.sources) > 0 {
		number(unix.SOL_IP, ipBindAddressNoPort, 1)
	}
	return d
}

// dial begins to open connection number n; it does not block.
func (d *dialer) dial(n int) (fd int32, err error) {
	s, _, errno := unix.RawSyscall(unix.SYS_SOCKET, uintptr(d.target.raw.Family), uintptr(d.kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC), 0)
	if errno != 0 {
		return -1, os.NewSyscallError("socket", errno)
	}
	for i := range d.options {
		o := &d.options[i]
		if _, _, errno := unix.RawSyscall6(unix.SYS_SETSOCKOPT, s, uintptr(o.level), uintptr(o.name), uintptr(unsafe.Pointer(&o.value[0])), uintptr(len(o.value)), 0); errno != 0 {
			hangUp(int32(s))
			return -1, os.NewSyscallError("setsockopt", errno)
		}
	}
	if len(d.sources) > 0 {
		from := &d.sources[n%len(d.sources)]
		if _, _, errno := unix.RawSyscall(unix.SYS_BIND, s, uintptr(unsafe.Pointer(&from.raw)), from.length); errno != 0 {
			hangUp(int32(s))
			return -1, os.NewSyscallError("bind", errno)
		}
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_CONNECT, s, uintptr(unsafe.Pointer(&d.target.raw)), d.target.length); errno != 0 && errno != unix.EINPROGRESS {
		hangUp(int32(s))
		return -1, os.NewSyscallError("connect", errno)
	}
	return int32(s), nil
}

func hangUp(fd int32) {
	_, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
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

// recv reads the bytes that have arrived, at most a buffer. stamp is the wall-clock time
// at which the kernel received the last segment of these bytes, in nanoseconds since
// 1970; 0 if the kernel gave no time.
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

// send writes all of b without waiting, or returns false.
func send(fd int32, b []byte) bool {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return errno == 0 && int(n) == len(b)
}

// socketError returns the pending error of a socket that was connecting.
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
