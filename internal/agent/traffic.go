package agent

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/load"
	"github.com/cnibench/cnibench/internal/load/serve"
	"github.com/cnibench/cnibench/internal/load/stream"
	"github.com/cnibench/cnibench/internal/unit"
)

// The operations that measure paths between agents with the load engine: one agent serves,
// others send to it.
const (
	opTraffic = "traffic"
	opTrips   = "trips"
	opBurst   = "burst"
)

// Ports are the ports at which an agent serves traffic.
type Ports struct {
	UDP  uint16 `json:"udp"`  // answers datagrams of tripSize bytes
	TCP  uint16 `json:"tcp"`  // answers requests of tripSize bytes, over kept and over new connections
	Sink uint16 `json:"sink"` // receives bursts over TCP and UDP
}

// tripSize is the size of a request and of its answer, bytes.
const tripSize = 64

// Trips asks for round trips to targets at a constant rate.
type Trips struct {
	Targets []netip.AddrPort `json:"targets"`
	// Exchange is "udp", "tcp" over connections that stay open, or "connect": a new TCP
	// connection for each request.
	Exchange string        `json:"exchange"`
	Sockets  int           `json:"sockets,omitempty"` // to each target, with ports of their own: equal paths are all hit; 0 is 16
	Rate     float64       `json:"rate"`              // requests a second to each target
	Duration time.Duration `json:"duration_ns"`       // for each target
	Timeout  time.Duration `json:"timeout_ns,omitempty"`
	AtOnce   int           `json:"at_once,omitempty"` // targets at the same time; 0 is 4
}

const (
	maxTripTargets  = 1024
	maxTripDuration = 10 * time.Minute
	maxBurst        = time.Minute
	defaultSockets  = 16
	defaultAtOnce   = 4
	defaultTimeout  = 500 * time.Millisecond
)

func (t *Trips) complete() error {
	t.Sockets, t.AtOnce, t.Timeout = cmp.Or(t.Sockets, defaultSockets), cmp.Or(t.AtOnce, defaultAtOnce), cmp.Or(t.Timeout, defaultTimeout)
	switch {
	case len(t.Targets) > maxTripTargets:
		return fmt.Errorf("%d targets: want at most %d", len(t.Targets), maxTripTargets)
	case t.Rate <= 0 || t.Duration <= 0 || t.Duration > maxTripDuration:
		return fmt.Errorf("rate %g, duration %v: want more than 0, and at most %v", t.Rate, t.Duration, maxTripDuration)
	case t.Sockets < 1 || t.Sockets > maxTripTargets || t.AtOnce < 1 || t.AtOnce > maxTripTargets || t.Timeout < 0:
		return fmt.Errorf("%d sockets, %d at once, timeout %v: want 1 to %d, and no negative time", t.Sockets, t.AtOnce, t.Timeout, maxTripTargets)
	}
	if _, err := exchangeOf(t.Exchange); err != nil {
		return err
	}
	return nil
}

func exchangeOf(name string) (load.Exchange, error) {
	sizes := load.Sizes{Request: tripSize, Response: tripSize}
	switch name {
	case "udp":
		return load.UDPRR{Sizes: sizes}, nil
	case "tcp":
		return load.TCPRR{Sizes: sizes}, nil
	case "connect":
		return load.TCPCRR{Sizes: sizes}, nil
	}
	return nil, fmt.Errorf("exchange %q: want udp, tcp or connect", name)
}

// Trip is what the round trips to one target gave. Times are in seconds, 0 where too few
// requests were answered for them.
type Trip struct {
	Target   netip.AddrPort `json:"target"`
	Error    string         `json:"error,omitempty"` // why nothing was measured, e.g. no answer to the first request
	Planned  int64          `json:"planned"`
	Answered int64          `json:"answered"`
	Loss     float64        `json:"loss"` // share of planned requests without an answer within the timeout; over TCP of failed ones
	P50      float64        `json:"p50"`  // of the network time: from the send to the kernel's timestamp of the answer
	P99      float64        `json:"p99"`
	Max      float64        `json:"max"`
	Connect  float64        `json:"connect_p50,omitempty"` // of new connections
	Longest  float64        `json:"connect_max,omitempty"`
	Late     float64        `json:"late"` // share of requests that this sender sent over a millisecond too late
}

