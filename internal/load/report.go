package load

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/result"
)

// ReportSchema names the JSON object that a Report is written as.
const ReportSchema = "cnibench/load/1"

// Report is a Result as `cnibench load --json` prints it: one flat object
// whose times are seconds and whose keys are result's metric names.
type Report struct {
	Schema           string         `json:"schema"`
	Target           string         `json:"target"`
	Rate             float64        `json:"rate"`       // achieved, 1/s
	AskedRate        float64        `json:"asked_rate"` // 0: closed loop
	Connections      int            `json:"connections"`
	Duration         float64        `json:"duration"` // of the window, s
	Interrupted      bool           `json:"interrupted"`
	Planned          int64          `json:"planned"` // 0: closed loop
	Sent             int64          `json:"sent"`
	Requests         int64          `json:"requests"`
	Missed           int64          `json:"missed"`
	Late             int64          `json:"late"`
	LateFraction     float64        `json:"late_fraction"`
	Queued           int64          `json:"queued"`
	QueuedShare      float64        `json:"queued_fraction"`
	Errors           map[Kind]int64 `json:"errors"`                      // of requests: planned = requests + missed + errors
	ConnectionErrors map[Kind]int64 `json:"connection_errors,omitempty"` // of connections that had no request
	Reopened         int64          `json:"reopened,omitempty"`          // connections opened again between slices
	// Unstamped are requests without a network time, by reason.
	Unstamped     map[Unstamped]int64 `json:"unstamped,omitempty"`
	ResponseBytes int64               `json:"response_bytes"`
	GeneratorCPU  float64             `json:"generator_cpu"`
	GeneratorSpin float64             `json:"generator_spin"`

	Exchange         string   `json:"exchange"` // http, tcp-rr, tcp-crr or udp-rr
	Arrivals         string   `json:"arrivals"` // constant, poisson, or closed
	Threads          int      `json:"threads"`
	GeneratorBusiest float64  `json:"generator_busiest"` // the busiest thread's part of generator_cpu
	GeneratorWait    float64  `json:"generator_wait"`    // s/s that a thread waited for a CPU
	Steal            float64  `json:"steal"`             // share of the sending CPUs' time, 0 to 1
	Limits           []Limit  `json:"limits"`
	Seconds          []Second `json:"seconds"`

	Steps []StepReport `json:"steps,omitempty"`
	// MaxRate is what FindMax found: the highest rate (1/s) within the bound.
	MaxRate  float64 `json:"max_rate,omitempty"`
	P99Bound float64 `json:"p99_bound,omitempty"` // s
	Probes   []Probe `json:"probes,omitempty"`

	// Times are latency_p50, service_time_mean and so on, in seconds.
	Times map[string]float64 `json:"-"`
	// Histograms are HdrHistograms of nanoseconds by clock, V2 compressed
	// encoding in base64.
	Histograms map[string]string `json:"histograms,omitempty"`
}

// Times returns the mean, the percentiles and the maximum of a histogram of
// nanoseconds, in seconds, by the metric names of its clock. A percentile with
// fewer than ten values beyond it is left out.
func Times(clock string, h *hdrhistogram.Histogram) map[string]float64 {
	n := h.TotalCount()
	if n == 0 {
		return nil
	}
	m := map[string]float64{
		clock + "_mean": h.Mean() / 1e9,
		clock + "_max":  float64(h.Max()) / 1e9,
	}
	for _, p := range result.Percentiles {
		if result.EnoughFor(p.Value, n) {
			m[clock+"_"+p.Name] = float64(h.ValueAtPercentile(p.Value)) / 1e9
		}
	}
	return m
}

// Report returns the result in the form for printing, with or without histograms.
func (r *Result) Report(cfg Config, target string, histograms bool) (*Report, error) {
	rep := &Report{
		Schema: ReportSchema, Target: target, AskedRate: cfg.AskedRate(), Connections: cfg.Connections,
		Exchange: cfg.Exchange.Name(), Arrivals: cfg.arrivals(),
	}
	if r.Interrupted && r.Planned > 0 && (cfg.Ramp > 0 || len(cfg.Steps) > 0) { // an interrupted ramp or ladder ran only its first part
		rep.AskedRate = perSecond(r.Planned, r.Elapsed)
	}
	for i := range r.Steps {
		if lasted := min(cfg.Duration, r.Elapsed-time.Duration(i)*cfg.Duration); lasted > 0 {
			rep.Steps = append(rep.Steps, r.Steps[i].report(lasted))
		}
	}
	return rep, rep.fill(r, histograms)
}

