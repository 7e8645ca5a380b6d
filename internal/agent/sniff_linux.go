package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

// sniffer reads the packets of one interface from a packet(7) socket, in both directions
// and without link headers. Outgoing packets are seen after the stack has fragmented them.
type sniffer struct {
	asked Sniff
	ended chan struct{}
	wake  [2]int // a pipe; closing its second end ends run

	mu    sync.Mutex
	fd    int
	buf   []byte
	count Sniffed
	err   error
}

const (
	sniffBuffer = 16 << 20 // bytes, of the socket
	sniffSnap   = 72 << 10 // bytes; more than the largest packet before segmentation
)

func newSniffer(args Sniff) (*sniffer, error) {
	device, err := net.InterfaceByName(args.Device)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", args.Device, err)
	}
	// Protocol 0: nothing comes in until the socket is bound to the interface.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("packet socket: %w; it needs CAP_NET_RAW", err)
	}
	s := &sniffer{asked: args, ended: make(chan struct{}), fd: fd, buf: make([]byte, sniffSnap), count: newSniffed()}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, sniffBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, sniffBuffer) // the kernel may give less
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: swap(unix.ETH_P_ALL), Ifindex: device.Index}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("packet socket on %s: %w", args.Device, err)
	}
	if err := unix.Pipe2(s.wake[:], unix.O_CLOEXEC); err != nil {
		unix.Close(fd)
		return nil, err
	}
	go s.run()
	return s, nil
}

// swap converts a 16-bit number between host and network byte order.
func swap(n uint16) uint16 {
	var b [2]byte
	binary.NativeEndian.PutUint16(b[:], n)
	return binary.BigEndian.Uint16(b[:])
}

func (s *sniffer) run() {
	defer close(s.ended)
	for {
		fds := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}, {Fd: int32(s.wake[0]), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, -1)
		if fds[1].Revents != 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		s.mu.Lock()
		s.drain()
		failed := s.err != nil
		s.mu.Unlock()
		if failed {
			return
		}
	}
}

// drain counts the packets that the socket holds.
func (s *sniffer) drain() {
	for s.err == nil {
		// MSG_TRUNC: n is the packet's length even if the buffer is shorter.
		n, from, err := unix.Recvfrom(s.fd, s.buf, unix.MSG_TRUNC|unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return
		case errors.Is(err, unix.EINTR):
		case err != nil:
			s.err = fmt.Errorf("reading packets: %w", err)
		default:
			etherType := uint16(0)
			if ll, ok := from.(*unix.SockaddrLinklayer); ok {
				etherType = swap(ll.Protocol)
			}
			s.count.take(etherType, s.buf[:min(n, len(s.buf))], n, s.asked)
		}
	}
}

// readCounts returns the counts of all packets until now.
func (s *sniffer) readCounts() (Sniffed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain()
	// The kernel resets its count of dropped packets at each read.
	stats, err := unix.GetsockoptTpacketStats(s.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return Sniffed{}, errors.Join(s.err, fmt.Errorf("counting dropped packets: %w", err))
	}
	s.count.Dropped += uint64(stats.Drops)
	return s.count.clone(), s.err
}

func (s *sniffer) close() {
	unix.Close(s.wake[1])
	<-s.ended
	unix.Close(s.wake[0])
	unix.Close(s.fd)
}
