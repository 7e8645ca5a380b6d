package serve

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// datagramBatch is how many datagrams are answered before the stop signal is
// looked at again.
const datagramBatch = 64

// datagrams is what one thread needs for UDP, kept off the stack.
type datagrams struct {
	from     unix.RawSockaddrAny
	fromSize uint32
	response []byte
}

// answerDatagrams answers what has come. A response that the socket has no
// room for is lost, as datagrams may be.
func (l *loop) answerDatagrams() error {
	p := &l.peers
	if p.response == nil {
		p.response = append(p.response, l.s.response...)
	}
	for range datagramBatch {
		if err := l.rest(); err != nil {
			return err
		}
		p.fromSize = unix.SizeofSockaddrAny
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(l.socket), uintptr(unsafe.Pointer(&l.buf[0])), uintptr(len(l.buf)),
			unix.MSG_DONTWAIT|unix.MSG_TRUNC, uintptr(unsafe.Pointer(&p.from)), uintptr(unsafe.Pointer(&p.fromSize)))
		switch {
		case errno == unix.EAGAIN:
			return nil
		case errno != 0:
			continue // an ICMP error about an earlier response
		case int(n) != l.s.cfg.Request:
			l.s.ignored.Add(1)
			continue
		}
		l.s.requests.Add(1)
		copy(p.response[:min(EchoedBytes, len(p.response))], l.buf[:n])
		_, _, _ = unix.RawSyscall6(unix.SYS_SENDTO, uintptr(l.socket), uintptr(unsafe.Pointer(&p.response[0])), uintptr(len(p.response)),
			unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(&p.from)), uintptr(p.fromSize))
	}
	return nil
}
