package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// reach asks the echo at the probe's target, over TCP and UDP at once unless
// the probe is of one protocol.
func reach(ctx context.Context, p Probe) Reached {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	r := Reached{TCP: Answer{Kind: Unasked}, UDP: Answer{Kind: Unasked}, SCTP: Answer{Kind: Unasked}}
	var both sync.WaitGroup
	for protocol, a := range map[string]*Answer{"tcp": &r.TCP, "udp": &r.UDP, "sctp": &r.SCTP} {
		if p.Protocol == protocol || p.Protocol == "" && protocol != "sctp" {
			both.Go(func() { *a = ask(ctx, protocol, p) })
		}
	}
	both.Wait()
	return r
}

func ask(ctx context.Context, protocol string, p Probe) Answer {
	begin := time.Now()
	conn, err := dial(ctx, protocol, p.Target)
	if err != nil {
		return failure(err)
	}
	defer conn.Close()
	var a Answer
	if protocol != "udp" {
		a.Connect = time.Since(begin)
	}
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return failure(err)
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) }) //nolint:errcheck // closed already
	defer stop()

	payload := make([]byte, p.Size)
	_, _ = rand.Read(payload) // never fails
	payload[0] = question
	copy(payload[1:], p.Payload)
	want := bytes.Clone(payload)
	got := make([]byte, p.Size+1)
	sent := time.Now()
	var n int
	if protocol == "udp" {
		want[0] = reply
		if _, err = conn.Write(payload); err == nil {
			n, err = conn.Read(got)
		}
	} else {
		// A payload that is larger than the socket buffers must be read while it is written.
		written := make(chan error, 1)
		go func() {
			_, err := conn.Write(payload)
			written <- err
		}()
		n, err = io.ReadFull(conn, got[:p.Size])
		if err != nil {
			conn.Close()
		}
		if writeErr := <-written; err == nil {
			err = writeErr
		}
	}
	a.RTT = time.Since(sent)
	if err != nil {
		return failure(err)
	}
	if !bytes.Equal(got[:n], want) {
		return Answer{Kind: Altered, Detail: fmt.Sprintf("%d bytes came back for %d, or other ones", n, p.Size)}
	}
	a.Kind = OK
	return a
}

func dial(ctx context.Context, protocol string, to netip.AddrPort) (net.Conn, error) {
	if protocol == "sctp" {
		return dialSCTP(ctx, to)
	}
	var d net.Dialer
	return d.DialContext(ctx, protocol, to.String())
}

func failure(err error) Answer { return Answer{Kind: kindOf(err), Detail: err.Error()} }

func kindOf(err error) Kind {
	for _, k := range []struct {
		err  error
		kind Kind
	}{
		{syscall.ECONNREFUSED, Refused},
		{syscall.EHOSTUNREACH, Unreachable},
		{syscall.ENETUNREACH, Unreachable},
		{syscall.EADDRNOTAVAIL, Unreachable}, // no address to send from
		{syscall.ECONNRESET, Reset},
		{syscall.EPIPE, Reset},
		{io.EOF, Reset},
		{io.ErrUnexpectedEOF, Reset},
		{syscall.EMSGSIZE, TooBig},
		{syscall.EPERM, Denied}, // an output rule of the firewall drops
		{syscall.EACCES, Denied},
		{os.ErrDeadlineExceeded, TimedOut},
		{context.DeadlineExceeded, TimedOut},
		{syscall.ETIMEDOUT, TimedOut},
	} {
		if errors.Is(err, k.err) {
			return k.kind
		}
	}
	var n net.Error
	if errors.As(err, &n) && n.Timeout() {
		return TimedOut
	}
	return Other
}
