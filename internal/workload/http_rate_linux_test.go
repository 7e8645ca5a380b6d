package workload

//make:alone 60

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/load/serve"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// builtProgram is this module's own program.
func builtProgram(t *testing.T) string {
	t.Helper()
	program, err := needs.Program(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// TestHTTPRate drives the workload with this module's own program.
func TestHTTPRate(t *testing.T) {
	h := HTTPRate{Program: builtProgram(t)}
	t.Run("nginx", func(t *testing.T) { testAgainstNginx(t, h) })
	t.Run("a connection per request", func(t *testing.T) { testConnectionPerRequest(t, h) })
	t.Run("a stall shows", func(t *testing.T) { testStallShows(t, h) })
	t.Run("a stall at the window's end shows", func(t *testing.T) { testStallAtTheEnd(t, h) })
	t.Run("the server dies", func(t *testing.T) { testServerDies(t, h) })
	t.Run("the server cannot listen", func(t *testing.T) { testServerCannotListen(t, h) })
	t.Run("the limit passes", func(t *testing.T) { testLimitPasses(t, h) })
	t.Run("peak", func(t *testing.T) { testPeak(t, h) })
}

func TestHTTPRateCapacity(t *testing.T) {
	needs.Slow(t, "searches for the capacity")
	testCapacity(t, HTTPRate{Program: builtProgram(t)})
}

var lastPort = 10000 + os.Getpid()%20000

// freePort returns a port that nobody listens on, below those that the kernel gives to
// whoever asks for any (ip_local_port_range), so that none is given it meanwhile.
func freePort(t *testing.T) int {
	t.Helper()
	for range 1000 {
		lastPort++
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", lastPort)); err == nil {
			l.Close()
			return lastPort
		}
	}
	t.Fatalf("no free port up to %d", lastPort)
	return 0
}

// httpSession is a session of http_rate on loopback with its window.
func httpSession(t *testing.T, params map[string]any) (*Session, *window) {
	t.Helper()
	s, w := loopback(t), &window{}
	s.Begin, s.End = w.begin, w.end
	s.Warmup, s.Duration = 100*time.Millisecond, 500*time.Millisecond
	given := map[string]any{"port": freePort(t), "rate": 1000, "connections": 8}
	for name, value := range params {
		given[name] = value
	}
	p, err := Complete(HTTPRate{}.Info(), given)
	if err != nil {
		t.Fatal(err)
	}
	s.Params = p
	return s, w
}

func TestNginxAnswersWithExactBytes(t *testing.T) {
	needPrograms(t, HTTPRate{})
	for _, tt := range []struct {
		size, body int
		file       bool
	}{{350, 100, false}, {4096, 3846, false}, {350, 100, true}, {20000, 19750, true}} {
		s, _ := httpSession(t, map[string]any{"file": tt.file})
		listen := netip.AddrPortFrom(s.Target, uint16(s.Params.Int("port")))
		c := newProgramGroup(t.Context(), s)
		server, err := c.httpServer("", listen, tt.size)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ask(listen)
		if err := errors.Join(c.stop(server), c.stopAll()); err != nil {
			t.Error(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		head, body, _ := bytes.Cut(got, []byte("\r\n\r\n"))
		if len(head)+4 != serve.HeaderBytes || len(body) != tt.body || len(got) != tt.size {
			t.Errorf("%d bytes of header and %d of body, want %d and %d:\n%s", len(head)+4, len(body), serve.HeaderBytes, tt.body, got)
		}
	}
}

// ask reads all that a server sends for one request that asks to keep the
// connection, tried until it listens; the second request ends the connection.
func ask(server netip.AddrPort) ([]byte, error) {
	var conn net.Conn
	var err error
	for range 500 {
		if conn, err = net.Dial("tcp", server.String()); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	const request = "GET / HTTP/1.1\r\nHost: x\r\n"
	if _, err := io.WriteString(conn, request+"\r\n"+request+"Connection: close\r\n\r\n"); err != nil {
		return nil, err
	}
	both, err := io.ReadAll(bufio.NewReader(conn))
	if second := bytes.LastIndex(both, []byte("HTTP/1.1 200 OK")); second > 0 {
		return both[:second], err
	}
	return both, err
}

func testAgainstNginx(t *testing.T, h HTTPRate) {
	needPrograms(t, h)
	for _, response := range []string{"350B", "4KiB"} {
		t.Run(response, func(t *testing.T) {
			s, w := httpSession(t, map[string]any{"response": response})
			out, err := h.Drive(context.Background(), s)
			if err != nil {
				t.Fatal(err)
			}
			if len(w.begins) != 1 || len(w.ends) != 1 {
				t.Errorf("%d begins and %d ends of the window, want one each", len(w.begins), len(w.ends))
			}
			for _, clock := range []string{"latency", "service_time", "network_time", "send_lag"} {
				if h := out.Histograms[clock]; h == nil {
					t.Errorf("no %s histogram", clock)
				} else if n := h.TotalCount(); n > 500 || n != 500 && clock != "network_time" { // which some may lack
					t.Errorf("the %s histogram has %d values, want 500", clock, n)
				}
				if h := out.Histograms[clock]; clock == "network_time" && h != nil && h.TotalCount() < 100 {
					continue // so few don't carry a p90
				}
				if v := out.Metrics[clock+"_p90"]; v <= 0 || v > 10 {
					t.Errorf("%s_p90 is %v s", clock, v)
				}
				if _, there := out.Metrics[clock+"_p99_9"]; there {
					t.Errorf("%s_p99_9 is given although 500 values do not carry it", clock)
				}
			}
			for name := range out.Metrics {
				if _, known := result.LookupMetric(name); !known {
					t.Errorf("metric %s is not in the catalogue", name)
				}
			}
			if rate := out.Metrics["rate"]; rate <= 0 || rate > 1200 { // with what the warm-up left over
				t.Errorf("rate %v, asked for 1000", rate)
			}
			for _, name := range []string{"nginx.conf", "client.command", "client.json"} {
				if rawOf(s, name) == "" {
					t.Errorf("raw file %s is empty", name)
				}
			}
		})
	}
}

func testConnectionPerRequest(t *testing.T, h HTTPRate) {
	for _, server := range []string{"nginx", "cnibench"} {
		s, _ := httpSession(t, map[string]any{"server": server, "connection_per_request": true, "threads": 2, "arrivals": "poisson", "rate": 500})
		out, err := h.Drive(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if n := out.Histograms["connect_time"]; n == nil || n.TotalCount() < 200 {
			t.Errorf("%s: connect times %v of about 250 requests", server, n)
		}
	}
}

// The computed percentile is that of 200 ms stalls in each second: of a
// thousand requests in a second, those planned n ms into a stall wait for
// 200-n ms, whatever else the machine does. That nothing else is counted as a
// stall is proven in ../load.
func testStallShows(t *testing.T, h HTTPRate) {
	s, _ := httpSession(t, map[string]any{"server": "cnibench", "stall": "200ms", "every": "1s"})
	s.Duration = 3 * time.Second
	out, err := h.Drive(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	// Of 3000 requests 3 lie beyond p99.9, so one of each stall: 1 ms of 200.
	got, want := float64(out.Histograms["latency"].ValueAtPercentile(99.9))/1e9, 0.199
	if got < 0.95*want-0.020 {
		t.Errorf("p99.9 is %.4f s, want %.4f s at least", got, want)
	}
	if service := float64(out.Histograms["service_time"].ValueAtPercentile(99)) / 1e9; service > got {
		t.Errorf("the service time's p99 %.4f s is above the latency's p99.9 %.4f s", service, got)
	}
}

// The server stalls from 1 s after its start, and the window, which begins a moment after
// that start, ends in that stall: every request of the plan is sent and answered, some after the
// window, which is a long latency and no shortfall of the load.
func testStallAtTheEnd(t *testing.T, h HTTPRate) {
	var out Outcome
	for try := 1; ; try++ {
		s, _ := httpSession(t, map[string]any{"server": "cnibench", "stall": "800ms", "every": "1s"})
		s.Duration = 1100 * time.Millisecond
		var err error
		if out, err = h.Drive(context.Background(), s); err != nil {
			t.Fatal(err)
		}
		rate := out.Metrics["rate"]
		if rate < 990 {
			break
		}
		if try == 10 {
			t.Fatalf("a rate of %v; the stall spanned the window's end in none of %d loads", rate, try)
		}
	}
	noShortfall(t, out)
	if n := out.Histograms["latency"].TotalCount(); n != 1100 {
		t.Errorf("%d latencies, want those of all 1100 requests", n)
	}
	// The stall is 800 ms long, and its first requests have waited for nearly all of it.
	if longest := time.Duration(out.Histograms["latency"].Max()); longest < 600*time.Millisecond {
		t.Errorf("the longest latency is %v, want about 800 ms", longest)
	}
}

// noShortfall fails the test if requests failed, or fewer were answered than
// planned although none was without an answer a second after the window: on a
// busy machine some may be.
func noShortfall(t *testing.T, out Outcome) {
	t.Helper()
	for _, f := range out.Faults {
		if f.Code == "request_errors" || f.Code == "rate_short" && !strings.Contains(f.Text, "had no answer within a second after the window") {
			t.Errorf("fault %+v", f)
		}
	}
}

// foundCapacity fails the test for an error of a search, unless it says that
// the machine may be too busy.
func foundCapacity(t *testing.T, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "or the machine busy?") {
		t.Error(err)
		return
	}
	t.Log(err)
}

// mortal is an endpoint whose servers die a while after they start.
type mortal struct{ localhost }

func (m mortal) Start(ctx context.Context, c host.Command) (host.Process, error) {
	p, err := m.localhost.Start(ctx, c)
	if err == nil && !c.OffMeasuredCPUs {
		time.AfterFunc(600*time.Millisecond, func() { _ = p.Signal(syscall.SIGTERM) })
	}
	return p, err
}

func testServerDies(t *testing.T, h HTTPRate) {
	needPrograms(t, h)
	s, w := httpSession(t, nil)
	s.Server = mortal{s.Server.(localhost)}
	s.Duration = time.Minute
	_, err := h.Drive(context.Background(), s)
	if err == nil || !strings.Contains(err.Error(), "the server ended in the middle of the step: server: nginx") {
		t.Errorf("error %v", err)
	}
	if len(w.begins) != len(w.ends) {
		t.Errorf("%d begins and %d ends of the window", len(w.begins), len(w.ends))
	}
}

// A limit that passes while the load runs is named as such, not as the death
// of the server, which is its consequence; nothing goes on running.
func testLimitPasses(t *testing.T, h HTTPRate) {
	for _, limit := range []time.Duration{time.Millisecond, time.Second} { // in the start and in the window
		s, w := httpSession(t, map[string]any{"server": "cnibench"})
		s.Duration = time.Minute
		watch(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		_, err := h.Drive(ctx, s)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "died") || strings.Contains(err.Error(), "137") {
			t.Errorf("after %v: %v, want the deadline alone", limit, err)
		}
		if len(w.begins) != len(w.ends) {
			t.Errorf("%d begins and %d ends of the window", len(w.begins), len(w.ends))
		}
	}
}

// nginx waits a while for a port that is taken; what answers there is not it.
func testServerCannotListen(t *testing.T, h HTTPRate) {
	needPrograms(t, h)
	other, err := serve.New(serve.Config{Listen: "127.0.0.1:0", Response: 350})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- other.Serve(ctx) }()
	// Its thread copies the file table before it answers; a program started
	// meanwhile would have its pipes held open by the copy.
	res, err := http.Get("http://" + other.Addr().String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	s, _ := httpSession(t, map[string]any{"port": other.Addr().(*net.TCPAddr).Port})
	_, err = h.Drive(context.Background(), s)
	if err == nil || !strings.Contains(err.Error(), "Address already in use") {
		t.Errorf("error %v, want nginx's own words", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestHTTPRateRefuses(t *testing.T) {
	for _, tt := range []struct {
		params map[string]any
		says   string
	}{
		{map[string]any{"response": "249B"}, "251 to 4096"},
		{map[string]any{"response": "1MiB"}, "server: cnibench gives larger ones"},
		{map[string]any{"response": "big"}, "write a size as"},
		{map[string]any{"server": "apache"}, "choose nginx or cnibench"},
		{map[string]any{"stall": "1s"}, "nginx does not stall"},
	} {
		s, _ := httpSession(t, tt.params)
		if _, err := (HTTPRate{Program: "cnibench"}).Drive(context.Background(), s); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%v: error %v, want one that says %q", tt.params, err, tt.says)
		}
	}
}

func testCapacity(t *testing.T, h HTTPRate) {
	needPrograms(t, h)
	var err error
	for range 2 { // other work on the machine can make every probe late
		s, w := httpSession(t, map[string]any{"rate": "30%"})
		var rate float64
		if rate, err = h.Capacity(context.Background(), s); err != nil {
			continue
		}
		if rate <= 0 || rawOf(s, "capacity.json") == "" {
			t.Errorf("capacity %v", rate)
		}
		if len(w.begins) != 0 {
			t.Error("a search for the capacity is no measured window")
		}
		return
	}
	foundCapacity(t, err)
}

// A closed loop comes to a rate without a search.
func testPeak(t *testing.T, h HTTPRate) {
	needPrograms(t, h)
	s, w := httpSession(t, map[string]any{"rate": "30%"})
	rate, err := h.Peak(context.Background(), s)
	if err != nil || rate <= 0 || len(w.begins) != 0 {
		t.Errorf("%v/s, %d windows, %v", rate, len(w.begins), err)
	}
}
