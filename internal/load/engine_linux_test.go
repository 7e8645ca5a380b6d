package load

//make:alone 30

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/load/serve"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// The latency that the plan and the server's own record of its stalls give
// for each request is computed and compared with what was measured. A request
// planned in a stall waits for the stall's end at least, whatever the machine
// does. It waits for little more only on a quiet machine: there are five tries,
// and those count before and after which the same load without stalls was quick.
func TestStallShows(t *testing.T) {
	needs.Slow(t, "measures stalls, on a quiet machine")
	for _, connections := range []int{1, 64} { // all or some requests queue in the client
		t.Run(fmt.Sprint(connections, " connections"), func(t *testing.T) {
			quiet := 0
			for try := 1; try <= 5; try++ {
				before := quick(t, connections)
				tooLong := loadThroughStalls(t, connections)
				if tooLong == nil {
					return
				}
				t.Logf("try %d: %v", try, tooLong)
				if before && quick(t, connections) {
					quiet++
				}
			}
			if quiet == 5 {
				t.Fatal("the stalls were never measured as they happened, on a quiet machine")
			}
			t.Log("the machine was too busy to say that nothing else is counted as a stall")
		})
	}
}

// maxDelay is what a request waits beyond a stall on a quiet machine.
const maxDelay = 20 * time.Millisecond

// quick says whether a load without stalls waits for nothing.
func quick(t *testing.T, connections int) bool {
	t.Helper()
	_, addr := startServer(t, serve.Config{})
	res := mustLoad(t, Config{Target: addr, Connections: connections, Rate: 2000, Duration: 500 * time.Millisecond})
	return time.Duration(res.Latency.ValueAtPercentile(99)) < maxDelay/2
}

// loadThroughStalls fails the test if a latency is too short, and returns an
// error if one is too long.
func loadThroughStalls(t *testing.T, connections int) (tooLong error) {
	t.Helper()
	const stall, every, window = 200 * time.Millisecond, time.Second, 3 * time.Second
	s, addr := startServer(t, serve.Config{Stall: stall, Every: every})
	cfg := Config{Target: addr, Connections: connections, Rate: 2000, Duration: window}
	res := mustLoad(t, cfg)
	var want []float64
	for plan := newSchedule(cfg, 0); plan.due < int64(window); plan.advance(1) {
		at := res.Begin.Add(time.Duration(plan.due))
		waits := 0.0
		for _, stalled := range s.Stalls() {
			if !at.Before(stalled.From) && at.Before(stalled.To) {
				waits = stalled.To.Sub(at).Seconds()
			}
		}
		want = append(want, waits)
	}
	slices.Sort(want)
	if len(s.Stalls()) < 2 {
		t.Fatalf("%d stalls; the server did not do its part", len(s.Stalls()))
	}
	if n := res.Latency.TotalCount(); n != int64(len(want)) {
		t.Errorf("%d latencies of %d requests", n, len(want))
	}
	if res.Queued == 0 {
		t.Error("no send is marked as queued behind busy connections")
	}
	for _, q := range []float64{95, 99, 99.9} {
		computed := want[int(math.Ceil(q/100*float64(len(want))))-1]
		got := float64(res.Latency.ValueAtPercentile(q)) / 1e9
		t.Logf("p%v: computed %.4f s, measured %.4f s", q, computed, got)
		// The client's clock and the server's record are apart by a wake-up.
		if got < 0.95*computed-maxDelay.Seconds() {
			t.Errorf("p%v is %.4f s, want %.4f s at least", q, got, computed)
		}
		if got > 1.05*computed+maxDelay.Seconds() {
			tooLong = errors.Join(tooLong, fmt.Errorf("p%v is %.4f s, want %.4f s", q, got, computed))
		}
	}
	return tooLong
}

