package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Package net can't make SCTP's one-to-one sockets (RFC 6458, section 4), but can use them
// like TCP's.

func sctpSocket(addr netip.Addr) (int, error) {
	family := unix.AF_INET
	if addr.Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_SCTP)
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.ESOCKTNOSUPPORT) {
		return 0, errors.New("this kernel has no SCTP; load its module sctp")
	}
	return fd, os.NewSyscallError("socket", err)
}

func sockaddr(at netip.AddrPort) unix.Sockaddr {
	if a := at.Addr(); a.Is4() {
		return &unix.SockaddrInet4{Port: int(at.Port()), Addr: a.As4()}
	}
	return &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
}

func listenSCTP(at netip.AddrPort) (*net.TCPListener, error) {
	fd, err := sctpSocket(at.Addr())
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "sctp")
	defer f.Close() // package net has a copy
	if err := unix.Bind(fd, sockaddr(at)); err != nil {
		return nil, fmt.Errorf("listen over SCTP at %s: %w", at, err)
	}
	if err := unix.Listen(fd, 128); err != nil {
		return nil, fmt.Errorf("listen over SCTP at %s: %w", at, err)
	}
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	stream, ok := l.(*net.TCPListener)
	if !ok {
		l.Close()
		return nil, fmt.Errorf("listen over SCTP at %s: the socket is of %s", at, l.Addr().Network())
	}
	return stream, nil
}

func dialSCTP(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	fd, err := sctpSocket(to.Addr())
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "sctp")
	defer f.Close()
	err = os.NewSyscallError("connect", unix.Connect(fd, sockaddr(to)))
	if errors.Is(err, unix.EINPROGRESS) {
		err = awaitConnect(ctx, fd)
	}
	if err != nil {
		return nil, err
	}
	return net.FileConn(f)
}

// awaitConnect waits for the handshake.
func awaitConnect(ctx context.Context, fd int) error {
	const poll = 20 * time.Millisecond // between two checks of ctx
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(fds, int(poll.Milliseconds()))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return os.NewSyscallError("poll", err)
		case n > 0:
			code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
			if err == nil && code != 0 {
				err = syscall.Errno(code)
			}
			return os.NewSyscallError("connect", err)
		}
	}
}
