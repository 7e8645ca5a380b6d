package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
)

const (
	iperf3Port       = 5201 // the first port that is tried
	iperf3Interval   = 0.1  // s; the shortest that iperf3 takes
	iperf3MaxStreams = 128  // iperf3's own limit
	iperf3MaxOmit    = 60   // s; iperf3's own limit
	iperf3Threads    = 16   // from 3.16 on, every stream has a thread
	iperf3ConnectMs  = 3000
	iperf3Patience   = 10 * time.Second       // beyond the planned end
	iperf3Grace      = 500 * time.Millisecond // for one side to notice that the other failed
)

// iperf3Streams returns the parameters that both protocols share.
func iperf3Streams() []Param {
	return []Param{
		{"streams", 1, "parallel streams"},
		{"zerocopy", false, "send with sendfile (-Z): takes away work that real applications do"},
		{result.BandwidthParam, "0", "bit/s to send on every stream, such as 500M; 0 is as fast as it can"},
	}
}

// iperf3Schedule says how iperf3 runs to cover a window.
type iperf3Schedule struct {
	omit, run int    // s, for -O and -t
	interval  string // s, for -i
	window    iperf3Window
	// spare is how much longer than the window the load lasts, on a machine where
	// starting programs and marking the window is slow.
	spare time.Duration
}

// scheduleIperf3 covers the window with whole seconds, which is all that iperf3 takes. If
// warm-up and duration are whole seconds, iperf3 leaves the warm-up out itself (-O), and
// its summary is the result. Otherwise, and with time to spare, it runs until the next
// whole second, so that it need not be ended by a signal, and the result is the sum of its
// 0.1 s intervals in the window. There -O is not used, because the intervals around its
// reset are not contiguous.
func scheduleIperf3(warmup, duration, spare time.Duration) iperf3Schedule {
	whole := func(d time.Duration) bool { return d%time.Second == 0 }
	if spare == 0 && whole(warmup) && whole(duration) && duration > 0 && warmup <= iperf3MaxOmit*time.Second {
		return iperf3Schedule{
			omit: int(warmup / time.Second), run: int(duration / time.Second), interval: "1",
			window: iperf3Window{whole: true},
		}
	}
	end := warmup + duration
	return iperf3Schedule{
		spare: spare,
		run:   int(math.Ceil((end + spare).Seconds())), interval: strconv.FormatFloat(iperf3Interval, 'g', -1, 64),
		window: iperf3Window{from: warmup.Seconds(), to: end.Seconds()},
	}
}

// iperf3Result is the result of one pair of processes in the window.
type iperf3Result struct {
	sent, received iperf3Sum
}

// driveIperf3 runs the test with the protocol's own flags (for the client) and
// returns the result of every pair of processes.
func driveIperf3(ctx context.Context, s *Session, flags ...string) (results []iperf3Result, out Outcome, err error) {
	streams := s.Params.Int("streams")
	if streams < 1 || streams > iperf3MaxStreams {
		return nil, out, fmt.Errorf("%d streams; iperf3 takes 1 to %d", streams, iperf3MaxStreams)
	}
	flags = append(flags, "-b", s.Params.String(result.BandwidthParam))
	if s.Params.Bool("zerocopy") {
		flags = append(flags, "-Z")
	}
	version, took, err := iperf3AtBoth(ctx, s)
	if err != nil {
		return nil, out, err
	}
	pairs := 1
	switch {
	case streams > 1 && version.threaded():
		flags = append(flags, "-P", strconv.Itoa(streams))
	case streams > 1:
		pairs = streams
	}
	plan := scheduleIperf3(s.Warmup, s.Duration, iperf3Spare(took, pairs))
	if !plan.window.whole {
		out.Notes = append(out.Notes, result.Reason{Code: "interval_window", Text: fmt.Sprintf(
			"iperf3 takes whole seconds only: it ran for %d s, and the figures are the sum of its own %s s intervals between %.4g and %.4g s", plan.run, plan.interval, plan.window.from, plan.window.to)})
	}

	c := newProgramGroup(ctx, s)
	defer func() { err = errors.Join(err, c.stopAll()) }()
	servers, clients, err := c.iperf3(plan, pairs, flags)
	if err == nil {
		if pairs > 1 {
			out.Notes = append(out.Notes, processesNote(version.String(), clients))
		}
		err = c.iperf3Window(plan, clients, slices.Concat(clients, servers))
	}
	results, err = c.iperf3Results(plan, servers, clients, err)
	for _, r := range results {
		if covered := r.received.Seconds; covered < s.Duration.Seconds()/2 {
			out.Faults = append(out.Faults, result.Reason{Code: "short_window", Text: fmt.Sprintf(
				"iperf3's intervals cover %.3g of %.3g s", covered, s.Duration.Seconds())})
		}
	}
	return results, out, err
}