// A stall that begins within the window and ends after it: the rate in the
// window is low, and yet every planned request is answered and timed.
func TestStallAtTheEndIsNoShortfall(t *testing.T) {
	// The stall, 2.0 to 2.6 s, ends long before the drain does, and the next one, at 4 s,
	// comes after it: a busy machine has 0.5 s to begin the load, and as much to end it.
	const window = 2100 * time.Millisecond
	s, addr := startServer(t, serve.Config{Stall: 600 * time.Millisecond, Every: 2 * time.Second})
	res := mustLoad(t, Config{Target: addr, Connections: 8, Rate: 1000, Duration: window})
	first := s.Stalls()[0]
	if end := res.Begin.Add(window); !end.After(first.From) || !end.Before(first.To) {
		t.Fatalf("the window ended at %v, not in the stall %v", end, first)
	}
	if res.Planned != 2100 || res.Requests != res.Planned || res.Missed != 0 || res.Latency.TotalCount() != res.Planned {
		t.Errorf("planned %d, answered %d, missed %d, %d latencies; want 2100, 2100, 0, 2100",
			res.Planned, res.Requests, res.Missed, res.Latency.TotalCount())
	}
	if res.Completed >= res.Planned {
		t.Errorf("%d answers within the window, want fewer than the %d planned", res.Completed, res.Planned)
	}
	if longest, stall := time.Duration(res.Latency.Max()), first.To.Sub(first.From); longest < stall*9/10 {
		t.Errorf("the longest latency is %v of a stall of %v", longest, stall)
	}
}

func TestClosedLoopCountsAreTheServers(t *testing.T) {
	s, addr := startServer(t, serve.Config{})
	res := mustLoad(t, Config{Target: addr, Connections: 8, Duration: 300 * time.Millisecond})
	// The very first answer is asked for outside of the loop.
	if got := res.Requests + 1; got != s.Requests() || res.Sent != res.Requests || res.Missed != 0 || len(res.Errors) != 0 {
		t.Errorf("client: %d requests, %d sent, %d missed, errors %v; server: %d", got, res.Sent, res.Missed, res.Errors, s.Requests())
	}
	if res.ResponseBytes != 350 {
		t.Errorf("a response has %d bytes, want 350", res.ResponseBytes)
	}
	if res.ServiceTime.TotalCount() != res.Requests || res.Latency.TotalCount() != 0 || res.SendLag.TotalCount() != 0 || res.Planned != 0 {
		t.Errorf("%d service times of %d requests; %d latencies, %d send lags and %d planned without a plan",
			res.ServiceTime.TotalCount(), res.Requests, res.Latency.TotalCount(), res.SendLag.TotalCount(), res.Planned)
	}
}

func TestOpenLoop(t *testing.T) {
	s, addr := startServer(t, serve.Config{Response: 4096})
	var marks atomic.Int64
	res := mustLoad(t, Config{
		Target: addr, Connections: 16, Rate: 1000, Warmup: 200 * time.Millisecond, Duration: 500 * time.Millisecond,
		Begin: func() { marks.Add(1) }, End: func() { marks.Add(100) },
	})
	if res.Planned != 500 || res.Sent != 500 || res.Requests != 500 || s.Requests() != 701 || marks.Load() != 101 {
		t.Errorf("planned %d, sent %d and answered %d, want 500; the server saw %d, want 701; marks %d, want 101",
			res.Planned, res.Sent, res.Requests, s.Requests(), marks.Load())
	}
	for clock, h := range res.Histograms() {
		if n := valued(res, clock); n != 500 {
			t.Errorf("%s has %d values of %d, want 500", clock, h.TotalCount(), n)
		}
	}
	if len(res.Histograms()) != 4 {
		t.Errorf("%d clocks, want 4", len(res.Histograms()))
	}
	// The three clocks nest by construction, whatever the machine does.
	for _, q := range []float64{50, 99} {
		l, s, n := res.Latency.ValueAtPercentile(q), res.ServiceTime.ValueAtPercentile(q), res.NetworkTime.ValueAtPercentile(q)
		if l < s || s < n {
			t.Errorf("p%v: latency %d, service time %d, network time %d ns", q, l, s, n)
		}
	}
}

