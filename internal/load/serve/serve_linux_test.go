package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/load/fdtable"
)

// start serves on loopback until the test ends.
func start(t *testing.T, cfg Config) *Server {
	t.Helper()
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	s, err := New(cfg)
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
	return s
}

func dial(t *testing.T, s *Server) net.Conn {
	t.Helper()
	c, err := net.Dial(s.Addr().Network(), s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

// Requests that come in any pieces, several at once, and answers larger than
// a socket holds: as many answers as requests, and not a byte more.
func TestTCPSizes(t *testing.T) {
	for _, tt := range []struct{ request, response, requests, piece int }{
		{1, 1, 100, 1},
		{1, 1, 5000, 5000},
		{100, 1, 10, 7},
		{64 << 10, 1, 3, 10000},
		{1, 64 << 10, 500, 500}, // 32 MB for a peer that does not read yet
		{64 << 10, 64 << 10, 20, 64 << 10},
	} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			s := start(t, Config{Protocol: TCP, Request: tt.request, Response: tt.response})
			c := dial(t, s)
			sent := make(chan error, 1)
			go func() {
				all := make([]byte, tt.request*tt.requests)
				var err error
				for len(all) > 0 && err == nil {
					n := min(tt.piece, len(all))
					_, err = c.Write(all[:n])
					all = all[n:]
				}
				if err == nil {
					err = c.(*net.TCPConn).CloseWrite()
				}
				sent <- err
			}()
			time.Sleep(20 * time.Millisecond)
			got, err := io.Copy(io.Discard, c)
			if err := errors.Join(err, <-sent); err != nil {
				t.Error(err)
			}
			if want := int64(tt.requests * tt.response); got != want || s.Requests() != int64(tt.requests) {
				t.Errorf("%d bytes for %d requests, want %d for %d", got, s.Requests(), want, tt.requests)
			}
		})
	}
}

func TestUDP(t *testing.T) {
	for _, tt := range []struct{ request, response int }{{1, 1}, {8, 1}, {1, 100}, {20, 20}, {1200, 60000}, {MaxDatagram, 8}} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			s := start(t, Config{Protocol: UDP, Request: tt.request, Response: tt.response, Threads: 2})
			c := dial(t, s)
			request := bytes.Repeat([]byte("0123456789"), MaxDatagram/10+1)[:tt.request]
			for _, sent := range [][]byte{append([]byte("?"), request...)[:min(tt.request+1, MaxDatagram)], request} {
				if _, err := c.Write(sent); err != nil {
					t.Fatal(err)
				}
			}
			got := make([]byte, 1<<16)
			n, err := c.Read(got)
			if err != nil {
				t.Fatal(err)
			}
			same := min(EchoedBytes, tt.request, tt.response)
			if tt.request < MaxDatagram && (n != tt.response || !bytes.Equal(got[:same], request[:same]) || s.Requests() != 1 || s.Ignored() != 1) {
				t.Errorf("%d bytes beginning with %q, %d requests and %d ignored", n, got[:same], s.Requests(), s.Ignored())
			}
		})
	}
}

func TestHTTP(t *testing.T) {
	for _, size := range []int{350, 4096, HeaderBytes} {
		b := HTTPResponse(size)
		if head, _, _ := bytes.Cut(b, []byte("\r\n\r\n")); len(b) != size || len(head)+4 != HeaderBytes {
			t.Errorf("%d bytes, %d of them header; want %d and %d", len(b), len(head)+4, size, HeaderBytes)
		}
	}
	s := start(t, Config{Response: 350})
	c := dial(t, s)
	for _, piece := range []string{"GET / HTTP/1.1\r\nHo", "st: x\r\n\r", "\nGET / HTTP/1.1\r\n\r\n"} {
		if _, err := io.WriteString(c, piece); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	got := make([]byte, 700)
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got[:350], HTTPResponse(350)) || !bytes.Equal(got[:350], got[350:]) {
		t.Errorf("%v, got %q", err, got)
	}
}

// However the bytes are cut into pieces, the same requests are counted.
func FuzzHTTPRequests(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /\n\n"), 3)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		cut = max(0, min(cut, len(b)))
		all, rest := httpRequests(0, b)
		first, line := httpRequests(0, b[:cut])
		second, rest2 := httpRequests(line, b[cut:])
		if all != first+second || rest != rest2 {
			t.Errorf("%d requests and %d bytes in one piece, %d and %d in two", all, rest, first+second, rest2)
		}
	})
}

