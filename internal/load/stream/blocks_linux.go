package stream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// blocks sends blocks over a TCP connection.
type blocks struct {
	conn  *net.TCPConn
	fd    int
	block []byte
	file  int // descriptor of the block as a file in memory, for zero copy; -1: none
	raw   bool
}

// A connection with a rate holds pacedQueue of its data unsent, but no less than minQueue.
const (
	pacedQueue = 10 * time.Millisecond
	minQueue   = 16 << 10 // bytes
)

func newBlocks(ctx context.Context, cfg Config, session token, raw bool) (sender, error) {
	conn, err := dial(ctx, cfg.Target, dataKind, session, cfg.Window)
	if err != nil {
		return nil, err
	}
	b := &blocks{conn: conn, fd: -1, block: make([]byte, cfg.Size), file: -1, raw: raw}
	// Nagle's algorithm stays on, as in iperf3; Go turns it off for every connection.
	if err := conn.SetNoDelay(false); err != nil {
		return nil, errors.Join(err, b.close())
	}
	if b.fd, err = dupBlocking(conn); err != nil {
		return nil, errors.Join(err, b.close())
	}
	timeout := unix.NsecToTimeval(int64(stopPatience))
	if err := unix.SetsockoptTimeval(b.fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &timeout); err != nil {
		return nil, errors.Join(os.NewSyscallError("setsockopt SO_SNDTIMEO", err), b.close())
	}
	// Closing resets the connection: no port stays in TIME_WAIT, and close does not wait for the send queue.
	if err := unix.SetsockoptLinger(b.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
		return nil, errors.Join(os.NewSyscallError("setsockopt SO_LINGER", err), b.close())
	}
	if cfg.Rate > 0 { // the kernel paces segments, those that it sends again too, with any qdisc
		share := uint64(max(1, float64(cfg.Rate)/8/float64(cfg.Connections)))
		if err := unix.SetsockoptUint64(b.fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, share); err != nil {
			return nil, errors.Join(os.NewSyscallError("setsockopt SO_MAX_PACING_RATE", err), b.close())
		}
		// Else the send buffer would hold seconds of a low rate, which go out after the slice.
		if err := unix.SetsockoptInt(b.fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, max(minQueue, int(min(float64(share)*pacedQueue.Seconds(), 1<<30)))); err != nil {
			return nil, errors.Join(os.NewSyscallError("setsockopt TCP_NOTSENT_LOWAT", err), b.close())
		}
	}
	if cfg.ZeroCopy {
		if b.file, err = unix.MemfdCreate("cnibench-block", unix.MFD_CLOEXEC); err == nil {
			_, err = unix.Write(b.file, b.block)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("make the file in memory for zero copy: %w", err), b.close())
		}
	}
	return b, nil
}

func (b *blocks) begin() {}

func (b *blocks) send() (err error) {
	switch {
	case b.file >= 0:
		var offset int64
		_, err = unix.Sendfile(b.fd, b.file, &offset, len(b.block))
	case b.raw:
		if errno := writeRaw(b.fd, b.block); errno != 0 {
			err = errno
		}
	default:
		_, err = unix.Write(b.fd, b.block)
	}
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return nil
	}
	return os.NewSyscallError("send", err)
}

func (b *blocks) clocks() clocks {
	info, err := unix.GetsockoptTCPInfo(b.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return clocks{} // the connection has broken, which the sending thread reports
	}
	return clocks{int64(info.Total_retrans), int64(info.Data_segs_out), int64(info.Busy_time), int64(info.Rwnd_limited), int64(info.Sndbuf_limited)}
}

func (b *blocks) queueLength() (int, error) {
	n, err := unix.IoctlGetInt(b.fd, unix.SIOCOUTQ)
	return n, os.NewSyscallError("ioctl SIOCOUTQ", err)
}

func (b *blocks) close() error {
	err := b.conn.Close()
	for _, fd := range []int{b.fd, b.file} {
		if fd >= 0 {
			err = errors.Join(err, unix.Close(fd))
		}
	}
	return err
}