// valued is how many requests have a value of the clock, or a reason why not.
func valued(res *Result, clock string) (n int64) {
	if h := res.Histograms()[clock]; h != nil {
		n = h.TotalCount()
	}
	if clock == "network_time" {
		for _, count := range res.Unstamped {
			n += count
		}
	}
	return n
}

// A response is stamped or counted with the reason why it is not.
func TestUnstamped(t *testing.T) {
	const sent, read = 1_000_000_000, 1_000_400_000
	for name, tt := range map[string]struct {
		read, stamp int64
		want        Unstamped
	}{
		"stamped":           {read, sent + 300_000, ""},
		"no stamp":          {read, 0, NoTimestamp},
		"before the send":   {read, sent - 1, ClocksApart},
		"after the read":    {read, read + 1, ClocksApart},
		"a clock set back":  {read - 100_000, sent + 100_000, ClocksApart},
		"a clock set ahead": {read + 100_000, sent + 300_000, ClocksApart},
	} {
		c := &conn{sentWall: sent, since: 5_000_000}
		if got := c.checkStamp(5_400_000, tt.read, tt.stamp); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// A server that takes requests and never answers: nothing is lost from the
// histogram, and the ages at the end are what the plan says.
func TestUnansweredRequestsAreMissedWithTheirAge(t *testing.T) {
	const window = 300 * time.Millisecond
	var conns atomic.Int64
	addr := serveTCP(t, func(c net.Conn) {
		first := conns.Add(1) == 1
		if buf := make([]byte, 4096); first {
			_, _ = c.Read(buf)
			_, _ = c.Write(serve.HTTPResponse(350))
		}
		buf := make([]byte, 4096)
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
		}
	})
	res := mustLoad(t, Config{Target: addr, Connections: 2, Rate: 100, Duration: window})
	if res.Missed != 30 || res.Requests != 0 || res.Latency.TotalCount() != 30 || res.ServiceTime.TotalCount() != 2 {
		t.Errorf("missed %d, answered %d, %d latencies, %d service times; want 30, 0, 30, 2",
			res.Missed, res.Requests, res.Latency.TotalCount(), res.ServiceTime.TotalCount())
	}
	// The youngest was planned 10 ms before the end of the window, the oldest
	// at its begin, and the end is the drain after the window.
	if minimum, maximum := time.Duration(res.Latency.Min()), time.Duration(res.Latency.Max()); minimum < drain || maximum < window+drain {
		t.Errorf("ages from %v to %v, want from %v to %v and a little more", minimum, maximum, drain+10*time.Millisecond, window+drain)
	}
}

// Each server answers well nine times on a connection, and then badly.
func TestErrorsAreCountedByKind(t *testing.T) {
	good := string(serve.HTTPResponse(350))
	tests := []struct {
		kind    Kind
		tenth   string
		hangUp  bool // after the tenth answer
		abort   bool // with a reset
		timeout time.Duration
	}{
		{kind: Status, tenth: strings.Replace(good, "200 OK", "500 No", 1)},
		{kind: Chunked, tenth: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{kind: Malformed, tenth: good + "x"},
		{kind: Short, tenth: good[:300], hangUp: true},
		{kind: Closed, tenth: strings.Replace(good, "X-Pad: xxxxxx", "Connection: close\r\nX-Pad: ", 1), hangUp: true},
		{kind: Reset, tenth: "", hangUp: true, abort: true},
		{kind: Timeout, tenth: "", timeout: 20 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(string(tt.kind), func(t *testing.T) {
			addr := serveTCP(t, func(c net.Conn) {
				buf := make([]byte, 4096)
				for n := 1; ; n++ {
					if _, err := c.Read(buf); err != nil {
						return
					}
					answer := good
					if n%10 == 0 {
						answer = tt.tenth
					}
					if _, err := c.Write([]byte(answer)); err != nil {
						return
					}
					if n%10 == 0 && tt.hangUp {
						if tt.abort {
							_ = c.(*net.TCPConn).SetLinger(0)
						}
						return
					}
				}
			})
			res := mustLoad(t, Config{Target: addr, Connections: 2, Rate: 500, Duration: 400 * time.Millisecond, Timeout: tt.timeout})
			errors, none := res.Errors, res.ConnectionErrors
			if tt.kind == Closed { // between two requests
				errors, none = none, errors
			}
			if n := errors[tt.kind]; n < 5 || n > 40 || len(errors) != 1 || len(none) != 0 {
				t.Errorf("errors %v of %d requests, of connections %v; want about 20 of kind %s alone", res.Errors, res.Sent, res.ConnectionErrors, tt.kind)
			}
			if n := total(res.Errors); n != res.Planned-res.Requests-res.Missed {
				t.Errorf("%d of %d requests answered, %d missed, errors %v", res.Requests, res.Planned, res.Missed, res.Errors)
			}
			if n := res.Latency.TotalCount(); n != res.Planned {
				t.Errorf("%d latencies of %d planned requests; each has one, be it a lower bound", n, res.Planned)
			}
		})
	}
}

// When the server goes away in the middle, connecting again is refused and
// counted, and the requests that nobody takes are missed.
func TestServerGoesAway(t *testing.T) {
	s, err := serve.New(serve.Config{Listen: "127.0.0.1:0", Response: 350})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	done := make(chan error)
	go func() { done <- s.Serve(ctx) }()
	res := mustLoad(t, Config{Target: addrPort(s), Connections: 4, Threads: 2, Steps: []float64{1000, 2000}, Duration: 300 * time.Millisecond})
	if err := <-done; err != nil {
		t.Error(err)
	}
	if res.ConnectionErrors[Connect] == 0 || res.Missed == 0 || res.Requests == 0 {
		t.Errorf("errors of connections %v, %d missed, %d answered; want some of each", res.ConnectionErrors, res.Missed, res.Requests)
	}
	if n := total(res.Errors); n != res.Planned-res.Requests-res.Missed || res.Planned != 900 {
		t.Errorf("%d of %d requests answered, %d missed, errors %v", res.Requests, res.Planned, res.Missed, res.Errors)
	}
	for _, s := range res.Steps {
		if s.Errors != s.Planned-s.Requests-s.Missed {
			t.Errorf("step %v/s: %d of %d requests answered, %d missed, %d errors", s.AskedRate, s.Requests, s.Planned, s.Missed, s.Errors)
		}
	}
	if len(res.Limits) == 0 || res.Limits[0].Code != "rate_short" {
		t.Errorf("limits %v, want rate_short first", res.Limits)
	}
}

// A server that takes connections and closes them at once is not stormed.
func TestClosedAtOnceMakesAPause(t *testing.T) {
	var conns atomic.Int64
	addr := serveTCP(t, func(c net.Conn) {
		if conns.Add(1) <= 5 { // the first answer and the connections of the load
			buf := make([]byte, 4096)
			_, _ = c.Read(buf)
			_, _ = c.Write(serve.HTTPResponse(350))
			time.Sleep(50 * time.Millisecond)
		}
	})
	res := mustLoad(t, Config{Target: addr, Connections: 4, Rate: 20, Duration: 500 * time.Millisecond})
	// Four connections, of which each pauses for 10 ms.
	if n := conns.Load(); n > 5+4*60 {
		t.Errorf("%d connections in %v", n, res.Elapsed)
	}
}

func TestInterrupted(t *testing.T) {
	_, addr := startServer(t, serve.Config{})
	cfg := Config{Target: addr, Exchange: HTTP{}, Connections: 4, Threads: 2, Rate: 1000, Warmup: 100 * time.Millisecond, Duration: time.Hour}

	ctx, cancel := context.WithCancel(context.Background())
	cfg.Begin = func() { time.AfterFunc(200*time.Millisecond, cancel) }
	ended := false
	cfg.End = func() { ended = true }
	res, err := Run(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	planned := int64(res.Elapsed.Seconds()*cfg.Rate) + 1 // until the last thread heard of it
	if !res.Interrupted || !ended || res.Requests < planned*8/10 || res.Requests > planned || res.Missed != 0 {
		t.Errorf("interrupted %v, ended %v, %d answered in %v, %d missed", res.Interrupted, ended, res.Requests, res.Elapsed, res.Missed)
	}

	ctx, cancel = context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := Run(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended in the warm-up: %v, want %v", err, context.DeadlineExceeded)
	}
}

// heldPort returns a port that nobody listens at and, until the test's end, nobody
// can: it is bound.
func heldPort(t *testing.T) netip.AddrPort {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(name.(*unix.SockaddrInet4).Port))
}

func TestBadInput(t *testing.T) {
	_, addr := startServer(t, serve.Config{})
	unused := heldPort(t)
	notFound := serveTCP(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = c.Write([]byte("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"))
	})
	tests := []struct {
		name   string
		change func(*Config)
		is     error
		says   string
	}{
		{"no connections", func(c *Config) { c.Connections = 0 }, ErrConfig, "at least 1"},
		{"negative rate", func(c *Config) { c.Rate = -1 }, ErrConfig, "above 0"},
		{"a rate that is too low", func(c *Config) { c.Rate = 1e-13 }, ErrConfig, "is the least"},
		{"a ramp to one", func(c *Config) { c.Ramp = 1e-13 }, ErrConfig, "is the least"},
		{"a step of one", func(c *Config) { c.Rate, c.Steps = 0, []float64{5, 1e-13} }, ErrConfig, "is the least"},
		{"more than the schedule holds", func(c *Config) { c.Rate, c.Steps, c.Duration = 0, []float64{1, 2, 3}, 1000000*time.Hour }, ErrConfig, "together 2400h0m0s are the most"},
		{"no duration", func(c *Config) { c.Duration = 0 }, ErrConfig, "above 0"},
		{"no target", func(c *Config) { c.Target = netip.AddrPort{} }, ErrConfig, "an address and a port"},
		{"path with a line break", func(c *Config) { c.Exchange = HTTP{Path: "/\r\nX: y"} }, ErrConfig, "printable"},
		{"refused", func(c *Config) { c.Target = unused }, syscall.ECONNREFUSED, "is a server listening there?"},
		{"wrong status", func(c *Config) { c.Target = notFound }, nil, "status 404, want 2xx"},
		{"more than the file limit", func(c *Config) { c.Connections = 1 << 31 }, nil, "ulimit -Hn"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := Config{Target: addr, Exchange: HTTP{}, Connections: 1, Rate: 10, Duration: 10 * time.Millisecond}
			tt.change(&cfg)
			_, err := Run(context.Background(), cfg)
			if err == nil || !strings.Contains(err.Error(), tt.says) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v, want one that says %q", err, tt.says)
			}
		})
	}
}

