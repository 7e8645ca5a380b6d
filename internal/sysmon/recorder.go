package sysmon

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Interval is the default time between two snapshots.
const Interval = time.Second

// columnCapacity is for how many snapshots memory is reserved at the start: two minutes,
// so that the values of a step need not be copied while it is recorded.
const columnCapacity = 128

// Options say what a Recorder records, and how it is named.
type Options struct {
	Root Root
	// Labels tell this recording from others in one file.
	Labels map[string]string
	// Samplers are read in this order; nil reads nothing.
	Samplers []Sampler
	// Interval is the time between two snapshots; zero is Interval.
	Interval time.Duration
	// Begin is the time that the first snapshot gets; the others follow. The zero
	// time stands for the real time.
	Begin time.Time
}

// Recorder takes snapshots in memory: at its start, once an Interval, at every
// Mark and at its end. Its methods may be called from several goroutines.
type Recorder struct {
	root     Root
	samplers []Sampler

	mu      sync.Mutex
	origin  time.Time // real time of the start
	begin   time.Time // time that the recording gives for the start
	rec     Recording
	metrics map[string]*metricState
	columns map[seriesKey]*column
	frame   frame
	faulty  map[string]bool
	ended   bool

	endOnce    sync.Once
	stopOnce   sync.Once
	quit, done chan struct{}
}

type metricState struct {
	Metric
	sparse  bool
	columns []*column // in the order of their first appearance
}

// Start is StartWith with the Samplers of the scope, which the steps of a run need.
func Start(root Root, scope Scope, labels map[string]string) (*Recorder, error) {
	if _, err := ParseScope(string(scope)); err != nil {
		return nil, err
	}
	return StartWith(Options{Root: root, Labels: labels, Samplers: OfScope(scope, Samplers())})
}

// StartWith takes the first snapshot, and then a snapshot every interval until Stop. The
// only error is that of Options.Check. If the kernel lacks the files of a sampler, the
// sampler's values are absent, and its name is in the recording's Faults, or in its
// Missing if the sampler is optional.
func StartWith(o Options) (*Recorder, error) {
	r, err := newRecorder(o)
	if err != nil {
		return nil, err
	}
	r.snapshot()
	go r.run(cmp.Or(o.Interval, Interval))
	return r, nil
}

func newRecorder(o Options) (*Recorder, error) {
	r := &Recorder{
		root:     o.Root,
		samplers: o.Samplers,
		origin:   time.Now(),
		begin:    o.Begin,
		rec:      Recording{Labels: map[string]string{}, Times: make([]time.Time, 0, columnCapacity)},
		metrics:  make(map[string]*metricState),
		columns:  make(map[seriesKey]*column),
		faulty:   make(map[string]bool),
		quit:     make(chan struct{}),
		done:     make(chan struct{}),
	}
	if r.begin.IsZero() {
		r.begin = r.origin
	}
	for name, value := range o.Labels {
		r.rec.Labels[name] = value
	}
	for _, s := range o.Samplers {
		for _, m := range s.Metrics {
			r.metrics[m.Name] = &metricState{Metric: m, sparse: s.Sparse}
		}
	}
	return r, o.Check()
}

// Check returns an error if a label could not be written as OpenMetrics: its name is
// malformed or used by a sampler, or its value is not UTF-8.
func (o *Options) Check() error {
	for _, name := range sortedNames(o.Labels) {
		if !isLabelName(name) {
			return fmt.Errorf("label %q: a label's name consists of letters, digits and underscores, and begins with a letter", name)
		}
		if value := o.Labels[name]; !utf8.ValidString(value) {
			return fmt.Errorf("label %s: its value %q is not UTF-8", name, value)
		}
		for _, s := range o.Samplers {
			for _, m := range s.Metrics {
				if slices.Contains(m.Labels, name) {
					return fmt.Errorf("label %q: %s has a label of that name; choose another", name, m.Name)
				}
			}
		}
	}
	return nil
}

// run takes a snapshot at every multiple of the interval after the start. A snapshot that
// is late or takes long does not move the later ones; a missed snapshot is left out.
func (r *Recorder) run(interval time.Duration) {
	defer close(r.done)
	for {
		since := time.Since(r.origin)
		timer := time.NewTimer(since.Truncate(interval) + interval - since)
		select {
		case <-r.quit:
			timer.Stop()
			return
		case <-timer.C:
			r.snapshot()
		}
	}
}

