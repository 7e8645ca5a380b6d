package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/load"
	"github.com/cnibench/cnibench/internal/result"
)

// engine is how a workload uses this program's loads: `cnibench load` at the
// client against a server of its own.
type engine struct {
	workload string // its name, for errors
	program  string // cnibench at the endpoints; "" is the running program
	port     uint16
	server   func(c *crew, self string, listen netip.AddrPort) (*program, error)
	ask      func(target netip.AddrPort) []string // what is asked of whom: the exchange and its target
	flags    []string                             // of `cnibench load`, besides how fast and for how long
	pace     []string                             // how fast, in slices
	reports  reports
}

// reports understands what a load reports.
type reports interface {
	slice(report json.RawMessage) (Slice, error)
	merge(slices []json.RawMessage) (Outcome, error)
}

// Parameters of every workload that uses the load engine, besides rate,
// connections and port, whose defaults differ.
var (
	arrivalsParam = Param{"arrivals", "constant", "with a rate: constant, or poisson for independent clients"}
	threadsParam  = Param{"threads", 1, "the client's sending threads; one can spin on a CPU of its own, two on the same disturb each other; 0: one bound to each CPU that only the client has, or 1"}
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

// What a capacity is: the highest constant rate whose 99th percentile stays
// below this, and how long each try takes.
const (
	capacityP99    = 10 * time.Millisecond
	capacityWarmup = 300 * time.Millisecond
	capacityWindow = 700 * time.Millisecond
)

// capacity has the load engine find the highest constant rate (1/s).
func (e engine) capacity(ctx context.Context, s *Session, brief bool) (float64, error) {
	l, err := e.start(ctx, s)
	if err != nil {
		return 0, err
	}
	find := l.search
	if brief {
		find = l.peak
	}
	rate, err := find()
	return rate, l.end(err)
}

// peak is the middle of what a few closed loops reach (1/s).
func (l *loader) peak() (float64, error) {
	var rates []float64
	for range 3 {
		text, err := l.probe("--closed")
		if err != nil {
			return 0, err
		}
		report, err := l.engine.reports.(requests).read(text)
		if err != nil {
			return 0, err
		}
		rates = append(rates, report.Rate)
	}
	slices.Sort(rates)
	if rates[1] <= 0 {
		return 0, errors.New("the closed loop had no answer; does the server run?")
	}
	return rates[1], nil
}

// start starts the server.
func (e engine) start(ctx context.Context, s *Session) (*loader, error) {
	self := e.program
	if self == "" {
		var err error
		if self, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("%s: this program: %w", e.workload, err)
		}
	}
	l := &loader{engine: e, ctx: ctx, crew: newCrew(ctx, s), self: self, target: s.at(e.port)}
	var err error
	if l.server, err = e.server(l.crew, self, netip.AddrPortFrom(s.Server.Addr(), e.port)); err != nil {
		return nil, l.end(err)
	}
	return l, nil
}

// loader runs a load at the client, against a server that runs.
type loader struct {
	engine engine
	ctx    context.Context
	crew   *crew
	self   string // cnibench at the client
	target netip.AddrPort
	server *program // nil: it did not start
}

// serverPatience is how long a server may take to its first answer.
const serverPatience = 5 * time.Second