func TestWaitsForAServerThatStarts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().(*net.TCPAddr).AddrPort()
	l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	time.AfterFunc(100*time.Millisecond, func() {
		s, err := serve.New(serve.Config{Listen: addr.String(), Response: 350})
		if err == nil {
			err = s.Serve(ctx)
		}
		done <- err
	})
	res := mustLoad(t, Config{Target: addr, Connections: 1, Rate: 100, Duration: 50 * time.Millisecond, Wait: 30 * time.Second})
	if res.Requests != 5 {
		t.Errorf("%d answered, want 5", res.Requests)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// What is allocated while requests go out does not grow with them; the
// server, which does not allocate either, runs in this process.
func TestHotPathDoesNotAllocate(t *testing.T) {
	for _, tt := range exchanges(Sizes{Request: 100, Response: 100}) {
		t.Run(describe(tt.exchange), func(t *testing.T) {
			_, addr := startServer(t, tt.server)
			var before, after runtime.MemStats
			res := mustLoad(t, Config{
				Target: addr, Exchange: tt.exchange, Connections: 16, Rate: 4000, Warmup: 200 * time.Millisecond, Duration: 500 * time.Millisecond,
				Begin: func() { runtime.ReadMemStats(&before) }, End: func() { runtime.ReadMemStats(&after) },
			})
			if n := after.Mallocs - before.Mallocs; n > 100 || res.Requests < 1000 {
				t.Errorf("%d allocations in %d requests", n, res.Requests)
			}
		})
	}
}
