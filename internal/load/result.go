package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result is what one load measured. Only requests that were planned within
// the window are counted and timed; the warm-up is in none of the figures.
//
// For every request, latency = queueing for a free connection + send lag +
// service time. Histograms are in nanoseconds. A closed loop has no latency
// and no send lag: it plans nothing, and while the server stalls it asks
// nothing, so that its service times hide most of a stall.
type Result struct {
	Begin       time.Time     // of the window
	Elapsed     time.Duration // of the window; shorter than asked if interrupted
	Interrupted bool

	Planned   int64          // requests that the plan has in the window; 0 in a closed loop, which has no plan
	Sent      int64          // requests begun: written, or their connection
	Requests  int64          // answered in full, with a 2xx status if there is one
	Completed int64          // such answers read while the window was open: the achieved rate is Completed by Elapsed; an open loop reached its plan when Requests, not Completed, comes to Planned
	Missed    int64          // without an answer a second after the window; their age then is recorded as their latency
	Late      int64          // sent more than LateAfter after they could have been, had the engine been on time: its own fault
	Queued    int64          // sent more than LateAfter after they were planned, mostly because the server kept every connection busy
	Errors    map[Kind]int64 // of requests, by kind: with a plan Planned = Requests + Missed + all of these; the age of a request that failed is recorded as its latency, which was that at least
	// ConnectionErrors are those of connections that had no request then: lost
	// between two requests, or not made again.
	ConnectionErrors map[Kind]int64
	// Reopened are connections that were made again before a slice: lost since the
	// slice before, or still without an answer from it.
	Reopened int64

	ResponseBytes int64 // of the first answer, headers included
	Threads       int   // that sent
	// GeneratorCPU is CPU-seconds per second of all sending threads, waiting
	// by spinning left out; GeneratorBusiest that of the busiest one.
	GeneratorCPU     float64
	GeneratorBusiest float64
	GeneratorSpin    float64 // CPU-seconds per second spent spinning until the next send was due
	GeneratorWait    float64 // seconds per second that the worst thread was runnable and had no CPU (/proc/thread-self/schedstat)
	Steal            float64 // share of the sending CPUs' time that the hypervisor took (/proc/stat)
	Limits           []Limit // why this load may have measured itself and not the target

	Latency     *hdrhistogram.Histogram // open loop only: from the intended send to the response read
	ServiceTime *hdrhistogram.Histogram // from the actual send, or the begin of its connection, to the response read
	NetworkTime *hdrhistogram.Histogram // from the same to the kernel's receive timestamp of the response's last segment
	Unstamped   map[Unstamped]int64     // answered requests without a network time, by reason: Requests = NetworkTime's values + all of these
	// SendLag is the engine's own delay, from the moment when a request was due
	// and had, or but for earlier delays of the engine would have had, a free
	// connection to its actual send; open loop only.
	SendLag *hdrhistogram.Histogram
	// ConnectTime is from connect(2) to the connection noticed, where each
	// request has one of its own.
	ConnectTime *hdrhistogram.Histogram

	Seconds []Second // in order; all of them together are the histograms above
	Steps   []Step   // of a ladder
}

// Unstamped says why a request has no network time.
type Unstamped string

// Why a request has no network time.
const (
	NoTimestamp Unstamped = "no_timestamp" // the kernel stamped the response with no time
	ClocksApart Unstamped = "clocks_apart" // the wall clock, which the kernel stamps with, was set meanwhile, or this program lost its CPU while it read the clocks
)

// Second is what was recorded in one second of the window. Answers to its
// requests that came after it, in the drain, make further seconds. Times are
// seconds; a percentile that the count does not carry is 0 and not written.
type Second struct {
	T                int     `json:"t"` // from T to T+1 seconds after the window's begin
	Requests         int64   `json:"requests"`
	Errors           int64   `json:"errors"` // of requests
	ConnectionErrors int64   `json:"connection_errors,omitempty"`
	LatencyP50       float64 `json:"latency_p50,omitempty"`
	LatencyP99       float64 `json:"latency_p99,omitempty"`
	LatencyMax       float64 `json:"latency_max,omitempty"`
	ServiceTimeP50   float64 `json:"service_time_p50,omitempty"`
	ServiceTimeP99   float64 `json:"service_time_p99,omitempty"`
	ServiceTimeMax   float64 `json:"service_time_max,omitempty"`
}

// Step is what came of the requests that were planned within one step of a
// ladder.
type Step struct {
	AskedRate   float64 // 1/s
	Planned     int64
	Requests    int64 // answered
	Missed      int64
	Errors      int64 // with Requests and Missed it comes to Planned
	Late        int64
	Latency     *hdrhistogram.Histogram
	ServiceTime *hdrhistogram.Histogram
}

