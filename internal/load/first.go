package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// firstAnswer asks once over a connection of its own, so that a target that
// is not there or answers something else is an error in words, and gives the
// size of the answer.
func firstAnswer(ctx context.Context, cfg HTTPConfig) (int64, error) {
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

func askOnce(ctx context.Context, cfg HTTPConfig) (int64, error) {
	d := net.Dialer{Timeout: cfg.Timeout}
	conn, err := d.DialContext(ctx, "tcp", cfg.Target.String())
	if errors.Is(err, syscall.ECONNREFUSED) {
		return 0, fmt.Errorf("load: %w; is a server listening there?", err)
	}
	if err != nil {
		return 0, fmt.Errorf("load: cannot reach the target: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(cfg.Timeout)); err != nil {
		return 0, fmt.Errorf("load: %w", err)
	}
	if _, err := conn.Write(cfg.request()); err != nil {
		return 0, fmt.Errorf("load: %w", err)
	}
	status, size, err := readResponse(conn)
	switch {
	case err != nil:
		return 0, fmt.Errorf("load: the first answer of %v: %w", cfg.Target, err)
	case status < 200 || status > 299:
		return 0, fmt.Errorf("load: http://%s%s at %v answers with status %d, want 2xx; check the path", cfg.Host, cfg.Path, cfg.Target, status)
	}
	return size, nil
}

// readResponse reads one response and gives its status and whole size.
func readResponse(r io.Reader) (status int, size int64, err error) {
	var resp response
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		used, done, bad := resp.feed(buf[:n])
		switch {
		case bad != "":
			return 0, 0, fmt.Errorf("not a response that can be used: %s", bad)
		case done && used < n:
			return 0, 0, errors.New("more bytes than the response declares")
		case done:
			return resp.status, resp.size, nil
		case err == io.EOF:
			return 0, 0, io.ErrUnexpectedEOF
		case err != nil:
			return 0, 0, err
		}
	}
}
