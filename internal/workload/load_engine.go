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
	"github.com/cnibench/cnibench/internal/unit"
)

// engine says how a workload runs `cnibench load` at the client against a server of its
// own.
type engine struct {
	workload string // its name, for errors
	program  string // cnibench at the endpoints; "" is the running program
	port     uint16
	server   func(c *programGroup, self string, listen netip.AddrPort) (*program, error)
	exchange func(target netip.AddrPort) []string // arguments of `cnibench load`: the exchange and its target
	flags    []string                             // of `cnibench load`, without rate and duration
	pace     []string                             // flags for the rate of slices
	reports  reports
}

// withEngine does something with the engine that load makes for the session.
func withEngine[T any](ctx context.Context, s *Session, load func(*Session) (engine, error), do func(engine, context.Context, *Session) (T, error)) (T, error) {
	l, err := load(s)
	if err != nil {
		var none T
		return none, err
	}
	return do(l, ctx, s)
}

// reports reads the reports of a load.
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

// A capacity is the highest constant rate whose 99th percentile of latency is at most
// capacityP99. Each try of a search has a warm-up and a window, and so has a closed loop.
const (
	capacityP99    = 10 * time.Millisecond
	capacityWarmup = 300 * time.Millisecond
	capacityWindow = 700 * time.Millisecond
	capacitySearch = 45 * time.Second // some forty tries
	peakWarmup     = 100 * time.Millisecond
	peakWindow     = 400 * time.Millisecond
)

// capacity has the load engine find the highest constant rate (1/s).
func (e engine) capacity(ctx context.Context, s *Session) (float64, error) {
	l, err := e.start(ctx, s)
	if err != nil {
		return 0, err
	}
	rate, err := l.search()
	return rate, l.end(err)
}

// peak has the load engine take one short closed loop, and returns its rate (1/s).
func (e engine) peak(ctx context.Context, s *Session) (float64, error) {
	l, err := e.start(ctx, s)
	if err != nil {
		return 0, err
	}
	report := &load.Report{}
	text, err := l.probe(peakWarmup, peakWindow, "--closed")
	if err == nil {
		report, err = e.reports.(requests).read(text)
	}
	if err = l.end(err); err != nil {
		return 0, err
	}
	return report.Rate, nil
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
	l := &loader{engine: e, ctx: ctx, programs: newProgramGroup(ctx, s), self: self, target: s.at(e.port)}
	var err error
	if l.server, err = e.server(l.programs, self, netip.AddrPortFrom(s.Server.Addr(), e.port)); err != nil {
		return nil, l.end(err)
	}
	return l, nil
}

// loader runs a load at the client, against a server that runs.
type loader struct {
	engine   engine
	ctx      context.Context
	programs *programGroup
	self     string // cnibench at the client
	target   netip.AddrPort
	server   *program // nil if it did not start
}

// serverPatience is how long a server may take until its first response.
const serverPatience = 5 * time.Second

// argv returns the load's command line. flags say at which rate and for how long.
func (l *loader) argv(flags ...string) []string {
	return slices.Concat([]string{l.self, "load"}, l.engine.exchange(l.target), flags, l.engine.flags, []string{"--wait", serverPatience.String()})
}

// awaitClient waits until the client has ended. If the server ends before, awaitClient
// ends the client, too.
func (l *loader) awaitClient(client *program) {
	select {
	case <-client.exited:
	case <-l.server.exited:
		client.kill()
		<-client.exited
	}
}

// end ends the server and all other programs. It returns err, the client's error, together
// with the server's, which may be its cause. If the context has ended, its error is the
// cause: it killed the programs, and their own errors are consequences.
func (l *loader) end(err error) error {
	if l.server != nil {
		err = errors.Join(l.programs.stop(l.server), err)
	}
	if err != nil && l.ctx.Err() != nil {
		err = fmt.Errorf("ended before the load had: %w", l.ctx.Err())
	}
	if err = errors.Join(err, l.programs.stopAll()); err != nil {
		err = fmt.Errorf("%s: %w", l.engine.workload, err)
	}
	return err
}

