package load

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/load/serve"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// exchanges returns all kinds, each with the server that it needs.
func exchanges(sizes Sizes) []struct {
	exchange Exchange
	server   serve.Config
} {
	request, response := max(1, sizes.Request), max(1, sizes.Response)
	return []struct {
		exchange Exchange
		server   serve.Config
	}{
		{HTTP{}, serve.Config{Response: serve.HeaderBytes + response}},
		{HTTP{Each: true}, serve.Config{Response: serve.HeaderBytes + response}},
		{TCPRR{sizes}, serve.Config{Protocol: serve.TCP, Request: request, Response: response}},
		{TCPCRR{sizes}, serve.Config{Protocol: serve.TCP, Request: request, Response: response}},
		{UDPRR{sizes}, serve.Config{Protocol: serve.UDP, Request: request, Response: response}},
	}
}

func describe(e Exchange) string {
	return strings.ReplaceAll(fmt.Sprintf("%s %+v", e.Name(), e), " ", "_")
}

// Every exchange does its plan to the request, over one thread and over two,
// and the clocks nest.
func TestExchangesDoTheirPlan(t *testing.T) {
	for _, sizes := range []Sizes{{}, {Request: 3, Response: 3000}, {Request: 60000, Response: 65507}} {
		for _, tt := range exchanges(sizes) {
			for threads := 1; threads == 1 || threads == 2 && sizes == (Sizes{}); threads++ {
				t.Run(fmt.Sprint(describe(tt.exchange), "/", threads, " threads"), func(t *testing.T) {
					s, addr := startServer(t, tt.server)
					res := mustLoad(t, Config{
						Target: addr, Exchange: tt.exchange, Connections: 7, Threads: threads, Rate: 1000,
						Warmup: 100 * time.Millisecond, Duration: 300 * time.Millisecond,
					})
					if res.Planned != 300 || res.Sent != 300 || res.Requests != 300 || res.Missed != 0 || len(res.Errors) != 0 || res.Threads != threads {
						t.Errorf("planned %d, sent %d, answered %d, missed %d, errors %v, %d threads; want 300, 300, 300, 0, none, %d",
							res.Planned, res.Sent, res.Requests, res.Missed, res.Errors, res.Threads, threads)
					}
					// The very first answer is asked for outside of the plan.
					if got := answered(s, 401); got != 401 {
						t.Errorf("the server saw %d requests, want 401", got)
					}
					if res.ResponseBytes != int64(tt.server.Response) {
						t.Errorf("a response has %d bytes, want %d", res.ResponseBytes, tt.server.Response)
					}
					want := map[string]bool{"latency": true, "service_time": true, "network_time": true, "send_lag": true, "connect_time": !tt.exchange.lasting()}
					for clock, wanted := range want {
						n := valued(res, clock)
						if wanted && n != 300 || !wanted && n != 0 {
							t.Errorf("%s has %d values, want 300: %v", clock, n, wanted)
						}
					}
					for _, q := range []float64{50, 99} {
						l, s, n, c := res.Latency.ValueAtPercentile(q), res.ServiceTime.ValueAtPercentile(q), res.NetworkTime.ValueAtPercentile(q), res.ConnectTime.ValueAtPercentile(q)
						if l < s || s < n || s < c {
							t.Errorf("p%v: latency %d, service time %d, network time %d, connect time %d ns", q, l, s, n, c)
						}
					}
				})
			}
		}
	}
}

func TestClosedLoops(t *testing.T) {
	for _, tt := range exchanges(Sizes{Request: 8, Response: 8}) {
		t.Run(describe(tt.exchange), func(t *testing.T) {
			s, addr := startServer(t, tt.server)
			res := mustLoad(t, Config{Target: addr, Exchange: tt.exchange, Connections: 4, Duration: 200 * time.Millisecond})
			if got := answered(s, res.Requests+1); got != res.Requests+1 || res.Requests < 10 || res.Missed != 0 || len(res.Errors) != 0 {
				t.Errorf("answered %d, missed %d, errors %v; the server saw %d", res.Requests, res.Missed, res.Errors, got)
			}
		})
	}
}

// serveUDP answers each datagram as handle says: with so many copies, after a
// time.
func serveUDP(t *testing.T, handle func(n int, request []byte) (copies int, after time.Duration)) netip.AddrPort {
	t.Helper()
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		for n := 0; ; n++ {
			b := make([]byte, 2048)
			size, from, err := c.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			copies, after := handle(n, b[:size])
			time.AfterFunc(after, func() {
				for range copies {
					_, _ = c.WriteToUDPAddrPort(b[:size], from)
				}
			})
		}
	}()
	return c.LocalAddr().(*net.UDPAddr).AddrPort()
}

