package workload

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/load"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/serve"
	"github.com/cnibench/cnibench/internal/unit"
)

// HTTPRate sends HTTP requests at a constant rate, as the 2016 study did:
// the load engine at the client, nginx at the server.
type HTTPRate struct {
	// Program is cnibench at the endpoints; "" is the running program.
	Program string
}

// The limits from which on the load generator, not the network, was measured.
const (
	mostLate         = 0.01 // share of the sends
	mostGeneratorCPU = 0.95 // of the one CPU that a sending thread can use
	mostErrors       = 0.01 // share of the requests; their latency is only known to be at least their age
	leastAnswered    = 0.99 // share of the plan; with less, the latencies are those of a smaller load
)

// Info implements Workload.
func (HTTPRate) Info() Info {
	info := Info{
		Name:    "http_rate",
		Summary: "HTTP/1.1 requests at a constant rate over open connections; latency from the planned send",
		Params: []Param{
			{"rate", 10000.0, "requests per second, or a share of the highest sustained rate such as 30%; " +
				"choose no multiple of the kernel's HZ (100, 250, 1000): CPU accounting by ticks would look at the same moment of every period"},
			{"connections", 64, "connections that are kept open"},
			{"response", "350B", fmt.Sprintf("size of a whole response, %d bytes of it header: 350B has 100 B of content, 4KiB has 3846", serve.HeaderBytes)},
			{"workers", 1, "nginx's worker processes"},
			{"port", 8080, "TCP port of the server"},
			{"server", "nginx", "nginx, or cnibench for its own, which can stall"},
			{"stall", "", "with server: cnibench, how long all responses are held, e.g. 200ms"},
			{"every", "2s", "from the start of one stall to the next"},
		},
		Metrics:  []string{"rate"},
		Programs: []host.Program{{Name: "nginx", Package: "nginx-light"}},
	}
	for _, m := range result.Metrics() {
		if result.IsLatency(m.Name) {
			info.Metrics = append(info.Metrics, m.Name)
		}
	}
	return info
}

// Drive implements Workload.
func (h HTTPRate) Drive(ctx context.Context, s *Session) (Outcome, error) {
	var out Outcome
	err := h.serve(ctx, s, func(l *loader) error {
		report, err := l.run("client", loadFlags{
			rate: s.Params.Float("rate"), warmup: s.Warmup, duration: s.Duration, begin: s.Begin, end: s.End,
		})
		if report != nil {
			var decodeErr error
			out, decodeErr = httpOutcome(report)
			err = errors.Join(err, decodeErr)
		}
		return err
	})
	return out, err
}

// Capacity implements Calibrated: the closed loop's rate bounds what can be,
// and a bisection below it finds the highest constant rate at which 99 % of
// the sends are on time and 99 % of the rate is achieved.
func (h HTTPRate) Capacity(ctx context.Context, s *Session) (float64, error) {
	const probes, window, warmup = 4, 700 * time.Millisecond, 300 * time.Millisecond
	best := 0.0
	err := h.serve(ctx, s, func(l *loader) error {
		closed, err := l.run("capacity closed", loadFlags{warmup: warmup, duration: time.Second})
		if err != nil {
			return err
		}
		low, high := 0.0, closed.Rate
		for probe := 1; probe <= probes; probe++ {
			rate := (low + high) / 2
			if probe == 1 {
				rate = 0.9 * high // near the answer when nothing disturbs
			}
			report, err := l.run(fmt.Sprintf("capacity %d", probe), loadFlags{rate: rate, warmup: warmup, duration: window})
			if err != nil {
				return err
			}
			if sustained(report) {
				low, best = rate, rate
			} else {
				high = rate
			}
		}
		if best == 0 {
			return fmt.Errorf("no rate down to %v was sustained, of the %v that a closed loop reached; is the machine busy?",
				unit.PerSecond(high), unit.PerSecond(closed.Rate))
		}
		return nil
	})
	return best, err
}

func sustained(r *load.Report) bool {
	return r.LateFraction+r.QueuedShare <= mostLate && r.Rate >= 0.99*r.AskedRate && r.ErrorCount() == 0
}

// serve runs use while the server runs. Once ctx has ended, its error is the
// cause and what its processes say, which were killed with it, is not.
func (h HTTPRate) serve(ctx context.Context, s *Session, use func(*loader) error) (err error) {
	size, err := unit.ParseBytes(s.Params.String("response"))
	if err != nil {
		return fmt.Errorf("http_rate: response: %w", err)
	}
	self := h.Program
	if self == "" {
		if self, err = os.Executable(); err != nil {
			return fmt.Errorf("http_rate: this program: %w", err)
		}
	}
	port := uint16(s.Params.Int("port"))
	c := newCrew(ctx, s)
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("ended before the load had: %w", ctx.Err())
		}
		if err = errors.Join(err, c.dismiss()); err != nil {
			err = fmt.Errorf("http_rate: %w", err)
		}
	}()
	server, err := c.httpServer(self, netip.AddrPortFrom(s.Server.Addr(), port), int(size))
	if err != nil {
		return err
	}
	err = use(&loader{crew: c, self: self, target: netip.AddrPortFrom(s.Target, port), size: int64(size), server: server})
	// What the server says explains what the client saw.
	return errors.Join(c.stop(server), err)
}