// Burst asks for as much as a path carries, up to Rate.
type Burst struct {
	Target   netip.AddrPort `json:"target"`
	Protocol string         `json:"protocol"`       // "tcp" or "udp"
	Streams  int            `json:"streams"`        // 0 is 1
	Size     int            `json:"size,omitempty"` // UDP: payload of a datagram, bytes; 0 is 1400
	Rate     unit.BitRate   `json:"rate,omitempty"` // bit/s of all streams; 0: no limit
	LeadIn   time.Duration  `json:"lead_in_ns,omitempty"`
	Duration time.Duration  `json:"duration_ns"`
}

func (b *Burst) complete() error {
	if b.Duration <= 0 || b.Duration > maxBurst || b.LeadIn < 0 || b.LeadIn > maxBurst {
		return fmt.Errorf("duration %v after %v: want more than 0, and at most %v", b.Duration, b.LeadIn, maxBurst)
	}
	return nil
}

// Bursted is what arrived of a burst.
type Bursted struct {
	Bytes       int64         `json:"bytes"`
	Elapsed     time.Duration `json:"elapsed_ns"`  // by the receiver's clock
	Goodput     float64       `json:"goodput"`     // bit/s
	Retransmits int64         `json:"retransmits"` // TCP segments sent again
	Loss        float64       `json:"loss"`        // UDP: 0 to 1
	CPU         time.Duration `json:"cpu_ns"`      // of the sending threads
	// TCP's own clocks, the sum over connections: with data to send, of that waiting for the
	// receiver's window, and waiting for the send buffer.
	Busy        time.Duration `json:"busy_ns,omitempty"`
	RwndLimited time.Duration `json:"rwnd_limited_ns,omitempty"`
	SndLimited  time.Duration `json:"sndbuf_limited_ns,omitempty"`
	Segments    int64         `json:"segments,omitempty"` // TCP: sent with data, those sent again too
	Packets     int64         `json:"packets,omitempty"`  // UDP: received
}

// ServeTraffic serves round trips and bursts at addr, an address of the endpoint, until the
// agent ends.
func (c *Client) ServeTraffic(ctx context.Context, addr netip.Addr) (Ports, error) {
	return call[Ports](ctx, c, opTraffic, helloArgs{addr}, 0)
}

// RoundTrips measures round trips from the endpoint to the targets, in their order. A target
// that does not answer is a result and not an error.
func (c *Client) RoundTrips(ctx context.Context, t Trips) ([]Trip, error) {
	rounds := len(t.Targets)/max(1, cmp.Or(t.AtOnce, defaultAtOnce)) + 1
	return call[[]Trip](ctx, c, opTrips, t, time.Duration(rounds)*(t.Duration+5*time.Second))
}

// SendBurst sends a burst from the endpoint to another agent's sink.
func (c *Client) SendBurst(ctx context.Context, b Burst) (Bursted, error) {
	return call[Bursted](ctx, c, opBurst, b, b.LeadIn+b.Duration+20*time.Second)
}

// traffic starts the servers of ServeTraffic. They end with the agent.
func (s *server) traffic(_ context.Context, args helloArgs) (Ports, error) {
	if !args.Addr.IsValid() {
		return Ports{}, fmt.Errorf("no address given")
	}
	listen := netip.AddrPortFrom(args.Addr, 0).String()
	var ports Ports
	for _, one := range []struct {
		protocol serve.Protocol
		port     *uint16
	}{{serve.UDP, &ports.UDP}, {serve.TCP, &ports.TCP}} {
		srv, err := serve.New(serve.Config{Protocol: one.protocol, Listen: listen, Request: tripSize, Response: tripSize})
		if err != nil {
			return ports, err
		}
		*one.port = portOf(srv.Addr())
		s.background(srv.Serve)
	}
	sink, err := stream.NewSink(listen)
	if err != nil {
		return ports, err
	}
	ports.Sink = portOf(sink.Addr())
	s.background(sink.Serve)
	return ports, nil
}