// argv returns the load's command line; how says at which rate and for how long.
func (l *loader) argv(how ...string) []string {
	return slices.Concat([]string{l.self, "load"}, l.engine.ask(l.target), how, l.engine.flags, []string{"--wait", serverPatience.String()})
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

// end ends the server, and whatever else runs. It returns err, of the client, with
// what the server says, which explains what the client saw. Once the context has
// ended, its error is the cause and what its processes say, which were killed with
// it, is not.
func (l *loader) end(err error) error {
	if l.server != nil {
		err = errors.Join(l.crew.stop(l.server), err)
	}
	if err != nil && l.ctx.Err() != nil {
		err = fmt.Errorf("ended before the load had: %w", l.ctx.Err())
	}
	if err = errors.Join(err, l.crew.dismiss()); err != nil {
		err = fmt.Errorf("%s: %w", l.engine.workload, err)
	}
	return err
}

// probe has the client run a short load without slices, and returns its report.
func (l *loader) probe(how ...string) (json.RawMessage, error) {
	how = append(how, "--warmup", capacityWarmup.String(), "--duration", capacityWindow.String(), "--json")
	client, err := l.crew.start(l.crew.s.Client, "capacity", ".json", l.argv(how...)...)
	if err != nil {
		return nil, err
	}
	l.lead(client)
	return client.stdout.Bytes(), client.failure()
}

// search has the client search the highest rate.
func (l *loader) search() (float64, error) {
	text, err := l.probe("--find-max", "--p99", capacityP99.String())
	if err != nil {
		return 0, err
	}
	var found struct {
		MaxRate float64 `json:"max_rate"`
	}
	if err := json.Unmarshal(text, &found); err != nil {
		return 0, fmt.Errorf("output of the load: %w", err)
	}
	if found.MaxRate <= 0 {
		return 0, errors.New("no rate was sustained; is the machine busy?")
	}
	return found.MaxRate, nil
}

// requestFlags are the flags of `cnibench load` that every workload of requests has.
func requestFlags(s *Session) []string {
	threads, cpus := s.spread("threads", s.Client, s.Server)
	flags := []string{"--connections", strconv.Itoa(s.Params.Int("connections")), "--threads", strconv.Itoa(threads)}
	if cpus != nil {
		flags = append(flags, "--cpus", joined(cpus))
	}
	return flags
}

// spread is how many threads or processes that parameter asks for at an endpoint, and
// the CPUs that they are bound to; nil where they are not.
func (s *Session) spread(param string, here, there arena.Endpoint) (n int, cpus []int) {
	if n = s.Params.Int(param); n > 0 {
		return n, nil
	}
	others := there.CPUs()
	for _, cpu := range here.CPUs() {
		if !slices.Contains(others, cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return max(1, len(cpus)), cpus
}

func joined(cpus []int) string {
	var texts []string
	for _, cpu := range cpus {
		texts = append(texts, strconv.Itoa(cpu))
	}
	return strings.Join(texts, ",")
}

// paceOf is the rate of the session's parameters.
func paceOf(p Params) []string {
	rate := p.Float("rate")
	if rate <= 0 {
		return []string{"--closed"}
	}
	return []string{"--rate", strconv.FormatFloat(rate, 'f', -1, 64), "--arrivals", p.String("arrivals")}
}

// requests understands the load engine's reports.
type requests struct {
	responseBytes int64 // of a whole response
	overload      bool  // a rate that is not reached is a result
}

func (r requests) read(text json.RawMessage) (*load.Report, error) {
	report := &load.Report{}
	if err := json.Unmarshal(text, report); err != nil {
		return nil, fmt.Errorf("output of the load: %w", err)
	}
	if report.Schema != load.ReportSchema {
		return nil, fmt.Errorf("output of the load: a report of schema %q, want %s", report.Schema, load.ReportSchema)
	}
	if report.ResponseBytes != r.responseBytes {
		return nil, fmt.Errorf("the responses have %d bytes instead of %d: not the server that was started answers", report.ResponseBytes, r.responseBytes)
	}
	return report, nil
}

func (r requests) slice(text json.RawMessage) (Slice, error) {
	report, err := r.read(text)
	if err != nil {
		return Slice{}, err
	}
	out, err := r.outcome(report)
	return Slice{Elapsed: time.Duration(report.Duration * 1e9), Metrics: out.Metrics, Faults: out.Faults}, err
}

func (r requests) merge(slices []json.RawMessage) (Outcome, error) {
	var all []*load.Report
	for _, text := range slices {
		report, err := r.read(text)
		if err != nil {
			return Outcome{}, err
		}
		all = append(all, report)
	}
	merged, err := load.Merge(all)
	if err != nil {
		return Outcome{}, err
	}
	return r.outcome(merged)
}

// outcome is what a report says in the words of a sample.
func (q requests) outcome(r *load.Report) (Outcome, error) {
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
		case limit.Code == rateShort && q.overload:
			out.Notes = append(out.Notes, reason)
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
	if r.Reopened > 0 {
		note("connections_reopened", "%d connections were made again between two slices: they were lost, or had no answer", r.Reopened)
	}
	if r.GeneratorSpin > 0.01 {
		// Without figures, so that a report shows it once.
		note("load_generator_spins", "the load generator waits for the next send by spinning; generator_spin in client.json says how much CPU time that took")
	}
	return out, nil
}

// rateShort is the limit of a load of which less came back than was asked for.
const rateShort = "rate_short"

// spoils says whether a limit of the load makes its figures those of another one
// than was asked for. That something took the CPU for a while is judged for the
// whole sample, by the recordings.
func spoils(code string) bool { return code == rateShort || code == "request_errors" }

// spoilsClocks says whether a limit of the load leaves the load generator's own delay in
// the clocks that include it. The load was as asked, so that its other figures hold:
// network_time, the rate and the CPU time. In a closed loop a client that is busy
// all the time is part of what is measured, as it is of netperf.
func spoilsClocks(code string, open bool) bool {
	return code == "load_generator_late" || code == "load_generator_saturated" && open
}