// fill sets every figure of rep from r.
func (rep *Report) fill(r *Result, histograms bool) error {
	rep.Rate, rep.Duration, rep.Interrupted, rep.ResponseBytes = r.Rate(), r.Elapsed.Seconds(), r.Interrupted, r.ResponseBytes
	rep.Planned, rep.Sent, rep.Requests, rep.Missed, rep.Reopened = r.Planned, r.Sent, r.Requests, r.Missed, r.Reopened
	rep.Late, rep.LateFraction, rep.Queued, rep.QueuedShare = r.Late, r.LateFraction(), r.Queued, r.QueuedFraction()
	rep.Errors, rep.ConnectionErrors, rep.Unstamped = r.Errors, r.ConnectionErrors, r.Unstamped
	rep.Threads, rep.GeneratorCPU, rep.GeneratorBusiest = r.Threads, r.GeneratorCPU, r.GeneratorBusiest
	rep.GeneratorSpin, rep.GeneratorWait, rep.Steal = r.GeneratorSpin, r.GeneratorWait, r.Steal
	rep.Limits, rep.Seconds = append([]Limit{}, r.Limits...), append([]Second{}, r.Seconds...)
	rep.Times, rep.Histograms = map[string]float64{}, nil
	for clock, h := range r.Histograms() {
		maps.Copy(rep.Times, Times(clock, h))
		if !histograms {
			continue
		}
		encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			return fmt.Errorf("load: encode the %s histogram: %w", clock, err)
		}
		if rep.Histograms == nil {
			rep.Histograms = map[string]string{}
		}
		rep.Histograms[clock] = string(encoded)
	}
	return nil
}

// StepReport is one step of a ladder.
type StepReport struct {
	AskedRate    float64            `json:"asked_rate"` // 1/s
	Rate         float64            `json:"rate"`       // answered requests, 1/s
	Planned      int64              `json:"planned"`
	Requests     int64              `json:"requests"`
	Missed       int64              `json:"missed"`
	Errors       int64              `json:"errors"`
	LateFraction float64            `json:"late_fraction"`
	Times        map[string]float64 `json:"times"` // as Report.Times
}

func (s *Step) report(lasted time.Duration) StepReport {
	times := map[string]float64{}
	maps.Copy(times, Times("latency", s.Latency))
	maps.Copy(times, Times("service_time", s.ServiceTime))
	return StepReport{
		AskedRate: s.AskedRate, Rate: perSecond(s.Requests, lasted), Planned: s.Planned, Requests: s.Requests,
		Missed: s.Missed, Errors: s.Errors, LateFraction: share(s.Late, s.Planned), Times: times,
	}
}

// arrivals returns the kind of arrivals in one word.
func (c Config) arrivals() string {
	switch {
	case !c.open():
		return "closed"
	case c.Poisson:
		return "poisson"
	}
	return "constant"
}

// Decode returns the report's histograms.
func (r *Report) Decode() (map[string]*hdrhistogram.Histogram, error) {
	all := make(map[string]*hdrhistogram.Histogram, len(r.Histograms))
	for clock, encoded := range r.Histograms {
		h, err := hdrhistogram.Decode([]byte(encoded))
		if err != nil {
			return nil, fmt.Errorf("load: decode the %s histogram: %w", clock, err)
		}
		all[clock] = h
	}
	return all, nil
}

// ErrorCount returns the number of requests that failed.
func (r *Report) ErrorCount() int64 { return total(r.Errors) }

type plainReport Report

// MarshalJSON writes the times as keys beside the others.
func (r Report) MarshalJSON() ([]byte, error) {
	fixed, err := json.Marshal(plainReport(r))
	if err != nil || len(r.Times) == 0 {
		return fixed, err
	}
	times, err := json.Marshal(r.Times)
	if err != nil {
		return nil, err
	}
	return append(append(fixed[:len(fixed)-1], ','), times[1:]...), nil
}

// UnmarshalJSON reads the output of MarshalJSON; keys that begin with the name of a
// clock are times.
func (r *Report) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, (*plainReport)(r)); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	r.Times = map[string]float64{}
	for name, raw := range all {
		if !result.IsLatency(name) {
			continue
		}
		var v float64
		if err := json.Unmarshal(raw, &v); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.Times[name] = v
	}
	return nil
}
