package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// firstAnswer sends one request over a connection of its own and returns the size of
// the response in bytes. A target that does not answer, or answers something else, thus
// gives one clear error before the load begins. Until cfg.Wait is over, errors are
// followed by another try.
func firstAnswer(ctx context.Context, cfg Config) (int64, error) {
	giveUp := time.Now().Add(cfg.Wait)
	for {
		size, err := askOnce(ctx, cfg)
		if err == nil || !time.Now().Before(giveUp) || ctx.Err() != nil {
			return size, err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// datagramTries is how often the first request is sent over UDP, which may lose it.
const datagramTries = 5

func askOnce(ctx context.Context, cfg Config) (int64, error) {
	d := net.Dialer{Timeout: cfg.Timeout}
	network, tries := cfg.Exchange.network(), 1
	if len(cfg.Sources) > 0 {
		d.LocalAddr = &net.TCPAddr{IP: cfg.Sources[0].AsSlice()}
	}
	if network == "udp" {
		tries = datagramTries
		if len(cfg.Sources) > 0 {
			d.LocalAddr = &net.UDPAddr{IP: cfg.Sources[0].AsSlice()}
		}
	}
	conn, err := d.DialContext(ctx, network, cfg.Target.String())
	if err != nil {
		return 0, explain(err)
	}
	defer conn.Close()
	ignoreEnd := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer ignoreEnd()
	p := cfg.Exchange.protocol()
	for seq := uint64(1); ; seq++ {
		if err := conn.SetDeadline(time.Now().Add(cfg.Timeout / time.Duration(tries))); err != nil {
			return 0, fmt.Errorf("load: %w", err)
		}
		if ctx.Err() != nil { // ctx may have ended before SetDeadline, which then undid the callback's deadline
			return 0, fmt.Errorf("load: ended before the first answer of %v: %w", cfg.Target, context.Cause(ctx))
		}
		if _, err := conn.Write(p.request(seq)); err != nil {
			return 0, explain(err)
		}
		counted := &countingReader{Reader: conn}
		size, err := readFirst(counted, p, seq)
		switch {
		case err != nil && ctx.Err() != nil:
			return 0, fmt.Errorf("load: ended before the first answer of %v: %w", cfg.Target, context.Cause(ctx))
		case err == nil:
			return size, nil
		case int(seq) < tries && errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil:
		case errors.Is(err, syscall.ECONNREFUSED):
			return 0, explain(err)
		case errors.Is(err, os.ErrDeadlineExceeded) && counted.n == 0:
			return 0, fmt.Errorf("load: %v sent nothing within %v; does it speak the protocol of this load? %w", cfg.Target, cfg.Timeout, err)
		case errors.Is(err, os.ErrDeadlineExceeded):
			return 0, fmt.Errorf("load: %v sent only %d bytes of its first answer within %v: %w", cfg.Target, counted.n, cfg.Timeout, err)
		default:
			return 0, fmt.Errorf("load: the first answer of %v: %w", cfg.Target, err)
		}
	}
}

// countingReader counts the bytes that were read.
type countingReader struct {
	io.Reader
	n int64
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	return n, err
}

func explain(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("load: %w; is a server listening there?", err)
	}
	return fmt.Errorf("load: cannot reach the target: %w", err)
}

// readFirst reads the response to request seq and returns its whole size.
func readFirst(r io.Reader, p protocol, seq uint64) (size int64, err error) {
	var resp response
	buf := make([]byte, receiveBuffer)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			done, bad := p.feed(&resp, seq, buf[:n])
			switch {
			case bad != "":
				return 0, fmt.Errorf("no usable response: %s; does the server speak this exchange, with these sizes?", bad)
			case done && !resp.good():
				return 0, fmt.Errorf("status %d, want 2xx; check the path", resp.status)
			case done:
				return resp.size, nil
			}
		}
		switch {
		case err == io.EOF:
			return 0, io.ErrUnexpectedEOF
		case err != nil:
			return 0, err
		}
	}
}