// loader runs the load engine at the client, against a server that runs.
type loader struct {
	crew   *crew
	self   string // cnibench at the client
	target netip.AddrPort
	size   int64
	server *program
}

// loadFlags are what differs from one load to the next.
type loadFlags struct {
	rate             float64 // 0: closed loop
	warmup, duration time.Duration
	begin, end       func() // called when the window begins and ends, if any
}

// serverPatience is how long a server may take to its first answer.
const serverPatience = 5 * time.Second

func (l *loader) argv(f loadFlags) []string {
	how := []string{"--closed"}
	if f.rate > 0 {
		how = []string{"--rate", strconv.FormatFloat(f.rate, 'f', -1, 64)}
	}
	return append([]string{l.self, "load", "http", "http://" + l.target.String() + "/"}, append(how,
		"--connections", strconv.Itoa(l.crew.s.Params.Int("connections")),
		"--warmup", f.warmup.String(), "--duration", f.duration.String(), "--wait", serverPatience.String(), "--json", "--events")...)
}

// run runs one load, whose raw files are named after role. The report is there
// even with an error, when the load came that far.
func (l *loader) run(role string, f loadFlags) (*load.Report, error) {
	out, in := io.Pipe()
	client, err := l.crew.startTo(in, l.crew.s.Client, role, ".json", l.argv(f)...)
	if err != nil {
		return nil, err
	}
	go func() {
		select {
		case <-client.exited:
		case <-l.server.exited: // nothing is to be learned from a client without a server
			l.crew.kill()
			<-client.exited
		}
		_ = in.Close() // never fails
	}()
	report, err := readLoad(out, f.begin, f.end)
	// After a line that is none, the rest still has to be taken.
	_, _ = io.Copy(io.Discard, out)
	if failed := client.failure(); failed != nil {
		err = failed // that its report is missing is the consequence
	}
	if err != nil {
		return report, err
	}
	if report.ResponseBytes != l.size {
		return report, fmt.Errorf("the responses have %d bytes instead of %d: not the server that was started answers", report.ResponseBytes, l.size)
	}
	return report, nil
}

// maxLoadLine is the longest line that `cnibench load` prints: a report with
// four full histograms.
const maxLoadLine = 16 << 20

// readLoad reads what `cnibench load --events` prints, and calls begin and
// end as their events come. A begin without an end gets its end when the
// output ends.
func readLoad(r io.Reader, begin, end func()) (*load.Report, error) {
	call := func(f func()) {
		if f != nil {
			f()
		}
	}
	began, ended := false, false
	defer func() {
		if began && !ended {
			call(end)
		}
	}()
	var report *load.Report
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLoadLine)
	for lines.Scan() {
		var event struct{ Event, Schema string }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return report, fmt.Errorf("output of the load: %w", err)
		}
		switch {
		case event.Event == "begin" && !began:
			began = true
			call(begin)
		case event.Event == "end" && began && !ended:
			ended = true
			call(end)
		case event.Schema == load.ReportSchema && report == nil:
			report = &load.Report{}
			if err := json.Unmarshal(lines.Bytes(), report); err != nil {
				return nil, fmt.Errorf("output of the load: %w", err)
			}
		default:
			return report, fmt.Errorf("output of the load: unexpected line %.80q", lines.Text())
		}
	}
	if err := lines.Err(); err != nil {
		return report, fmt.Errorf("output of the load: %w", err)
	}
	if report == nil {
		return nil, errors.New("output of the load: it ended without a result")
	}
	return report, nil
}

// httpOutcome is what a report says in the words of a sample.
func httpOutcome(r *load.Report) (Outcome, error) {
	histograms, err := r.Decoded()
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Metrics: map[string]float64{"rate": r.Rate}, Histograms: histograms, ClientSpin: r.GeneratorSpin}
	maps.Copy(out.Metrics, r.Times)
	fault := func(code, format string, args ...any) {
		out.Faults = append(out.Faults, result.Reason{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	note := func(code, format string, args ...any) {
		out.Notes = append(out.Notes, result.Reason{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	if r.LateFraction > mostLate {
		fault("load_generator_late", "%.1f %% of the requests were sent more than %v late by the load generator itself", 100*r.LateFraction, load.LateAfter)
	}
	if r.GeneratorCPU > mostGeneratorCPU {
		fault("load_generator_saturated", "the load generator's thread was busy for %.0f %% of the time", 100*r.GeneratorCPU)
	}
	// Not by the rate, which counts what was answered within the window: a
	// stall at its end moves answers into the drain and belongs to the result.
	if float64(r.Requests) < leastAnswered*float64(r.Planned) {
		fault("rate_short", "%d of the %d requests planned in the window were answered (%.1f %%); %d had no answer even a while after it",
			r.Requests, r.Planned, 100*float64(r.Requests)/float64(r.Planned), r.Missed)
	}
	if n := r.ErrorCount(); n > 0 {
		say := note
		if float64(n) > mostErrors*float64(r.Sent) {
			say = fault
		}
		say("request_errors", "%d of %d requests failed (%v)", n, r.Sent, r.Errors)
	}
	if r.Missed > 0 {
		note("requests_missed", "%d requests had no answer at the end; they count with their age", r.Missed)
	}
	if r.GeneratorSpin > 0.01 {
		// Without figures, so that a report shows it once.
		note("load_generator_spins", "the load generator waits for the next send by spinning; generator_spin in client.json says how much CPU time that took")
	}
	return out, nil
}
