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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/load"
	"github.com/cnibench/cnibench/internal/result"
)

// engine is how a workload uses the load engine: `cnibench load` at the client
// against a server of its own.
type engine struct {
	workload      string // its name, for errors
	program       string // cnibench at the endpoints; "" is the running program
	server        func(c *crew, self string, listen netip.AddrPort) (*program, error)
	ask           func(target netip.AddrPort) []string // what is asked of whom: the exchange and its target
	flags         []string                             // of `cnibench load`, the workload's own
	responseBytes int64                                // of a whole response
}

// Parameters of every workload that uses the load engine, besides rate,
// connections and port, whose defaults differ.
var (
	arrivalsParam = Param{"arrivals", "constant", "with a rate: constant, or poisson for independent clients"}
	threadsParam  = Param{"threads", 1, "the client's sending threads; one can spin on a CPU of its own, two on the same disturb each other"}
)

// loadMetrics returns the rate and all figures of the clocks.
func loadMetrics(clocks ...string) []string {
	names := []string{result.Rate}
	for _, m := range result.Metrics() {
		if result.IsLatency(m.Name) && slices.ContainsFunc(clocks, func(c string) bool { return strings.HasPrefix(m.Name, c+"_") }) {
			names = append(names, m.Name)
		}
	}
	return names
}

// drive runs the load that the session's parameters ask for.
func (e engine) drive(ctx context.Context, s *Session) (Outcome, error) {
	var out Outcome
	err := e.serve(ctx, s, func(l *loader) error {
		report, err := l.run()
		if report != nil {
			var decodeErr error
			out, decodeErr = outcome(report)
			err = errors.Join(err, decodeErr)
		}
		return err
	})
	return out, err
}

// What a capacity is: the highest constant rate whose 99th percentile stays
// below this, and how long each try takes.
const (
	capacityP99    = 10 * time.Millisecond
	capacityWarmup = 300 * time.Millisecond
	capacityWindow = 700 * time.Millisecond
)

// capacity has the load engine search the highest constant rate (1/s).
func (e engine) capacity(ctx context.Context, s *Session) (float64, error) {
	var found struct {
		MaxRate float64 `json:"max_rate"`
	}
	err := e.serve(ctx, s, func(l *loader) error {
		client, err := l.crew.start(s.Client, "capacity", ".json", l.argv([]string{"--find-max", "--p99", capacityP99.String()}, capacityWarmup, capacityWindow)...)
		if err != nil {
			return err
		}
		l.lead(client)
		if err := client.failure(); err != nil {
			return err
		}
		if err := json.Unmarshal(client.stdout.Bytes(), &found); err != nil {
			return fmt.Errorf("output of the load: %w", err)
		}
		if found.MaxRate <= 0 {
			return errors.New("no rate was sustained; is the machine busy?")
		}
		return nil
	})
	return found.MaxRate, err
}

// serve runs use while the server runs. Once ctx has ended, its error is the
// cause and what its processes say, which were killed with it, is not.
func (e engine) serve(ctx context.Context, s *Session, use func(*loader) error) (err error) {
	self := e.program
	if self == "" {
		if self, err = os.Executable(); err != nil {
			return fmt.Errorf("%s: this program: %w", e.workload, err)
		}
	}
	port := uint16(s.Params.Int("port"))
	c := newCrew(ctx, s)
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("ended before the load had: %w", ctx.Err())
		}
		if err = errors.Join(err, c.dismiss()); err != nil {
			err = fmt.Errorf("%s: %w", e.workload, err)
		}
	}()
	server, err := e.server(c, self, netip.AddrPortFrom(s.Server.Addr(), port))
	if err != nil {
		return err
	}
	err = use(&loader{engine: e, crew: c, self: self, target: s.at(port), server: server})
	// What the server says explains what the client saw.
	return errors.Join(c.stop(server), err)
}

// loader runs the load engine at the client, against a server that runs.
type loader struct {
	engine engine
	crew   *crew
	self   string // cnibench at the client
	target netip.AddrPort
	server *program
}

// serverPatience is how long a server may take to its first answer.
const serverPatience = 5 * time.Second

