// Package load is the load engine: it sends the same request to one target over
// many connections, either at planned times (open loop) or as soon as the last
// response has arrived (closed loop), and times every request by several clocks.
// It knows no arena and no workload, and judges only the load generator itself.
// The latency of a request that had to wait counts from its planned time. Next:
// exchange.go (requests and responses), pace.go (when requests are due),
// engine_linux.go (the loop that sends and reads), life_linux.go (how long
// connections live) and find_max.go.
package load

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"time"
)

// Config says which requests to send, how often and for how long.
type Config struct {
	Target      netip.AddrPort
	Exchange    Exchange
	Sources     []netip.Addr  // local addresses, taken in turn; empty: the kernel chooses
	Connections int           // at once, over all threads; at least 1
	Threads     int           // sending threads; 0 is one thread, or as many as the limit on open files requires
	CPUs        []int         // to which the threads are pinned, in turn; empty: they are not pinned
	Rate        float64       // requests planned per second; 0 without Steps is a closed loop
	Ramp        float64       // if not 0, the rate goes from Rate to Ramp over the window
	Steps       []float64     // instead of Rate: a ladder of rates, each for Duration
	Poisson     bool          // independent arrivals with exponential gaps instead of even ones
	Seed        uint64        // of the exponential gaps: the same seed gives the same plan
	Warmup      time.Duration // requests planned in the warm-up are sent and not counted
	Duration    time.Duration // of the measured window, or of each step
	Timeout     time.Duration // for a connection and for a response; 0 is 10 s
	Wait        time.Duration // how long to wait for the first response, for a server that is just starting
	// Log, if any, gets an HdrHistogram log (.hlog, version 1.3): for each
	// second a line tagged latency (open loop) and one tagged service_time,
	// in nanoseconds.
	Log io.Writer
	// Begin and End, if any, are called once each when the measured window
	// begins and ends, from a goroutine of their own.
	Begin, End func()
}

// LateAfter is the delay, caused by the engine itself, above which a send counts as late.
const LateAfter = time.Millisecond

// drain is how long the engine waits after the window for missing responses. No
// request is planned in that time.
const drain = time.Second

// The limits of a plan. The schedule counts nanoseconds in a float64, which holds whole
// numbers exactly up to longest. A rate (1/s) outside minRate to maxRate is a mistake.
const (
	longest = 100 * 24 * time.Hour
	minRate = 1e-6
	maxRate = 1e9
)

// maxThreads is the largest number of sending threads, far more than a load can use:
// a load that needs more has too many connections.
const maxThreads = 128

// Kind says what went wrong with a request or a connection.
type Kind string

// The kinds of errors.
const (
	Connect   Kind = "connect"   // a connection could not be made
	Reset     Kind = "reset"     // the connection broke before a response began
	Closed    Kind = "closed"    // the server closed a connection that should be kept open, between requests
	Status    Kind = "status"    // a complete response whose status is not 2xx
	Short     Kind = "short"     // the connection ended within a response
	Chunked   Kind = "chunked"   // a response with Transfer-Encoding, which this client does not read
	Malformed Kind = "malformed" // bytes that are no response of this exchange, or follow the response
	Timeout   Kind = "timeout"   // no complete response within Config.Timeout; for UDP a lost datagram
)

// ErrConfig is in the chain of every error about a Config: wrong usage.
var ErrConfig = errors.New("wrong load settings")

func wrong(format string, args ...any) error {
	return fmt.Errorf("load: %w: %s", ErrConfig, fmt.Sprintf(format, args...))
}

// open says whether the loop is open: it has a plan.
func (c Config) open() bool { return c.Rate > 0 || len(c.Steps) > 0 }

// window returns how long the measured window is.
func (c Config) window() time.Duration { return c.Duration * time.Duration(max(1, len(c.Steps))) }

// AskedRate returns the mean rate (1/s) that the plan has in the window; 0 is a
// closed loop.
func (c Config) AskedRate() float64 {
	if c.Ramp > 0 {
		return (c.Rate + c.Ramp) / 2
	}
	sum := c.Rate
	for _, rate := range c.Steps {
		sum += rate
	}
	return sum / float64(max(1, len(c.Steps)))
}

// Check returns the error with which Run would refuse c, an ErrConfig, or nil.
func (c Config) Check() error {
	_, err := c.complete()
	return err
}

// complete checks c and fills in its defaults.
func (c Config) complete() (Config, error) {
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	switch {
	case !c.Target.IsValid() || c.Target.Port() == 0:
		return c, wrong("the target needs an address and a port")
	case c.Exchange == nil:
		return c, wrong("no exchange; give HTTP, TCPRR, TCPCRR or UDPRR")
	case c.Connections < 1:
		return c, wrong("%d connections; at least 1 is needed", c.Connections)
	case c.Threads < 0 || c.Threads > maxThreads:
		return c, wrong("%d threads; from 1 to %d are possible, and more than CPUs help only to hold more connections", c.Threads, maxThreads)
	case c.Duration <= 0:
		return c, wrong("a duration of %v; it must be above 0", c.Duration)
	case c.Warmup < 0 || c.Timeout < 0 || c.Wait < 0:
		return c, wrong("a negative warm-up, timeout or wait; 0 is the least")
	case c.Warmup > longest || c.Duration > (longest-c.Warmup)/time.Duration(max(1, len(c.Steps))):
		return c, wrong("a warm-up of %v and %d times %v; together %v are the most", c.Warmup, max(1, len(c.Steps)), c.Duration, longest)
	case c.Timeout > longest || c.Wait > longest:
		return c, wrong("a timeout of %v and a wait of %v; %v is the most for each", c.Timeout, c.Wait, longest)
	case c.Ramp != 0 && (c.Rate <= 0 || len(c.Steps) > 0):
		return c, wrong("a ramp needs a rate above 0 to begin with, and excludes steps")
	case c.Rate != 0 && len(c.Steps) > 0:
		return c, wrong("steps and a rate exclude each other")
	case c.Poisson && !c.open():
		return c, wrong("a closed loop has no planned arrivals; Poisson arrivals need a rate")
	}
	for i, rate := range append([]float64{c.Rate, c.Ramp}, c.Steps...) {
		switch {
		case rate < 0 || math.IsNaN(rate) || math.IsInf(rate, 0) || rate == 0 && i > 1:
			return c, wrong("a rate of %v; it must be above 0, or 0 for a closed loop", rate)
		case rate > 0 && rate < minRate:
			return c, wrong("a rate of %v; %v per second is the least", rate, minRate)
		case rate > maxRate:
			return c, wrong("a rate of %v; the schedule counts in nanoseconds, so %v is the most", rate, maxRate)
		}
	}
	for _, source := range c.Sources {
		if source.Unmap().Is4() != c.Target.Addr().Unmap().Is4() {
			return c, wrong("source %v and target %v are not of one address family", source, c.Target.Addr())
		}
	}
	var err error
	c.Exchange, err = c.Exchange.complete(c.Target)
	return c, err
}
