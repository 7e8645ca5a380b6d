// Package serve is the other side of the load engine: servers that answer
// every request with the same number of bytes, cost little CPU and can stall
// for a known time. It knows no load engine, arena or workload. Next:
// loop_linux.go (the threads), then http.go and bytes.go (when a request is
// whole).
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Protocol is what a server speaks.
type Protocol string

// The protocols.
const (
	HTTP Protocol = "http" // HTTP/1.1 without bodies in requests, connections kept open
	TCP  Protocol = "tcp"  // Response bytes after every Request bytes of a connection; for RR and CRR alike
	UDP  Protocol = "udp"  // a datagram of Response bytes for every one of Request bytes
)

// Config says what a Server answers.
type Config struct {
	Protocol Protocol      // "" is HTTP
	Listen   string        // address:port; port 0 takes a free one
	Threads  int           // each with a loop, a socket and a file table of its own; 0 is 1
	Request  int           // bytes; not for HTTP, whose requests end where their header ends
	Response int           // bytes; of HTTP the whole response, HeaderBytes of them header
	Stall    time.Duration // how long all responses are held, 0 for never
	Every    time.Duration // from the start of one stall to the next; the first comes after one Every
}

// The largest requests and responses in bytes: of TCP, of UDP, and the
// largest response of HTTP.
const (
	MaxSize         = 64 << 10
	MaxDatagram     = 65507
	MaxHTTPResponse = 64 << 20
)

// EchoedBytes is how much of a UDP request, from its start, the response
// repeats where both are that long: room for a sequence number.
const EchoedBytes = 8

// maxThreads is far more than a machine can use, and bounds mistakes.
const maxThreads = 1024

// ErrConfig is in the chain of every error about a Config: wrong usage.
var ErrConfig = errors.New("wrong settings")

// Interval is a time during which no response was sent.
type Interval struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Server answers requests. Make it with New.
type Server struct {
	cfg      Config
	sockets  []socket // one per thread
	addr     net.Addr
	response []byte
	requests atomic.Int64
	ignored  atomic.Int64

	mu     sync.Mutex
	stalls []Interval
	rested []int // by stall, how many threads have finished it
}

// New listens; Serve answers. Errors: ErrConfig; a port that is taken; on
// other systems than Linux errors.ErrUnsupported.
func New(cfg Config) (*Server, error) {
	if cfg.Protocol == "" {
		cfg.Protocol = HTTP
	}
	if cfg.Threads == 0 {
		cfg.Threads = 1
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("serve: %w: %w", ErrConfig, err)
	}
	s := &Server{cfg: cfg}
	if cfg.Protocol == HTTP {
		s.response = HTTPResponse(cfg.Response)
	} else {
		s.response = []byte(strings.Repeat("x", cfg.Response))
	}
	if err := s.listen(); err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	return s, nil
}

func (c Config) check() error {
	maximum := MaxSize
	switch c.Protocol {
	case HTTP:
		if c.Response < HeaderBytes {
			return fmt.Errorf("a response of %d bytes; its header alone has %d", c.Response, HeaderBytes)
		}
		if c.Response > MaxHTTPResponse {
			return fmt.Errorf("a response of %d bytes; %d is the most", c.Response, MaxHTTPResponse)
		}
	case TCP, UDP:
		if c.Protocol == UDP {
			maximum = MaxDatagram
		}
		if c.Request < 1 || c.Request > maximum {
			return fmt.Errorf("a request of %d bytes; %s takes 1 to %d", c.Request, c.Protocol, maximum)
		}
		if c.Response < 1 || c.Response > maximum {
			return fmt.Errorf("a response of %d bytes; %s takes 1 to %d", c.Response, c.Protocol, maximum)
		}
	default:
		return fmt.Errorf("protocol %q; there are http, tcp and udp", c.Protocol)
	}
	if c.Threads < 1 || c.Threads > maxThreads {
		return fmt.Errorf("%d threads; want 1 to %d", c.Threads, maxThreads)
	}
	if c.Stall < 0 || c.Stall > 0 && c.Every <= c.Stall {
		return fmt.Errorf("a stall of %v every %v; the second must be longer", c.Stall, c.Every)
	}
	return nil
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.addr }

// Requests is how many requests have come in so far.
func (s *Server) Requests() int64 { return s.requests.Load() }

// Ignored is how many datagrams had another size than Config.Request; they
// are not answered.
func (s *Server) Ignored() int64 { return s.ignored.Load() }

// Stalls are the stalls that are over, as they happened: from the moment when
// the last thread had stopped to the moment when the first went on. On a busy
// machine that is somewhat later than planned.
func (s *Server) Stalls() []Interval {
	s.mu.Lock()
	defer s.mu.Unlock()
	over := []Interval{}
	for i, stall := range s.stalls {
		if s.rested[i] == s.cfg.Threads && stall.From.Before(stall.To) {
			over = append(over, stall)
		}
	}
	return over
}

// noteStall notes that a thread sent nothing in the n-th stall, from 0.
func (s *Server) noteStall(n int, from, to time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.stalls) <= n {
		s.stalls, s.rested = append(s.stalls, Interval{}), append(s.rested, 0)
	}
	if x := &s.stalls[n]; s.rested[n] == 0 {
		*x = Interval{from, to}
	} else {
		if from.After(x.From) {
			x.From = from
		}
		if to.Before(x.To) {
			x.To = to
		}
	}
	s.rested[n]++
}

// Serve answers until ctx ends; then every connection is closed and the error
// is nil. It serves once.
func (s *Server) Serve(ctx context.Context) error {
	if err := s.serve(ctx); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