// probe has the client run a short load without slices, and returns its report.
func (l *loader) probe(warmup, window time.Duration, flags ...string) (json.RawMessage, error) {
	flags = append(flags, "--warmup", warmup.String(), "--duration", window.String(), "--json")
	client, err := l.programs.start(l.programs.s.Client, "capacity", ".json", l.argv(flags...)...)
	if err != nil {
		return nil, err
	}
	l.awaitClient(client)
	return client.stdout.Bytes(), client.failure()
}

// search has the client search for the highest rate.
func (l *loader) search() (float64, error) {
	text, err := l.probe(capacityWarmup, capacityWindow, "--find-max", "--p99", capacityP99.String())
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
		return 0, errors.New("no rate was sustained; is the machine busy? stop other work, or give a rate per second instead of a share")
	}
	return found.MaxRate, nil
}

// requestFlags returns the flags of `cnibench load` that all workloads with requests have.
func requestFlags(s *Session) []string {
	threads, cpus := s.spread("threads", s.Client, s.Server)
	flags := []string{"--connections", strconv.Itoa(s.Params.Int("connections")), "--threads", strconv.Itoa(threads)}
	if cpus != nil {
		flags = append(flags, "--cpus", joinCPUs(cpus))
	}
	return flags
}

// spread returns how many threads or processes the parameter asks for at endpoint e, and
// the CPUs to which they are bound; nil if they are not bound.
func (s *Session) spread(param string, e, peer arena.Endpoint) (n int, cpus []int) {
	if n = s.Params.Int(param); n > 0 {
		return n, nil
	}
	peers := peer.CPUs()
	for _, cpu := range e.CPUs() {
		if !slices.Contains(peers, cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return max(1, len(cpus)), cpus
}

func joinCPUs(cpus []int) string {
	var texts []string
	for _, cpu := range cpus {
		texts = append(texts, strconv.Itoa(cpu))
	}
	return strings.Join(texts, ",")
}

// paceOf returns the flags for the rate that the parameters ask for.
func paceOf(p Params) []string {
	rate := p.Float("rate")
	if rate <= 0 {
		return []string{"--closed"}
	}
	return []string{"--rate", strconv.FormatFloat(rate, 'f', -1, 64), "--arrivals", p.String("arrivals")}
}

// requests reads the load engine's reports.
type requests struct {
	responseBytes int64 // of a whole response
	overload      bool  // a rate that is not reached is a result, not a fault
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
		return nil, fmt.Errorf("the responses have %d bytes instead of %d, so another server than the one that was started answers; is its port in use?", report.ResponseBytes, r.responseBytes)
	}
	return report, nil
}

func (r requests) slice(text json.RawMessage) (Slice, error) {
	report, err := r.read(text)
	if err != nil {
		return Slice{}, err
	}
	out, err := r.outcome(report)
	return Slice{Elapsed: unit.Seconds(report.Duration).Duration(), Metrics: out.Metrics, Faults: out.Faults}, err
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

// outcome returns a report as the Outcome of a sample.
func (q requests) outcome(r *load.Report) (Outcome, error) {
	histograms, err := r.Decode()
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
			out.ClockFaults = append(out.ClockFaults, reason)
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

// rateShort is the code of the limit that fewer requests were answered than planned.
const rateShort = "rate_short"

// spoils says whether a limit makes the load another load than was asked for, so that its
// figures do not count. Limits about the CPU are not among these: the recordings judge
// them for the whole sample.
func spoils(code string) bool { return code == rateShort || code == "request_errors" }

// spoilsClocks says whether a limit means that the load generator's own delay is in the
// clocks that can contain it. The load itself was as asked for, so that the other figures
// hold: network_time, the rate and the CPU time. In a closed loop, a client that is busy
// all the time is part of the measurement, as with netperf.
func spoilsClocks(code string, open bool) bool {
	return code == "load_generator_late" || code == "load_generator_saturated" && open
}
