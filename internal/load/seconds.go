package load

import (
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/result"
)

// interval is what one thread records in one second.
type interval struct {
	t                int
	requests, errors int64
	connectionErrors int64
	latency          *hdrhistogram.Histogram
	serviceTime      *hdrhistogram.Histogram
	networkTime      *hdrhistogram.Histogram
	sendLag          *hdrhistogram.Histogram
	connectTime      *hdrhistogram.Histogram
}

func newInterval() *interval {
	return &interval{
		latency: newHistogram(), serviceTime: newHistogram(), networkTime: newHistogram(),
		sendLag: newHistogram(), connectTime: newHistogram(),
	}
}

func (v *interval) all() [5]*hdrhistogram.Histogram {
	return [...]*hdrhistogram.Histogram{v.latency, v.serviceTime, v.networkTime, v.sendLag, v.connectTime}
}

func (v *interval) add(o *interval) {
	v.requests += o.requests
	v.errors += o.errors
	v.connectionErrors += o.connectionErrors
	from := o.all()
	for i, h := range v.all() {
		if from[i].TotalCount() > 0 {
			h.Merge(from[i])
		}
	}
}

func (v *interval) reset(t int) {
	v.t, v.requests, v.errors, v.connectionErrors = t, 0, 0, 0
	for _, h := range v.all() {
		if h.TotalCount() > 0 {
			h.Reset()
		}
	}
}

func (v *interval) summary() Second {
	p50, p99, maximum := threeOf(v.latency)
	s50, s99, longest := threeOf(v.serviceTime)
	return Second{
		T: v.t, Requests: v.requests, Errors: v.errors, ConnectionErrors: v.connectionErrors,
		LatencyP50: p50, LatencyP99: p99, LatencyMax: maximum,
		ServiceTimeP50: s50, ServiceTimeP99: s99, ServiceTimeMax: longest,
	}
}

// threeOf returns the median, the 99th percentile and the maximum in seconds; a
// percentile with fewer than ten values beyond it is 0.
func threeOf(h *hdrhistogram.Histogram) (p50, p99, maximum float64) {
	n := h.TotalCount()
	at := func(percentile float64) float64 {
		if !result.EnoughFor(percentile, n) {
			return 0
		}
		return float64(h.ValueAtPercentile(percentile)) / 1e9
	}
	if n > 0 {
		maximum = float64(h.Max()) / 1e9
	}
	return at(50), at(99), maximum
}

// collector merges the seconds of all threads. It merges one second while the threads
// record the next, so that the threads neither need more memory nor wait.
type collector struct {
	threads int
	begin   time.Time // of the window; set before the first second comes
	log     *hdrhistogram.HistogramLogWriter
	free    chan *interval // empty ones, for the threads
	full    chan *interval
	open    map[int]*partial // seconds that some threads have not delivered yet
	total   *interval
	seconds []Second
	err     error // first error of writing the log
	done    chan struct{}
}

type partial struct {
	*interval
	delivered int // number of threads whose part is in the interval
}

// spareIntervals is how many intervals a thread has: one in which it records, one in the
// channel, and one that is being merged.
const spareIntervals = 3

func newCollector(threads int, log io.Writer) *collector {
	n := threads * spareIntervals
	c := &collector{threads: threads, total: newInterval(), free: make(chan *interval, 2*n)}
	for range n {
		c.free <- newInterval()
	}
	if log != nil {
		c.log = hdrhistogram.NewHistogramLogWriter(log)
	}
	return c
}

// next returns an empty interval for second t. It allocates one only if the collector
// is seconds behind.
func (c *collector) next(t int) *interval {
	var v *interval
	select {
	case v = <-c.free:
	default:
		v = newInterval()
	}
	v.t = t
	return v
}

// collect runs until full is closed.
func (c *collector) collect() {
	defer close(c.done)
	for v := range c.full {
		p := c.open[v.t]
		if p == nil {
			p = &partial{interval: v}
			c.open[v.t] = p
		} else {
			p.add(v)
			c.recycle(v)
		}
		if p.delivered++; p.delivered == c.threads {
			c.finish(p.interval)
		}
	}
	// The threads end at most a second apart, so some may have no interval for the last seconds.
	for t := len(c.seconds); len(c.open) > 0; t++ {
		if p := c.open[t]; p != nil {
			c.finish(p.interval)
		}
	}
}

func (c *collector) finish(v *interval) {
	delete(c.open, v.t)
	c.total.add(v)
	c.seconds = append(c.seconds, v.summary())
	c.writeLog(v)
	c.recycle(v)
}

func (c *collector) recycle(v *interval) {
	v.reset(0)
	select {
	case c.free <- v:
	default:
	}
}

// start makes the collector ready for a slice whose window begins at begin, and drops the
// data of the previous slice. The log's times count from begin.
func (c *collector) start(begin time.Time) {
	c.begin, c.open, c.seconds = begin, map[int]*partial{}, nil
	c.full, c.done = make(chan *interval, 16*spareIntervals*c.threads), make(chan struct{})
	c.total.reset(0)
	if c.log == nil {
		return
	}
	for _, write := range []func() error{
		c.log.OutputLogFormatVersion,
		func() error { return c.log.OutputComment("[cnibench load: nanoseconds]") },
		func() error { return c.log.OutputStartTime(begin.UnixMilli()) },
		c.log.OutputLegend,
	} {
		if err := write(); err != nil && c.err == nil {
			c.err = fmt.Errorf("load: write the histogram log: %w", err)
		}
	}
}

// writeLog writes a second to the log.
func (c *collector) writeLog(v *interval) {
	if c.log == nil {
		return
	}
	from := c.begin.UnixMilli() + 1000*int64(v.t)
	for _, line := range []struct {
		tag string
		h   *hdrhistogram.Histogram
	}{{"latency", v.latency}, {"service_time", v.serviceTime}} {
		if line.h.TotalCount() == 0 {
			continue
		}
		line.h.SetTag(line.tag)
		line.h.SetStartTimeMs(from)
		line.h.SetEndTimeMs(from + 1000)
		if err := c.log.OutputIntervalHistogram(line.h); err != nil && c.err == nil {
			c.err = fmt.Errorf("load: write the histogram log: %w", err)
		}
	}
}

// into moves the merged histograms and the seconds into r.
func (c *collector) into(r *Result) {
	t := c.total
	r.Latency, r.ServiceTime, r.NetworkTime, r.SendLag, r.ConnectTime = t.latency, t.serviceTime, t.networkTime, t.sendLag, t.connectTime
	r.Seconds = c.seconds
	for n := len(c.seconds); n > 0; n-- {
		if last := c.seconds[n-1]; last.Requests+last.Errors+last.ConnectionErrors > 0 || last.ServiceTimeMax+last.LatencyMax > 0 || time.Duration(last.T)*time.Second < r.Elapsed {
			break
		}
		r.Seconds = c.seconds[:n-1] // a second of the drain in which nothing arrived
	}
}
