package node

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

// listen accepts connections, writes one byte to each and closes it.
func listen(ctx context.Context, port uint16) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(int(port))))
	if err != nil {
		return fmt.Errorf("agent node: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("agent node: %w", err)
		}
		go func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
			_, _ = conn.Write([]byte{'.'}) // the client reports errors
		}()
	}
}

// reach tries every target until it answers or the time is over. It returns the last
// errors, by target.
func reach(ctx context.Context, req Request) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(req.Seconds)*time.Second)
	defer cancel()
	var (
		mu     sync.Mutex
		failed = map[string]string{}
		wg     sync.WaitGroup
	)
	for _, target := range req.Targets {
		wg.Go(func() {
			if err := reachOne(ctx, target); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[target] = err.Error()
			}
		})
	}
	wg.Wait()
	return failed
}

func reachOne(ctx context.Context, target string) error {
	for {
		err := greet(ctx, target)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// greet connects and reads the listener's byte: a proxy in between may accept connections
// that do not reach the listener.
func greet(ctx context.Context, target string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", target)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}
