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
// and no send lag, because it has no plan. While the server stalls, a closed
// loop sends nothing, so that its service times hide most of a stall.
type Result struct {
	Begin       time.Time     // of the window
	Elapsed     time.Duration // of the window; shorter than asked if interrupted
	Interrupted bool

	Planned   int64          // requests that the plan has in the window; 0 in a closed loop, which has no plan
	Sent      int64          // requests whose write began; if each request has its own connection: whose connect(2) began
	Requests  int64          // answered in full, with a 2xx status if there is one
	Completed int64          // good responses that were read within the window; Rate is Completed divided by Elapsed. An open loop kept its plan if Requests, not Completed, equals Planned
	Missed    int64          // without a response a second after the window; their age at that time is recorded as their latency
	Late      int64          // sent more than LateAfter too late because of the engine itself
	Queued    int64          // sent more than LateAfter after they were planned, mostly because the server kept every connection busy
	Errors    map[Kind]int64 // of requests, by kind. In an open loop Planned = Requests + Missed + all Errors. The age of a failed request is recorded as its latency: the response would have taken at least that long
	// ConnectionErrors are errors of connections without a request on the way: lost
	// between two requests, or failures to connect again.
	ConnectionErrors map[Kind]int64
	// Reopened are connections that were opened again before a slice: they were lost
	// after the slice before, or still waited for a response.
	Reopened int64

	ResponseBytes int64 // size of the first response, headers included
	Threads       int   // sending threads
	// GeneratorCPU is CPU-seconds per second of all sending threads, without the time
	// that they spin; GeneratorBusiest is that of the busiest thread.
	GeneratorCPU     float64
	GeneratorBusiest float64
	GeneratorSpin    float64 // CPU-seconds per second spent spinning until the next send was due
	GeneratorWait    float64 // seconds per second that the worst thread was runnable and had no CPU (/proc/thread-self/schedstat)
	Steal            float64 // share of the sending CPUs' time that the hypervisor took (/proc/stat)
	Limits           []Limit // why this was not the load that was asked for

	Latency     *hdrhistogram.Histogram // open loop only: from the planned send until the response is read
	ServiceTime *hdrhistogram.Histogram // from the actual send, or the begin of the request's own connection, until the response is read
	NetworkTime *hdrhistogram.Histogram // from the begin of ServiceTime to the kernel's receive timestamp of the response's last segment
	Unstamped   map[Unstamped]int64     // answered requests without a network time, by reason: Requests = values of NetworkTime + all Unstamped
	// SendLag is the delay of a send that the engine caused: from the moment when the
	// request was due and a connection was free, or would have been free without earlier
	// delays of the engine, to the actual send; open loop only.
	SendLag *hdrhistogram.Histogram
	// ConnectTime is from connect(2) until the engine sees the connection as open, if
	// each request has a connection of its own.
	ConnectTime *hdrhistogram.Histogram

	Seconds []Second // in order of time; the histograms above cover all of them
	Steps   []Step   // of a ladder
}

// Unstamped says why a request has no network time.
type Unstamped string

// Why a request has no network time.
const (
	NoTimestamp Unstamped = "no_timestamp" // the kernel gave no timestamp for the response
	ClocksApart Unstamped = "clocks_apart" // the wall clock, which the kernel's timestamps use, was set meanwhile, or this program lost its CPU while it read the clocks
)

// Second is what was recorded in one second of the window, or of the drain after it.
// Times are seconds. A percentile with fewer than ten values beyond it is 0 and not
// written.
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

// Step is the outcome of the requests that were planned within one step of a ladder.
type Step struct {
	AskedRate   float64 // 1/s
	Planned     int64
	Requests    int64 // answered
	Missed      int64
	Errors      int64 // Planned = Requests + Missed + Errors
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

// clocks returns the addresses of r's histograms, by the name of their clock.
func (r *Result) clocks() map[string]**hdrhistogram.Histogram {
	return map[string]**hdrhistogram.Histogram{
		"latency": &r.Latency, "service_time": &r.ServiceTime, "network_time": &r.NetworkTime,
		"send_lag": &r.SendLag, "connect_time": &r.ConnectTime,
	}
}

// count adds o's counts to r.
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

// follow adds a later slice to the slices in r, without its histograms and seconds. Shares
// and CPU times become means weighted by time.
func (r *Result) follow(o *Result) {
	before, added := r.Elapsed.Seconds(), o.Elapsed.Seconds()
	mean := func(of *float64, other float64) {
		if before+added > 0 {
			*of = (*of*before + other*added) / (before + added)
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

// add adds the counts of another thread. The collector merges the histograms.
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