// While the server stalls nothing is answered, on every protocol and every
// thread, and its record is what the clients saw.
func TestStalls(t *testing.T) {
	const stall, every = 60 * time.Millisecond, 150 * time.Millisecond
	for _, protocol := range []Protocol{HTTP, TCP, UDP} {
		t.Run(string(protocol), func(t *testing.T) {
			cfg := Config{Protocol: protocol, Response: 350, Threads: 3, Stall: stall, Every: every}
			request := "GET / HTTP/1.1\r\n\r\n"
			if protocol != HTTP {
				cfg.Request = len(request)
			}
			before := time.Now()
			s := start(t, cfg)
			type exchange struct{ sent, got time.Time }
			seen := make(chan []exchange)
			const clients = 4
			for range clients {
				c := dial(t, s)
				go func() {
					var all []exchange
					buf := make([]byte, 400)
					for time.Since(before) < 4*every {
						x := exchange{sent: time.Now()}
						if _, err := io.WriteString(c, request); err != nil {
							t.Error(err)
						}
						if n, err := c.Read(buf); err != nil || n != 350 {
							t.Errorf("%d bytes, %v", n, err)
						}
						x.got = time.Now()
						all = append(all, x)
					}
					seen <- all
				}()
			}
			var all []exchange
			for range clients {
				all = append(all, <-seen...)
			}
			stalls := s.Stalls()
			if len(stalls) < 2 {
				t.Fatalf("%d stalls in %v", len(stalls), time.Since(before))
			}
			for n, stalled := range stalls {
				planned := before.Add(time.Duration(n+1) * every)
				if stalled.From.Before(planned) || stalled.To.Sub(stalled.From) > every {
					t.Errorf("stall %d from %v to %v, planned for %v", n, stalled.From, stalled.To, planned)
				}
				for _, x := range all {
					if x.sent.After(stalled.From) && x.got.Before(stalled.To) {
						t.Errorf("an exchange of %v lies within stall %d", x.got.Sub(x.sent), n)
					}
				}
			}
		})
	}
}

// More connections than one thread's file table may hold are served by
// several threads; too many for all of them end the server, which says why.
func TestFileTables(t *testing.T) {
	limit, err := fdtable.Limit()
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Protocol: TCP, Listen: "127.0.0.1:0", Threads: 4, Request: 1, Response: 1})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(t.Context()) }()
	// The test's own connections count in its own table, so the limit falls
	// when they are all there.
	const connections = 120
	conns := make([]net.Conn, 0, connections)
	for range connections {
		conns = append(conns, dial(t, s))
	}
	answered := func(c net.Conn) error {
		_, err := io.WriteString(c, "x")
		if err == nil {
			_, err = io.ReadFull(c, make([]byte, 1))
		}
		return err
	}
	for _, c := range conns {
		if err := answered(c); err != nil {
			t.Fatal(err)
		}
	}
	low := syscall.Rlimit{Cur: 60, Max: uint64(limit)}
	raised := syscall.Rlimit{Cur: uint64(limit), Max: uint64(limit)}
	more := make([]int, 0, connections)
	for range connections { // sockets before the limit falls, connections after it
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(fd)
		more = append(more, fd)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised); err != nil {
			t.Error(err)
		}
	}()
	target := &syscall.SockaddrInet4{Port: s.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}
	for _, fd := range more {
		_ = syscall.Connect(fd, target) // refused from when the server has given up
	}
	select {
	case err := <-done:
		if !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), "use more --threads") {
			t.Errorf("error %v, want %v with what to do", err, syscall.EMFILE)
		}
	case <-time.After(20 * time.Second):
		t.Error("a server with full tables goes on without a word")
	}
}

func TestRefuses(t *testing.T) {
	taken := start(t, Config{Response: 350, Threads: 2})
	for _, tt := range []struct {
		name string
		cfg  Config
		is   error
		says string
	}{
		{"response below its header", Config{Response: 249}, ErrConfig, "its header alone has 250"},
		{"no request", Config{Protocol: TCP, Response: 1}, ErrConfig, "tcp takes 1 to 65536"},
		{"a datagram too large", Config{Protocol: UDP, Request: 1, Response: 64 << 10}, ErrConfig, "udp takes 1 to 65507"},
		{"protocol", Config{Protocol: "sctp"}, ErrConfig, "http, tcp and udp"},
		{"threads", Config{Response: 350, Threads: -1}, ErrConfig, "want 1 to"},
		{"stall without pause", Config{Response: 350, Stall: time.Second, Every: time.Second}, ErrConfig, "must be longer"},
		{"a port that is taken", Config{Response: 350, Listen: taken.Addr().String(), Threads: 2}, syscall.EADDRINUSE, "in use"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := New(tt.cfg); !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want one that says %q", err, tt.says)
			}
		})
	}
}

func TestServesWithoutAllocating(t *testing.T) {
	s := start(t, Config{Protocol: TCP, Request: 1, Response: 1})
	c := dial(t, s)
	one := make([]byte, 1)
	ask := func(n int) {
		for range n {
			if _, err := c.Write(one); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(one); err != nil {
				t.Fatal(err)
			}
		}
	}
	ask(100)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ask(2000)
	runtime.ReadMemStats(&after)
	if n := after.Mallocs - before.Mallocs; n > 200 {
		t.Errorf("%d allocations in 2000 requests", n)
	}
}