// Rate returns the achieved rate (1/s).
func (r *Result) Rate() float64 { return perSecond(r.Completed, r.Elapsed) }

// LateFraction returns the share of sends that were late, 0 to 1.
func (r *Result) LateFraction() float64 { return share(r.Late, r.Sent) }

// QueuedFraction returns the share of sends that had to wait for a connection.
func (r *Result) QueuedFraction() float64 { return share(r.Queued, r.Sent) }

// Histograms returns the non-empty histograms by the name of their clock.
func (r *Result) Histograms() map[string]*hdrhistogram.Histogram {
	all := map[string]*hdrhistogram.Histogram{}
	for clock, h := range r.clocks() {
		if *h != nil && (*h).TotalCount() > 0 {
			all[clock] = *h
		}
	}
	return all
}

func newResult() Result {
	return Result{Errors: map[Kind]int64{}, ConnectionErrors: map[Kind]int64{}, Unstamped: map[Unstamped]int64{}}
}

// clocks are where r's histograms are, by the name of their clock.
func (r *Result) clocks() map[string]**hdrhistogram.Histogram {
	return map[string]**hdrhistogram.Histogram{
		"latency": &r.Latency, "service_time": &r.ServiceTime, "network_time": &r.NetworkTime,
		"send_lag": &r.SendLag, "connect_time": &r.ConnectTime,
	}
}

// count adds what o counted.
func (r *Result) count(o *Result) {
	if r.Begin.IsZero() {
		r.Begin = o.Begin
	}
	r.Interrupted = r.Interrupted || o.Interrupted
	r.Planned += o.Planned
	r.Sent += o.Sent
	r.Requests += o.Requests
	r.Completed += o.Completed
	r.Missed += o.Missed
	r.Late += o.Late
	r.Queued += o.Queued
	r.Reopened += o.Reopened
	for kind, n := range o.Errors {
		r.Errors[kind] += n
	}
	for kind, n := range o.ConnectionErrors {
		r.ConnectionErrors[kind] += n
	}
	for why, n := range o.Unstamped {
		r.Unstamped[why] += n
	}
}

// follow adds a slice that came after those in r. Its histograms come apart; of
// several slices no seconds are kept.
func (r *Result) follow(o *Result) {
	before, its := r.Elapsed.Seconds(), o.Elapsed.Seconds()
	mean := func(of *float64, other float64) {
		if before+its > 0 {
			*of = (*of*before + other*its) / (before + its)
		}
	}
	mean(&r.GeneratorCPU, o.GeneratorCPU)
	mean(&r.GeneratorBusiest, o.GeneratorBusiest)
	mean(&r.GeneratorSpin, o.GeneratorSpin)
	mean(&r.GeneratorWait, o.GeneratorWait)
	mean(&r.Steal, o.Steal)
	r.count(o)
	r.Elapsed += o.Elapsed
	r.Threads, r.ResponseBytes = o.Threads, o.ResponseBytes
}

// add adds what another thread counted. Its histograms come by the second.
func (r *Result) add(o *Result) {
	r.count(o)
	r.Elapsed = max(r.Elapsed, o.Elapsed)
	r.Threads++
	r.GeneratorCPU += o.GeneratorCPU
	r.GeneratorBusiest = max(r.GeneratorBusiest, o.GeneratorCPU)
	r.GeneratorSpin += o.GeneratorSpin
	r.GeneratorWait = max(r.GeneratorWait, o.GeneratorWait)
	if r.Steps == nil {
		r.Steps = o.Steps
		return
	}
	for i := range o.Steps {
		r.Steps[i].add(&o.Steps[i])
	}
}

func (s *Step) add(o *Step) {
	s.Planned += o.Planned
	s.Requests += o.Requests
	s.Missed += o.Missed
	s.Errors += o.Errors
	s.Late += o.Late
	s.Latency.Merge(o.Latency)
	s.ServiceTime.Merge(o.ServiceTime)
}

func newSteps(rates []float64) []Step {
	steps := make([]Step, len(rates))
	for i, rate := range rates {
		steps[i] = Step{AskedRate: rate, Latency: newHistogram(), ServiceTime: newHistogram()}
	}
	return steps
}

func total(errors map[Kind]int64) (n int64) {
	for _, count := range errors {
		n += count
	}
	return n
}

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func perSecond(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

const maxTracked = int64(100 * time.Second)

// newHistogram tracks 1 ns to 100 s with three significant digits.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, maxTracked, 3) }

// record adds a time to h, clamped to what h can hold.
func record(h *hdrhistogram.Histogram, ns int64) {
	// The clamped value is always within the histogram's range.
	_ = h.RecordValue(min(max(ns, 1), maxTracked))
}