func portOf(a net.Addr) uint16 {
	at, _ := netip.ParseAddrPort(a.String())
	return at.Port()
}

// trips measures round trips to every target, some at a time.
func trips(ctx context.Context, t Trips) ([]Trip, error) {
	exchange, err := exchangeOf(t.Exchange)
	if err != nil {
		return nil, err
	}
	out := make([]Trip, len(t.Targets))
	var group errgroup.Group
	group.SetLimit(t.AtOnce)
	for i, target := range t.Targets {
		group.Go(func() error {
			out[i] = trip(ctx, t, exchange, target)
			return nil
		})
	}
	return out, group.Wait()
}

func trip(ctx context.Context, t Trips, exchange load.Exchange, target netip.AddrPort) Trip {
	out := Trip{Target: target}
	r, err := load.Run(ctx, load.Config{
		Target: target, Exchange: exchange, Connections: t.Sockets, Rate: t.Rate, Duration: t.Duration, Timeout: t.Timeout,
	})
	if err != nil {
		out.Error = err.Error()
		return out
	}
	out.Planned, out.Answered = r.Planned, r.Requests
	if r.Planned > 0 {
		out.Loss = float64(max(0, r.Planned-r.Requests)) / float64(r.Planned)
	}
	out.Late = r.LateFraction()
	out.P50, out.P99, out.Max = quantile(r.NetworkTime, 50), quantile(r.NetworkTime, 99), quantile(r.NetworkTime, 100)
	out.Connect, out.Longest = quantile(r.ConnectTime, 50), quantile(r.ConnectTime, 100)
	return out
}

// minBeyond is how many values must lie beyond a percentile for it to be one.
const minBeyond = 10

// quantile returns a percentile in seconds; 0 if fewer than minBeyond values lie beyond it. 100
// is the maximum.
func quantile(h *hdrhistogram.Histogram, percent float64) float64 {
	if h == nil || h.TotalCount() == 0 {
		return 0
	}
	if percent < 100 && float64(h.TotalCount())*(1-percent/100) < minBeyond {
		return 0
	}
	return float64(h.ValueAtQuantile(percent)) / 1e9
}

func burst(ctx context.Context, b Burst) (Bursted, error) {
	s, err := stream.Connect(ctx, stream.Config{
		Protocol: stream.Protocol(b.Protocol), Target: b.Target, Connections: b.Streams, Rate: b.Rate, Size: b.Size,
	})
	if err != nil {
		return Bursted{}, err
	}
	defer func() { _ = s.Close() }() // what arrived is known by then
	got, err := s.Slice(ctx, b.LeadIn, b.Duration, func() {}, func() {})
	if err != nil {
		return Bursted{}, err
	}
	return Bursted{
		Bytes: got.Bytes, Elapsed: got.Elapsed, Goodput: float64(got.Goodput()), Retransmits: got.Retransmits, Loss: got.Loss(), CPU: got.CPU,
		Busy: got.Busy, RwndLimited: got.RwndLimited, SndLimited: got.SndLimited, Segments: got.Segments, Packets: got.Packets,
	}, nil
}

// background runs a server until the agent ends. Mark tells of one that ended before.
func (s *server) background(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := run(ctx); err != nil && ctx.Err() == nil {
			s.serverErr.CompareAndSwap(nil, &err)
		}
	}()
	s.serversMu.Lock()
	defer s.serversMu.Unlock()
	s.servers = append(s.servers, func() { cancel(); <-done })
}

// endServers ends what background started.
func (s *server) endServers() {
	s.serversMu.Lock()
	defer s.serversMu.Unlock()
	for _, end := range s.servers {
		end()
	}
	s.servers = nil
}
