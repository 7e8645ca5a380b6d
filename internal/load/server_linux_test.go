package load

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/load/serve"
)

// startServer serves until the test ends.
func startServer(t testing.TB, cfg serve.Config) (*serve.Server, netip.AddrPort) {
	t.Helper()
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	if cfg.Response == 0 {
		cfg.Response = 350
	}
	s, err := serve.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s, addrPort(s)
}

func addrPort(s *serve.Server) netip.AddrPort {
	switch a := s.Addr().(type) {
	case *net.TCPAddr:
		return a.AddrPort()
	case *net.UDPAddr:
		return a.AddrPort()
	}
	return netip.AddrPort{}
}

// answered waits until the server has seen want requests, which it may count
// after the last answer was read.
func answered(s *serve.Server, want int64) int64 {
	for range 100 {
		if s.Requests() >= want {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return s.Requests()
}

// serveTCP runs handle for every connection.
func serveTCP(t *testing.T, handle func(net.Conn)) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); handle(c) }()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func mustLoad(t *testing.T, cfg Config) *Result {
	t.Helper()
	if cfg.Exchange == nil {
		cfg.Exchange = HTTP{}
	}
	res, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return res
}