// argv returns the load's command line; how says at which rate.
func (l *loader) argv(how []string, warmup, duration time.Duration) []string {
	p := l.crew.s.Params
	return slices.Concat([]string{l.self, "load"}, l.engine.ask(l.target), how, l.engine.flags, []string{
		"--connections", strconv.Itoa(p.Int("connections")), "--threads", strconv.Itoa(p.Int("threads")),
		"--warmup", warmup.String(), "--duration", duration.String(), "--wait", serverPatience.String(), "--json"})
}

// lead waits until the client has ended. When the server ends before, the
// client is ended: nothing is to be learned from one without a server.
func (l *loader) lead(client *program) {
	select {
	case <-client.exited:
	case <-l.server.exited:
		l.crew.kill()
		<-client.exited
	}
}

// run runs the load that the session's parameters ask for. The report is there
// even with an error, when the load came that far.
func (l *loader) run() (*load.Report, error) {
	s := l.crew.s
	how := []string{"--closed"}
	if rate := s.Params.Float("rate"); rate > 0 {
		how = []string{"--rate", strconv.FormatFloat(rate, 'f', -1, 64), "--arrivals", s.Params.String("arrivals")}
	}
	out, in := io.Pipe()
	client, err := l.crew.startTo(in, s.Client, "client", ".json", append(l.argv(how, s.Warmup, s.Duration), "--events")...)
	if err != nil {
		return nil, err
	}
	go func() {
		l.lead(client)
		_ = in.Close() // never fails
	}()
	report, err := ReadLoad(out, s.Begin, s.End)
	// After a line that is none, the rest still has to be taken.
	_, _ = io.Copy(io.Discard, out)
	if failed := client.failure(); failed != nil {
		err = failed // that its report is missing is the consequence
	}
	if err != nil {
		return report, err
	}
	if report.ResponseBytes != l.engine.responseBytes {
		return report, fmt.Errorf("the responses have %d bytes instead of %d: not the server that was started answers", report.ResponseBytes, l.engine.responseBytes)
	}
	return report, nil
}

// maxLoadLine is the longest line that `cnibench load` prints: a report with
// full histograms.
const maxLoadLine = 16 << 20

// ReadLoad reads what `cnibench load --events` prints, and calls begin and
// end as their events come. A begin without an end gets its end when the
// output ends.
func ReadLoad(r io.Reader, begin, end func()) (*load.Report, error) {
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

// outcome is what a report says in the words of a sample.
func outcome(r *load.Report) (Outcome, error) {
	histograms, err := r.Decoded()
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Metrics: map[string]float64{result.Rate: r.Rate}, Histograms: histograms, ClientSpin: r.GeneratorSpin}
	maps.Copy(out.Metrics, r.Times)
	note := func(code, format string, args ...any) {
		out.Notes = append(out.Notes, result.Reason{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	for _, limit := range r.Limits {
		switch reason := (result.Reason{Code: limit.Code, Text: limit.Text}); {
		case spoils(limit.Code):
			out.Faults = append(out.Faults, reason)
		case spoilsClocks(limit.Code, r.AskedRate > 0):
			out.Spoiled = append(out.Spoiled, reason)
		default:
			out.Notes = append(out.Notes, reason)
		}
	}
	limited := func(l load.Limit) bool { return l.Code == "request_errors" }
	if n := r.ErrorCount(); n > 0 && !slices.ContainsFunc(r.Limits, limited) {
		note("request_errors", "%d of %d requests failed (%v)", n, r.Sent, r.Errors)
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

// spoils says whether a limit of the load makes its figures those of another one
// than was asked for. That something took the CPU for a while is judged for the
// whole sample, by the recordings.
func spoils(code string) bool { return code == "rate_short" || code == "request_errors" }

// spoilsClocks says whether a limit of the load leaves the load generator's own delay in
// the clocks that include it. The load was as asked, so that its other figures hold:
// network_time, the rate and the CPU time. In a closed loop a client that is busy
// all the time is part of what is measured, as it is of netperf.
func spoilsClocks(code string, open bool) bool {
	return code == "load_generator_late" || code == "load_generator_saturated" && open
}