// Mark takes a snapshot now and returns its time, for Delta, Rate and Mean.
// After Stop it returns the time of the last snapshot.
func (r *Recorder) Mark() time.Time { return r.snapshot() }

// Stop takes the last snapshot and returns the recording. A second Stop returns the same
// recording.
func (r *Recorder) Stop() *Recording {
	r.End()
	r.stopOnce.Do(func() { r.rec.Families = r.Part(r.Names()...).Families })
	return &r.rec
}

// End takes the last snapshot. It is for a long recording, which Stop would unpack into
// memory at once: after End, Names and Part return the recording in parts.
func (r *Recorder) End() {
	r.endOnce.Do(func() {
		close(r.quit)
		<-r.done
		r.snapshot()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended = true
	})
}

// snapshot reads every sampler once and returns the time of the snapshot. Snapshots are at
// least a millisecond apart: time-series databases count in milliseconds, and keep only one
// of two points with the same time.
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

// now returns r.begin plus the time since the start by the monotonic clock, so that
// setting the wall clock changes no interval. The time is in whole microseconds, which
// every file format can hold.
func (r *Recorder) now() time.Time {
	return r.begin.Add(time.Since(r.origin)).Round(0).UTC().Truncate(time.Microsecond)
}

// take reads every sampler once.
func (r *Recorder) take(now time.Time) {
	n := len(r.rec.Times)
	r.rec.Times = append(r.rec.Times, now)
	for i := range r.samplers {
		s := &r.samplers[i]
		r.frame.rows = r.frame.rows[:0]
		if err := s.sample(r.root, &r.frame); err != nil {
			r.fault(s, err)
			continue
		}
		for _, row := range r.frame.rows {
			r.set(n, row)
		}
	}
}

// set appends the value of snapshot n to its series. Snapshots that the series missed
// before become absent, or zero if the sampler is sparse and the series is new.
func (r *Recorder) set(n int, row row) {
	c := r.columns[row.key]
	if c == nil {
		c = r.addColumn(row.key)
	}
	for c.length < n {
		c.append(c.missing)
	}
	if c.length == n { // otherwise the file has the series twice, and the first value counts
		c.append(Value(row.value))
	}
	c.missing = Absent
}

func (r *Recorder) addColumn(key seriesKey) *column {
	m := r.metrics[key.metric]
	c := &column{missing: Absent, bytes: make([]byte, 0, columnCapacity+2*len(r.rec.Times))}
	if m.sparse {
		c.missing = 0
	}
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

// fault records the first error of each sampler.
func (r *Recorder) fault(s *Sampler, err error) {
	if r.faulty[s.Name] {
		return
	}
	r.faulty[s.Name] = true
	// The last two errors also mean missing: a kernel that was started with psi=0 has the
	// files of pressure but cannot open them, and only root may read those of energy.
	if s.Optional && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission)) {
		r.rec.Missing = append(r.rec.Missing, s.Name)
		return
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; this kernel or its /proc does not give it", err)
	}
	r.rec.Faults = append(r.rec.Faults, s.Name+": "+err.Error())
}

// Names returns the families that have a series, in the order of the samplers.
// It and Part are for after End.
func (r *Recorder) Names() []string {
	var names []string
	for _, s := range r.samplers {
		for _, m := range s.Metrics {
			if len(r.metrics[m.Name].columns) > 0 {
				names = append(names, m.Name)
			}
		}
	}
	return names
}

// Part returns the recording with only the named families. Unknown names are ignored.
func (r *Recorder) Part(families ...string) *Recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	part := r.rec
	part.Families = nil
	for _, name := range families {
		m := r.metrics[name]
		if m == nil || len(m.columns) == 0 {
			continue
		}
		f := Family{Name: m.Name, Type: m.Type, Unit: m.Unit, Help: m.Help}
		for _, c := range m.columns {
			f.Series = append(f.Series, Series{Labels: c.labels, Values: c.values(len(r.rec.Times))})
		}
		part.Families = append(part.Families, f)
	}
	return &part
}