// A server that loses every tenth datagram: each is an error of its own kind
// with its age in the histogram, and the others are answered.
func TestLostDatagramsAreTimeouts(t *testing.T) {
	var lost atomic.Int64
	addr := serveUDP(t, func(n int, _ []byte) (int, time.Duration) {
		if n%10 == 9 {
			lost.Add(1)
			return 0, 0
		}
		return 1, 0
	})
	const timeout = 500 * time.Millisecond
	res := mustLoad(t, Config{Target: addr, Exchange: UDPRR{Sizes{Request: 16, Response: 16}}, Connections: 64, Rate: 200, Duration: 700 * time.Millisecond, Timeout: timeout})
	if n := res.Errors[Timeout] + res.Missed; n != lost.Load() || n != 14 || len(res.Errors) != 1 || res.Requests != res.Planned-n {
		t.Errorf("errors %v, %d missed, %d of %d answered; the server lost %d, want 14", res.Errors, res.Missed, res.Requests, res.Planned, lost.Load())
	}
	if res.Latency.TotalCount() != res.Planned || time.Duration(res.Latency.Max()) < timeout*999/1000 {
		t.Errorf("%d latencies up to %v", res.Latency.TotalCount(), time.Duration(res.Latency.Max()))
	}
}

// A datagram that nobody takes is refused, and a closed loop does not spin on
// that.
func TestRefusedDatagrams(t *testing.T) {
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		b := make([]byte, 10)
		if _, from, err := c.ReadFromUDPAddrPort(b); err == nil {
			_, _ = c.WriteToUDPAddrPort(b[:1], from)
		}
		c.Close()
	}()
	s := openLoad(t, Config{Target: c.LocalAddr().(*net.UDPAddr).AddrPort(), Exchange: UDPRR{}, Connections: 2})
	<-closed
	res := takeSlice(t, s, 0, 200*time.Millisecond)
	if n := res.Errors[Connect]; n < 2 || n > 60 || len(res.Errors) != 1 || res.Requests != 0 {
		t.Errorf("errors %v, %d answered; want tens of refusals", res.Errors, res.Requests)
	}
}

// Answers that come twice or after their request was given up are not taken
// for those of others.
func TestStaleDatagrams(t *testing.T) {
	for _, size := range []int{1, 8, 100} {
		addr := serveUDP(t, func(int, []byte) (int, time.Duration) { return 2, 0 })
		res := mustLoad(t, Config{Target: addr, Exchange: UDPRR{Sizes{size, size}}, Connections: 2, Rate: 500, Duration: 200 * time.Millisecond})
		if res.Requests != 100 || len(res.Errors) != 0 {
			t.Errorf("%d bytes, twice each: %d answered, errors %v; want 100 and none", size, res.Requests, res.Errors)
		}
	}
	addr := serveUDP(t, func(n int, _ []byte) (int, time.Duration) {
		if n%2 == 1 {
			return 1, 300 * time.Millisecond
		}
		return 1, 0
	})
	res := mustLoad(t, Config{Target: addr, Exchange: UDPRR{Sizes{8, 8}}, Connections: 1, Rate: 100, Duration: 500 * time.Millisecond, Timeout: 200 * time.Millisecond})
	if res.Errors[Timeout] == 0 || len(res.Errors) != 1 {
		t.Errorf("errors %v of %d requests, want some timeouts", res.Errors, res.Sent)
	}
	p := UDPRR{Sizes{8, 8}}.protocol()
	var r response
	if done, bad := p.feed(&r, 7, []byte{6, 0, 0, 0, 0, 0, 0, 0}); done || bad != "" {
		t.Errorf("an older answer: done %v, bad %q", done, bad)
	}
	if done, bad := p.feed(&r, 7, []byte{7, 0, 0, 0, 0, 0, 0, 0}); !done || bad != "" {
		t.Errorf("the answer: done %v, bad %q", done, bad)
	}
	if _, bad := p.feed(&r, 7, []byte{7}); bad != Malformed {
		t.Errorf("an answer of another size: %q", bad)
	}
}

// A server that hangs up, refuses or says too much, as connections of one
// request see it.
func TestErrorsOfConnectionsPerRequest(t *testing.T) {
	tests := []struct {
		kind   Kind
		answer string
	}{
		{"", "ok"},
		{Short, "o"},
		{Malformed, "okay"},
		{Reset, ""},
	}
	for _, tt := range tests {
		t.Run(string(tt.kind), func(t *testing.T) {
			var n atomic.Int64
			addr := serveTCP(t, func(c net.Conn) {
				answer := tt.answer
				if n.Add(1) == 1 {
					answer = "ok"
				}
				_, _ = c.Read(make([]byte, 10))
				_, _ = c.Write([]byte(answer))
			})
			res := mustLoad(t, Config{Target: addr, Exchange: TCPCRR{Sizes{Request: 1, Response: 2}}, Connections: 4, Rate: 200, Duration: 200 * time.Millisecond})
			if tt.kind == "" && (res.Requests != 40 || len(res.Errors) != 0) || tt.kind != "" && (res.Errors[tt.kind] != 40 || len(res.Errors) != 1) {
				t.Errorf("%d answered, errors %v; want 40 %s", res.Requests, res.Errors, tt.kind)
			}
			if res.Latency.TotalCount() != 40 {
				t.Errorf("%d latencies of 40 requests", res.Latency.TotalCount())
			}
		})
	}
	t.Run("connect", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := l.Accept() // the first request only
			if err == nil {
				l.Close()
				_, _ = c.Read(make([]byte, 10))
				_, _ = c.Write([]byte("x"))
				c.Close()
			}
		}()
		res := mustLoad(t, Config{Target: l.Addr().(*net.TCPAddr).AddrPort(), Exchange: TCPCRR{}, Connections: 4, Duration: 200 * time.Millisecond})
		if res.Errors[Connect] < 4 || res.Errors[Connect] > 100 || len(res.Errors) != 1 || res.Requests != 0 {
			t.Errorf("errors %v, want tens of refused connections", res.Errors)
		}
	})
}

