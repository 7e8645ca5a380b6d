package sysmon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Interval is the time between two snapshots that nobody asked for.
const Interval = time.Second

// columnCapacity is how many snapshots a series has room for from the start:
// two minutes, so that a step is recorded without moving what it recorded.
const columnCapacity = 128

// Recorder takes snapshots in memory: at its start, once an Interval, at every
// Mark and at its end. Its methods may be called from several goroutines.
type Recorder struct {
	root     fs.FS
	samplers []Sampler

	mu      sync.Mutex
	origin  time.Time // with the monotonic clock
	rec     Recording
	metrics map[string]*metricState
	columns map[seriesKey]*column
	frame   frame
	faulty  map[string]bool
	ended   bool

	stop       sync.Once
	quit, done chan struct{}
}

type metricState struct {
	Metric
	columns []*column // in the order of their first appearance
}

type column struct {
	labels map[string]string
	values []Value
}

// Proc is the root that recorders read on a real machine.
func Proc() fs.FS { return os.DirFS("/proc") }

// Start takes the first snapshot and goes on until Stop. root stands for
// /proc. The labels tell this recording from others in one file; a name that
// OpenMetrics does not allow, or that a sampler uses, is an error. What the
// kernel lacks is no error: it is absent, and the recording's Faults say so.
func Start(root fs.FS, scope Scope, labels map[string]string) (*Recorder, error) {
	r, err := newRecorder(root, scope, labels)
	if err != nil {
		return nil, err
	}
	r.snapshot()
	go r.run(Interval)
	return r, nil
}

func newRecorder(root fs.FS, scope Scope, labels map[string]string) (*Recorder, error) {
	if _, err := ParseScope(string(scope)); err != nil {
		return nil, err
	}
	r := &Recorder{
		root:    root,
		origin:  time.Now(),
		rec:     Recording{Labels: map[string]string{}, Times: make([]time.Time, 0, columnCapacity)},
		metrics: make(map[string]*metricState),
		columns: make(map[seriesKey]*column),
		faulty:  make(map[string]bool),
		quit:    make(chan struct{}),
		done:    make(chan struct{}),
	}
	for name, value := range labels {
		r.rec.Labels[name] = value
	}
	for _, s := range Samplers() {
		if s.Scope == ScopeNode && scope != ScopeNode {
			continue
		}
		r.samplers = append(r.samplers, s)
		for _, m := range s.Metrics {
			r.metrics[m.Name] = &metricState{Metric: m}
		}
	}
	return r, r.checkLabels()
}

func (r *Recorder) checkLabels() error {
	for name := range r.rec.Labels {
		if !isLabelName(name) {
			return fmt.Errorf("label %q: a name is letters, digits and underscores", name)
		}
		for _, m := range r.metrics {
			if slices.Contains(m.Labels, name) {
				return fmt.Errorf("label %q: the name is taken by %s", name, m.Name)
			}
		}
	}
	return nil
}

func (r *Recorder) run(interval time.Duration) {
	defer close(r.done)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-r.quit:
			return
		case <-ticker.C:
			r.snapshot()
		}
	}
}

// Mark takes a snapshot now and returns its time, for Delta, Rate and Mean.
// After Stop it returns the time of the last snapshot.
func (r *Recorder) Mark() time.Time { return r.snapshot() }

// Stop takes the last snapshot and returns the recording. A second Stop
// returns the same.
func (r *Recorder) Stop() *Recording {
	r.stop.Do(func() {
		close(r.quit)
		<-r.done
		r.snapshot()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended = true
		r.assemble()
	})
	return &r.rec
}

// snapshot reads every sampler once and returns its time. Snapshots are at
// least a millisecond apart: that is how exactly time-series databases keep
// time, and two points in one would be lost there.
func (r *Recorder) snapshot() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.rec.Times)
	if r.ended {
		return r.rec.Times[n-1]
	}
	now := r.now()
	for n > 0 && now.UnixMilli() <= r.rec.Times[n-1].UnixMilli() {
		time.Sleep(time.Millisecond)
		now = r.now()
	}
	r.take(now)
	return now
}

// now is the wall clock of the start plus what the monotonic clock says: a
// clock that is set meanwhile bends no interval. It is in microseconds, which
// every form of the time keeps.
func (r *Recorder) now() time.Time {
	return r.origin.Add(time.Since(r.origin)).Round(0).UTC().Truncate(time.Microsecond)
}

// take reads every sampler once.
func (r *Recorder) take(now time.Time) {
	n := len(r.rec.Times)
	r.rec.Times = append(r.rec.Times, now)
	for i := range r.samplers {
		s := &r.samplers[i]
		r.frame.rows = r.frame.rows[:0]
		if err := s.sample(r.root, &r.frame); err != nil {
			r.fault(s.Name, err)
			continue
		}
		for _, row := range r.frame.rows {
			r.set(n, row)
		}
	}
}

// set puts the value at snapshot n of its series; what the series missed
// before is absent.
func (r *Recorder) set(n int, row row) {
	c := r.columns[row.key]
	if c == nil {
		c = r.addColumn(row.key)
	}
	for len(c.values) < n {
		c.values = append(c.values, Absent)
	}
	if len(c.values) == n { // else the file names a thing twice: the first counts
		c.values = append(c.values, Value(row.value))
	}
}

func (r *Recorder) addColumn(key seriesKey) *column {
	m := r.metrics[key.metric]
	c := &column{values: make([]Value, 0, max(columnCapacity, 2*len(r.rec.Times)))}
	for i, name := range m.Labels {
		if c.labels == nil {
			c.labels = make(map[string]string, len(m.Labels))
		}
		key.labels[i] = strings.Clone(key.labels[i])
		c.labels[name] = key.labels[i]
	}
	r.columns[key] = c
	m.columns = append(m.columns, c)
	return c
}

// fault notes once for each sampler that it could not be read.
func (r *Recorder) fault(sampler string, err error) {
	if r.faulty[sampler] {
		return
	}
	r.faulty[sampler] = true
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; this kernel or its /proc does not give it", err)
	}
	r.rec.Faults = append(r.rec.Faults, sampler+": "+err.Error())
}

// assemble fills the recording's families from the columns; those without a
// series are left out.
func (r *Recorder) assemble() {
	for _, s := range r.samplers {
		for _, m := range s.Metrics {
			state := r.metrics[m.Name]
			if len(state.columns) == 0 {
				continue
			}
			f := Family{Name: m.Name, Type: m.Type, Unit: m.Unit, Help: m.Help}
			for _, c := range state.columns {
				for len(c.values) < len(r.rec.Times) {
					c.values = append(c.values, Absent)
				}
				f.Series = append(f.Series, Series{Labels: c.labels, Values: c.values})
			}
			r.rec.Families = append(r.rec.Families, f)
		}
	}
}