// processesNote says how the figures of streams in separate processes were added up.
func processesNote(version string, clients []*program) result.Reason {
	gap := clients[len(clients)-1].started.Sub(clients[0].started)
	return result.Reason{Code: "multi_stream_processes", Text: fmt.Sprintf(
		"iperf3 %s drives all streams from one thread, so each of the %d streams is a pair of processes of its own; their figures are summed, each over its own window; they started within %d ms of each other",
		version, len(clients), gap.Milliseconds()+1)}
}

// iperf3Window marks the window while the programs run and waits for their end. The
// window begins one warm-up after the start of the first client or, with time to spare,
// of the last client. A client begins to send some milliseconds after its process has
// started, and stops that much later, so the load lasts until the window is over.
func (c *programGroup) iperf3Window(plan iperf3Schedule, clients, programs []*program) error {
	start := clients[0].started
	if plan.spare > 0 {
		start = clients[len(clients)-1].started
	}
	if !measure(c.ctx, c.s, start, c.s.Warmup, c.s.Duration, plan.spare/2, programs...) {
		// The side that failed first explains the failure of the other, and may need a moment to end.
		_ = c.await(time.Now().Add(iperf3Grace), programs...)
		return errors.New("iperf3 ended before the window did")
	}
	left := time.Duration(plan.omit+plan.run)*time.Second - c.s.Warmup - c.s.Duration + plan.spare
	return c.await(time.Now().Add(left+iperf3Patience), programs...)
}

// iperf3 starts the pairs of processes, the servers first.
func (c *programGroup) iperf3(plan iperf3Schedule, pairs int, flags []string) (servers, clients []*program, err error) {
	ports, err := freePorts(c.ctx, c.s.Server, iperf3Port, pairs)
	if err != nil {
		return nil, nil, err
	}
	for i, port := range ports {
		p, err := c.start(c.s.Server, fmt.Sprintf("server %d", i+1), ".json", "iperf3", "-s", "-1",
			"-p", strconv.Itoa(port), "-B", c.s.Server.Addr().String(), "-i", plan.interval, "--json")
		if err != nil {
			return servers, clients, err
		}
		servers = append(servers, p)
	}
	if err := awaitListening(c.ctx, c.s.Server, servers, ports); err != nil {
		return servers, clients, err
	}
	for i, port := range ports {
		argv := []string{"iperf3", "-c", c.s.Target.String(), "-p", portText(c.s.at(uint16(port))), "-t", strconv.Itoa(plan.run),
			"-i", plan.interval, "--connect-timeout", strconv.Itoa(iperf3ConnectMs), "--json"}
		if plan.omit > 0 {
			argv = append(argv, "-O", strconv.Itoa(plan.omit))
		}
		p, err := c.start(c.s.Client, fmt.Sprintf("client %d", i+1), ".json", append(argv, flags...)...)
		if err != nil {
			return servers, clients, err
		}
		clients = append(clients, p)
	}
	return servers, clients, nil
}

