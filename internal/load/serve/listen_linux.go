package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// socket is a listening TCP or a bound UDP socket that does not block.
type socket int

// udpBuffer is what a UDP socket asks for as its receive buffer, to survive a
// stall; the kernel gives at most net.core.rmem_max.
const udpBuffer = 4 << 20

// listen opens one socket per thread, all on one port.
func (s *Server) listen() error {
	// Alone at first: with SO_REUSEPORT another server's port could be shared
	// without anybody noticing.
	first, addr, err := open(s.cfg.Protocol, s.cfg.Listen, false)
	if err != nil {
		return err
	}
	s.addr = addr
	if s.cfg.Threads == 1 {
		s.sockets = []socket{first}
		return nil
	}
	first.close()
	for range s.cfg.Threads {
		next, _, err := open(s.cfg.Protocol, addr.String(), true)
		if err != nil {
			s.closeSockets()
			return err
		}
		s.sockets = append(s.sockets, next)
	}
	return nil
}

func (s *Server) closeSockets() {
	for _, socket := range s.sockets {
		socket.close()
	}
	s.sockets = nil
}

func (s socket) close() { _ = unix.Close(int(s)) }

// open has package net find the address and bind, and takes the socket out of
// the hands of Go's own poller, which would wake up for every request.
func open(p Protocol, address string, shared bool) (socket, net.Addr, error) {
	options := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return control(c, func(fd int) error {
			if shared {
				if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
					return os.NewSyscallError("setsockopt SO_REUSEPORT", err)
				}
			}
			if p == UDP {
				return os.NewSyscallError("setsockopt SO_RCVBUF", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, udpBuffer))
			}
			// Accepted connections inherit it.
			return os.NewSyscallError("setsockopt TCP_NODELAY", unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
		})
	}}
	var opened interface {
		io.Closer
		syscall.Conn
	}
	var addr net.Addr
	if p == UDP {
		conn, err := options.ListenPacket(context.Background(), "udp", address)
		if err != nil {
			return -1, nil, err
		}
		opened, addr = conn.(*net.UDPConn), conn.LocalAddr()
	} else {
		listener, err := options.Listen(context.Background(), "tcp", address)
		if err != nil {
			return -1, nil, err
		}
		opened, addr = listener.(*net.TCPListener), listener.Addr()
	}
	defer opened.Close()
	raw, err := opened.SyscallConn()
	if err != nil {
		return -1, nil, fmt.Errorf("listen on %v: %w", addr, err)
	}
	copied := -1
	err = control(raw, func(fd int) (err error) {
		copied, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		return os.NewSyscallError("fcntl", err)
	})
	return socket(copied), addr, err
}

// control runs fn on the file descriptor, with its own error.
func control(c syscall.RawConn, fn func(fd int) error) error {
	var err error
	if broken := c.Control(func(fd uintptr) { err = fn(int(fd)) }); broken != nil {
		return broken
	}
	return err
}
