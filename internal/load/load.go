// Package load is the load engine: it asks one target for the same thing over
// many connections, at a constant rate (open loop) or as fast as the answers
// come (closed loop), and times every request by three clocks. It knows no
// arena, no workload and no report, judges nothing, and never smooths a
// figure: a request that the server kept waiting counts from the moment that
// it was planned for. Next: pace.go (when a request is due), then
// engine_linux.go (the loop that sends and reads).
package load

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// HTTPConfig says what to ask, how often and for how long.
type HTTPConfig struct {
	Target      netip.AddrPort
	Host        string        // of the Host header; "" is the target itself
	Path        string        // "" is "/"
	Connections int           // kept open all the time, at least 1
	Rate        float64       // requests planned per second; 0 is a closed loop
	Warmup      time.Duration // requests planned in it are sent and forgotten
	Duration    time.Duration // of the measured window
	Timeout     time.Duration // for a connection and for a response; 0 is 10 s
	Wait        time.Duration // how long to try for the first answer, for a server that is just starting
	// Begin and End, if any, are called once each when the measured window
	// begins and ends, from a goroutine of their own.
	Begin, End func()
}

// LateAfter is the own delay after which a send counts as late.
const LateAfter = time.Millisecond

// drain is how long the engine waits after the window for the answers that
// are still due. Nothing new is planned in it.
const drain = time.Second

// Kind says what went wrong with a request or a connection.
type Kind string

// The kinds of errors.
const (
	Connect   Kind = "connect"   // a connection that was lost could not be made again
	Reset     Kind = "reset"     // the connection broke before a response began
	Closed    Kind = "closed"    // the server closed a connection that should be kept open, between requests
	Status    Kind = "status"    // a complete response whose status is not 2xx
	Short     Kind = "short"     // the connection ended within a response
	Chunked   Kind = "chunked"   // Transfer-Encoding, which this client does not read
	Malformed Kind = "malformed" // not an HTTP/1.1 response with a Content-Length, or more bytes than it declares
	Timeout   Kind = "timeout"   // no complete response within HTTPConfig.Timeout
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
	Sent      int64          // requests written
	Requests  int64          // answered in full with a 2xx status
	Completed int64          // such answers read while the window was open: the achieved rate is Completed by Elapsed; an open loop reached its plan when Requests, not Completed, comes to Planned
	Missed    int64          // without an answer a second after the window; their age then is recorded as their latency
	Late      int64          // sent more than LateAfter after they could have been: the engine's own fault
	Queued    int64          // sent more than LateAfter after they were planned because every connection was busy: the server's doing
	Errors    map[Kind]int64 // by kind; the age of a request that failed is recorded as its latency, which was that at least

	ResponseBytes int64   // of the first answer, headers included
	GeneratorCPU  float64 // CPU-seconds per second of the sending thread, waiting by spinning left out
	GeneratorSpin float64 // CPU-seconds per second spent spinning until the next send was due

	Latency     *hdrhistogram.Histogram // open loop only: from the intended send to the response read
	ServiceTime *hdrhistogram.Histogram // from the actual send to the response read
	NetworkTime *hdrhistogram.Histogram // from the actual send to the kernel's receive timestamp of the response's last segment
	// SendLag is from the moment that a request was due and had a free
	// connection to its actual send: the engine's own delay; open loop only.
	SendLag *hdrhistogram.Histogram
}

// Rate is the achieved rate (1/s).
func (r *Result) Rate() float64 { return perSecond(r.Completed, r.Elapsed) }

// LateFraction is the share of sends that were late, 0 to 1.
func (r *Result) LateFraction() float64 { return share(r.Late, r.Sent) }

// QueuedFraction is the share of sends that had to wait for a connection.
func (r *Result) QueuedFraction() float64 { return share(r.Queued, r.Sent) }

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

// ErrConfig is in the chain of every error about an HTTPConfig: wrong usage.
var ErrConfig = errors.New("wrong load settings")

// complete checks c and fills in its defaults.
func (c HTTPConfig) complete() (HTTPConfig, error) {
	wrong := func(format string, args ...any) (HTTPConfig, error) {
		return c, fmt.Errorf("load: %w: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	if c.Host == "" {
		c.Host = c.Target.String()
	}
	if c.Path == "" {
		c.Path = "/"
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	switch {
	case !c.Target.IsValid() || c.Target.Port() == 0:
		return wrong("the target needs an address and a port")
	case c.Connections < 1:
		return wrong("%d connections; at least 1 is needed", c.Connections)
	case c.Rate < 0 || math.IsNaN(c.Rate) || math.IsInf(c.Rate, 0):
		return wrong("a rate of %v; it must be above 0, or 0 for a closed loop", c.Rate)
	case c.Rate > 1e9:
		return wrong("a rate of %v; the schedule counts in nanoseconds, so 1e9 is the most", c.Rate)
	case c.Duration <= 0:
		return wrong("a duration of %v; it must be above 0", c.Duration)
	case c.Warmup < 0 || c.Timeout < 0 || c.Wait < 0:
		return wrong("a negative time")
	case !strings.HasPrefix(c.Path, "/") || !printable(c.Path):
		return wrong("path %q must begin with / and be printable ASCII without spaces", c.Path)
	case !printable(c.Host):
		return wrong("host %q must be printable ASCII without spaces", c.Host)
	}
	return c, nil
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// request is what is sent each time, byte for byte.
func (c HTTPConfig) request() []byte {
	return []byte("GET " + c.Path + " HTTP/1.1\r\nHost: " + c.Host + "\r\n\r\n")
}
