package load

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// ServerConfig says what a Server answers.
type ServerConfig struct {
	Listen string        // address:port; port 0 takes a free one
	Size   int           // whole response in bytes, HeaderBytes of them header
	Stall  time.Duration // how long all responses are held, 0 for never
	Every  time.Duration // from the start of one stall to the next; the first comes after one Every
}

// HeaderBytes is the length of the header, from the status line to the blank
// line, of every response that cnibench serves or has nginx serve: that of
// the 2016 study.
const HeaderBytes = 250

// Server is the engine's other side for tests and first looks: it answers
// every request with the same bytes, and can stall for a known time. For
// measurements that count use nginx, which costs less CPU.
type Server struct {
	cfg      ServerConfig
	listener net.Listener
	response []byte
	requests atomic.Int64
	gate     sync.RWMutex // held for writing during a stall
	mu       sync.Mutex
	stalls   []Interval
}

// Interval is a time during which no response was sent.
type Interval struct{ From, To time.Time }

// NewServer listens; Serve answers.
func NewServer(cfg ServerConfig) (*Server, error) {
	if cfg.Size < HeaderBytes {
		return nil, fmt.Errorf("serve: %w: a response of %d bytes; its header alone has %d", ErrConfig, cfg.Size, HeaderBytes)
	}
	if cfg.Stall < 0 || cfg.Stall > 0 && cfg.Every <= cfg.Stall {
		return nil, fmt.Errorf("serve: %w: a stall of %v every %v; the second must be longer", ErrConfig, cfg.Stall, cfg.Every)
	}
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	return &Server{cfg: cfg, listener: l, response: fixedResponse(cfg.Size)}, nil
}

func fixedResponse(size int) []byte {
	body := size - HeaderBytes
	head := "HTTP/1.1 200 OK\r\nServer: cnibench\r\nContent-Type: text/plain\r\nContent-Length: " + strconv.Itoa(body) + "\r\nX-Pad: "
	pad := HeaderBytes - len(head) - len(endOfHeader)
	b := append([]byte(head), bytes.Repeat([]byte("x"), pad)...)
	b = append(b, endOfHeader...)
	return append(b, bytes.Repeat([]byte("x"), body)...)
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Requests is how many requests have come in so far.
func (s *Server) Requests() int64 { return s.requests.Load() }

// Stalls are the stalls so far as they happened, which on a busy machine is
// somewhat later than planned.
func (s *Server) Stalls() []Interval {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Interval(nil), s.stalls...)
}

// Serve answers until ctx ends; then every connection is closed and the error
// is nil.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { <-ctx.Done(); s.listener.Close() })
	if s.cfg.Stall > 0 {
		wg.Go(func() { s.stall(ctx) })
	}
	for {
		conn, err := s.listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("serve: %w", err)
		}
		wg.Go(func() {
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			defer stop()
			defer conn.Close()
			s.answer(conn)
		})
	}
}

func (s *Server) answer(conn net.Conn) {
	r := bufio.NewReader(conn)
	for {
		for blank := false; !blank; {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return
			}
			blank = len(line) <= 2
		}
		s.requests.Add(1)
		s.gate.RLock()
		_, err := conn.Write(s.response)
		s.gate.RUnlock()
		if err != nil {
			return
		}
	}
}

func (s *Server) stall(ctx context.Context) {
	start := time.Now()
	for n := 1; sleepUntil(ctx, start.Add(time.Duration(n)*s.cfg.Every)); n++ {
		s.gate.Lock()
		from := time.Now()
		sleepUntil(ctx, from.Add(s.cfg.Stall))
		to := time.Now()
		s.gate.Unlock()
		s.mu.Lock()
		s.stalls = append(s.stalls, Interval{from, to})
		s.mu.Unlock()
	}
}

// sleepUntil is false if ctx ended first.
func sleepUntil(ctx context.Context, t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
