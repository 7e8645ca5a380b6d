package sysmon

import (
	"fmt"
	"time"
)

// Window is a part of a recording's time.
type Window struct{ Begin, End time.Time }

// Within returns a recording of the windows only, which are in order and do not overlap.
// The time between two windows is removed, and counters continue in each window from
// their value at the end of the previous one, as if the machine had stood still between
// them. A counter that was absent at such a border keeps its values. So Delta, Rate and
// Mean from the first to the last of the Times are those of all windows together. The error
// is ErrNoData.
func (r *Recording) Within(windows []Window) (*Recording, error) {
	type part struct {
		from, to int
		shift    time.Duration
	}
	var parts []part
	for _, w := range windows {
		from, to := r.nearest(w.Begin), r.nearest(w.End)
		if len(r.Times) == 0 || from >= to {
			return nil, fmt.Errorf("a window of %v from %s is not within the recording: %w", w.End.Sub(w.Begin), w.Begin.UTC().Format(time.RFC3339Nano), ErrNoData)
		}
		p := part{from: from, to: to}
		if n := len(parts); n > 0 {
			// A microsecond, so that no two snapshots have the same time.
			p.shift = r.Times[from].Sub(r.Times[parts[n-1].to].Add(-parts[n-1].shift)) - time.Microsecond
		}
		parts = append(parts, p)
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("no window: %w", ErrNoData)
	}
	out := &Recording{Labels: r.Labels, Faults: r.Faults, Missing: r.Missing}
	for _, p := range parts {
		for i := p.from; i <= p.to; i++ {
			out.Times = append(out.Times, r.Times[i].Add(-p.shift))
		}
	}
	for _, f := range r.Families {
		g := f
		g.Series = make([]Series, len(f.Series))
		for i, s := range f.Series {
			values := make([]Value, 0, len(out.Times))
			for _, p := range parts {
				var offset Value
				if n := len(values); f.Type == "counter" && n > 0 && !values[n-1].IsAbsent() && !s.Values[p.from].IsAbsent() {
					offset = s.Values[p.from] - values[n-1]
				}
				for _, v := range s.Values[p.from : p.to+1] {
					values = append(values, v-offset)
				}
			}
			g.Series[i] = Series{Labels: s.Labels, Values: values}
		}
		out.Families = append(out.Families, g)
	}
	return out, nil
}
