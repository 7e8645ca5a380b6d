package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func probeSize(ctx context.Context, w SizeProbe) (Answer, error) {
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error { return neverFragment(c, w.Target.Addr().Unmap().Is4()) }}
	conn, err := d.DialContext(ctx, "udp", w.Target.String())
	if err != nil {
		return failure(err), nil
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) }) //nolint:errcheck // closed already
	defer stop()

	payload := make([]byte, w.Size-w.headers())
	_, _ = rand.Read(payload) // never fails
	payload[0] = measure
	want := bytes.Clone(payload[:measureLen])
	want[0] = reply
	binary.BigEndian.PutUint32(want[9:], uint32(len(payload)))
	a := Answer{}
	for range w.Tries {
		a = askSize(ctx, conn, payload, want, w.Timeout)
		if a.Kind != TimedOut || ctx.Err() != nil {
			break
		}
	}
	return a, nil
}

func askSize(ctx context.Context, conn net.Conn, payload, want []byte, timeout time.Duration) Answer {
	sent := time.Now()
	if err := conn.SetDeadline(sent.Add(timeout)); err != nil {
		return failure(err)
	}
	if err := ctx.Err(); err != nil {
		return failure(err)
	}
	if _, err := conn.Write(payload); err != nil {
		return failure(err)
	}
	got := make([]byte, measureLen+1)
	for {
		n, err := conn.Read(got)
		switch {
		case err != nil: // no answer in time, or an ICMP message: too big, nobody listens, no route
			return failure(err)
		case bytes.Equal(got[:n], want):
			return Answer{Kind: OK, RTT: time.Since(sent)}
		}
	}
}

// neverFragment sets the don't-fragment bit and has the kernel send packets that are
// larger than the path's MTU, but not larger than the interface's (ip(7),
// IP_PMTUDISC_PROBE).
func neverFragment(c syscall.RawConn, v4 bool) error {
	var err error
	ctl := c.Control(func(fd uintptr) {
		if v4 {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
		} else {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE)
		}
	})
	return errors.Join(ctl, err)
}
