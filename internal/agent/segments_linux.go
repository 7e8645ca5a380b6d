package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

const (
	tcpHeader        = 20
	timestampsOption = 12   // RFC 7323, padded
	hasTimestamps    = 0x01 // TCPI_OPT_TIMESTAMPS of tcpi_options (linux/tcp.h)
)

func segments(ctx context.Context, p TCPProbe) (Segments, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", p.Target.String())
	if err != nil {
		return segmentsFailed(Segments{}, err), nil
	}
	defer conn.Close()
	tcp := conn.(*net.TCPConn)
	deadline, _ := ctx.Deadline()
	if err := tcp.SetDeadline(deadline); err != nil {
		return segmentsFailed(Segments{}, err), nil
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) }) //nolint:errcheck // closed already
	defer stop()

	var s Segments
	first, err := tcpInfo(tcp)
	if err != nil {
		return s, err
	}
	s.FirstMSS, s.FirstPacket = sizes(first, p)
	// The socket buffers may hold less than p.Bytes, so read while writing.
	written := make(chan error, 1)
	go func() {
		_, err := tcp.Write(make([]byte, p.Bytes))
		written <- err
	}()
	_, moved := io.CopyN(io.Discard, tcp, int64(p.Bytes))
	last, err := tcpInfo(tcp)
	if moved != nil {
		conn.Close()
	}
	moved = errors.Join(moved, <-written)
	if err != nil {
		return s, err
	}
	s.LastMSS, s.LastPacket = sizes(last, p)
	s.Retransmits = int(last.Total_retrans)
	if moved != nil {
		return segmentsFailed(s, moved), nil
	}
	s.Kind = OK
	return s, nil
}

// sizes returns the size of a full segment's payload and of its IP packet.
func sizes(i *unix.TCPInfo, p TCPProbe) (mss, packet int) {
	mss = int(i.Snd_mss)
	packet = mss + tcpHeader + 20
	if !p.Target.Addr().Unmap().Is4() {
		packet += 20
	}
	if i.Options&hasTimestamps != 0 {
		packet += timestampsOption
	}
	return mss, packet
}

func segmentsFailed(s Segments, err error) Segments {
	s.Kind, s.Detail = kindOf(err), err.Error()
	return s
}

func tcpInfo(c *net.TCPConn) (info *unix.TCPInfo, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	ctl := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	return info, errors.Join(ctl, err)
}