// The sources are used in turn, and CPUs that are there can be pinned to.
func TestSourcesAndCPUs(t *testing.T) {
	var seen [4]atomic.Int64
	addr := serveTCP(t, func(c net.Conn) {
		ip := c.RemoteAddr().(*net.TCPAddr).IP.To4()
		seen[ip[3]].Add(1)
		_, _ = c.Read(make([]byte, 10))
		_, _ = c.Write([]byte("x"))
		_, _ = c.Read(make([]byte, 10))
	})
	res := mustLoad(t, Config{
		Target: addr, Exchange: TCPCRR{}, Connections: 6, Threads: 2, CPUs: usableCPUs(), Rate: 600, Duration: 100 * time.Millisecond,
		Sources: []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3")},
	})
	// Which free connection takes a request is the machine's business, and so is
	// how often a source sends; the very first answer is asked for from the first.
	if a, b, c := seen[1].Load(), seen[2].Load(), seen[3].Load(); a+b+c != res.Sent+1 || min(a, b, c) == 0 || res.Requests != 60 {
		t.Errorf("%d sent and %d answered, from the sources %d, %d and %d; want 60, and some from each", res.Sent, res.Requests, a, b, c)
	}
	for _, tt := range []struct {
		cfg  Config
		says string
	}{
		{Config{Sources: []netip.Addr{netip.MustParseAddr("::1")}}, "not of one address family"},
		{Config{Sources: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}, "cannot assign requested address"},
		{Config{CPUs: []int{1023}}, "pin a thread to CPU 1023"},
		{Config{Connections: 30000}, "net.ipv4.ip_local_port_range"},
	} {
		tt.cfg.Target, tt.cfg.Exchange, tt.cfg.Rate, tt.cfg.Duration = addr, TCPRR{}, 10, time.Second
		tt.cfg.Connections = max(1, tt.cfg.Connections)
		if tt.cfg.Connections > 1 {
			tt.cfg.Connections = 1 << 20
		}
		if _, err := Run(context.Background(), tt.cfg); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("error %v, want one that says %q", err, tt.says)
		}
	}
}

// A ladder gives figures per step, by the plan and not by the clock.
func TestLadder(t *testing.T) {
	_, addr := startServer(t, serve.Config{})
	res := mustLoad(t, Config{Target: addr, Connections: 8, Steps: []float64{500, 1000, 200}, Warmup: 100 * time.Millisecond, Duration: 200 * time.Millisecond})
	var planned, answered []int64
	for _, s := range res.Steps {
		planned, answered = append(planned, s.Planned), append(answered, s.Requests)
		if s.Latency.TotalCount() != s.Planned || s.ServiceTime.TotalCount() != s.Planned {
			t.Errorf("step %v/s: %d latencies and %d service times of %d", s.AskedRate, s.Latency.TotalCount(), s.ServiceTime.TotalCount(), s.Planned)
		}
	}
	if want := []int64{100, 200, 40}; !slices.Equal(planned, want) || !slices.Equal(answered, want) || res.Planned != 340 {
		t.Errorf("planned %v, answered %v, %d in all; want %v twice, and 340", planned, answered, res.Planned, want)
	}
}

// The search itself is proven in find_max_test.go; here its probes are real.
func TestFindMax(t *testing.T) {
	needs.Slow(t, "searches for the highest rate")
	_, addr := startServer(t, serve.Config{})
	cfg := Config{Target: addr, Exchange: HTTP{}, Connections: 8, Duration: 300 * time.Millisecond, Begin: func() { t.Error("Begin of a search") }}
	best, res, probes, err := FindMax(context.Background(), cfg, time.Second)
	confirmed := slices.ContainsFunc(probes, func(p Probe) bool { return p.Passed && p.AskedRate == best && p.Rate == res.Rate() })
	// On a busy machine no rate may do.
	if (err == nil) != (best > 0) || confirmed != (err == nil) || err == nil && (res.Rate() < minAchieved*best || res.Latency.TotalCount() != res.Planned) {
		t.Errorf("best %v of probes %+v, error %v", best, probes, err)
	}
	if probes[0].AskedRate != 0 {
		t.Errorf("the search begins at %v/s", probes[0].AskedRate)
	}
	// Not even light is that fast.
	best, _, probes, err = FindMax(context.Background(), cfg, time.Nanosecond)
	if err == nil || best != 0 || !strings.Contains(err.Error(), "because p99 was") {
		t.Errorf("best %v, %d probes, error %v", best, len(probes), err)
	}
	if _, _, _, err := FindMax(context.Background(), cfg, 0); err == nil {
		t.Error("no error for a bound of 0")
	}
}