// iperf3Results reads the reports of the processes. err is the error so far; the errors
// that the processes report explain it and replace it.
func (c *programGroup) iperf3Results(plan iperf3Schedule, servers, clients []*program, err error) ([]iperf3Result, error) {
	if c.ctx.Err() != nil {
		return nil, fmt.Errorf("iperf3: %w", c.ctx.Err())
	}
	var results []iperf3Result
	var failures []error
	// The server first: an error of its client may be a consequence.
	for _, p := range slices.Concat(servers, clients) {
		if p.ended() {
			if _, failed := readIperf3(p); failed != nil {
				failures = append(failures, failed)
			}
		}
	}
	if err != nil && len(failures) == 0 {
		failures = append(failures, err)
	}
	if len(failures) > 0 {
		return nil, errors.Join(failures...)
	}
	for i := range servers {
		w := plan.window
		if plan.spare > 0 { // every client counts time from its own start
			later := clients[len(clients)-1].started.Sub(clients[i].started).Seconds()
			w.from, w.to = w.from+later, w.to+later
		}
		r, err := pairIperf3(w, servers[i], clients[i])
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

func pairIperf3(w iperf3Window, server, client *program) (r iperf3Result, err error) {
	for _, side := range []struct {
		p    *program
		read func(*iperf3Report, iperf3Window) (iperf3Sum, error)
		into *iperf3Sum
	}{
		{server, (*iperf3Report).receivedSum, &r.received},
		{client, (*iperf3Report).sentSum, &r.sent},
	} {
		report, err := readIperf3(side.p)
		if err != nil {
			return r, err
		}
		if *side.into, err = side.read(report, w); err != nil {
			return r, fmt.Errorf("%s: %w", side.p.role, err)
		}
	}
	if r.received.Bytes <= 0 || r.received.Seconds <= 0 {
		return r, fmt.Errorf("%s received nothing in the window", server.role)
	}
	return r, nil
}

// readIperf3 returns the report of a process that has ended.
func readIperf3(p *program) (*iperf3Report, error) {
	report, err := parseIperf3(bytes.NewReader(p.stdout.Bytes()))
	var reported *iperf3Error
	if failed := p.failure(); failed != nil {
		if errors.As(err, &reported) {
			return nil, fmt.Errorf("%w: %w", failed, reported)
		}
		return nil, failed // the missing report is a consequence of this error
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", p.role, p.command, err)
	}
	return report, nil
}

// iperf3Version is major and minor.
type iperf3Version [2]int

// threaded says whether every stream has a thread.
func (v iperf3Version) threaded() bool { return v[0] > 3 || v[0] == 3 && v[1] >= iperf3Threads }

func (v iperf3Version) String() string { return fmt.Sprintf("%d.%d", v[0], v[1]) }

// iperf3AtBoth returns the older of the two sides' versions of iperf3, and how long
// `iperf3 --version` took on the quicker side.
func iperf3AtBoth(ctx context.Context, s *Session) (version iperf3Version, took time.Duration, err error) {
	version = iperf3Version{math.MaxInt, 0}
	for _, e := range []arena.Endpoint{s.Server, s.Client} {
		begin := time.Now()
		out, err := host.Output(ctx, e, host.Command{Argv: []string{"iperf3", "--version"}, OffMeasuredCPUs: true})
		if err != nil {
			return version, 0, fmt.Errorf("version of iperf3 at %s: %w", e.Name(), err)
		}
		if t := time.Since(begin); took == 0 || t < took {
			took = t
		}
		major, minor, err := parseIperf3Version(bytes.NewReader(out))
		if err != nil {
			return version, 0, fmt.Errorf("at %s: %w", e.Name(), err)
		}
		if v := (iperf3Version{major, minor}); v[0] < version[0] || v[0] == version[0] && v[1] < version[1] {
			version = v
		}
	}
	return version, took, nil
}

// iperf3Usual is less than iperf3 takes to start on an emulated CPU, and more than it takes
// on another.
var iperf3Usual = 80 * time.Millisecond // a busy machine's tests raise it

// iperf3Spare returns how much longer than its window a load of that many pairs of
// processes must last if starting a process takes took: 0 on a usual machine, seconds on
// an emulated CPU.
func iperf3Spare(took time.Duration, pairs int) time.Duration {
	const minimum, maximum = 2 * time.Second, 15 * time.Second
	if took < iperf3Usual {
		return 0
	}
	return min(max(minimum, 3*took*time.Duration(pairs+1)), maximum)
}

// goodput adds up the servers' received bit/s, each over its own time.
func goodput(results []iperf3Result) float64 {
	var sum float64
	for _, r := range results {
		sum += 8 * r.received.Bytes / r.received.Seconds
	}
	return sum
}
