package sysmon

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"
)

// ErrNoData says that a recording has no value for a question. A missing value is never
// a zero.
var ErrNoData = errors.New("nothing recorded")

// Delta returns the growth of a counter between the snapshots nearest to begin and
// end, summed over the series whose labels contain all of match (nil matches
// every series). For times that Mark returned, those snapshots are exact.
//
// A series that was absent for a part of the window counts from its first to its last
// value in the window. If a counter went back (an interface was made again, a 32-bit
// counter wrapped, the kernel corrected idle or iowait), the growth of that interval is
// unknown and left out.
//
// family is named without _total. The error is ErrNoData.
func (r *Recording) Delta(family string, match map[string]string, begin, end time.Time) (float64, error) {
	return r.sum(family, match, begin, end, func(s Series, from, to int) (float64, bool) {
		delta, _, ok := r.growth(s, from, to)
		return delta, ok
	})
}

// sum returns the sum of a figure over the matching series that have the figure between
// the snapshots nearest to begin and end. The error is ErrNoData.
func (r *Recording) sum(family string, match map[string]string, begin, end time.Time, figure func(s Series, from, to int) (float64, bool)) (float64, error) {
	series, from, to, err := r.window(family, match, begin, end)
	if err != nil {
		return 0, err
	}
	sum, known := 0.0, false
	for _, s := range series {
		if v, ok := figure(s, from, to); ok {
			sum, known = sum+v, true
		}
	}
	if !known {
		return 0, fmt.Errorf("%s%s: absent in the window: %w", family, inBraces(match), ErrNoData)
	}
	return sum, nil
}

// growth returns the growth of one counter between two snapshots, and the seconds of the
// intervals whose growth is unknown because the counter went back. ok is false if the
// counter has fewer than two values.
func (r *Recording) growth(s Series, from, to int) (delta, unknown float64, ok bool) {
	last := -1
	for i := from; i <= to; i++ {
		v := s.Values[i]
		if v.IsAbsent() {
			continue
		}
		if last >= 0 {
			ok = true
			if v >= s.Values[last] {
				delta += float64(v - s.Values[last])
			} else {
				unknown += r.Times[i].Sub(r.Times[last]).Seconds()
			}
		}
		last = i
	}
	return delta, unknown, ok
}

// Rate returns Delta divided by the seconds between the two snapshots: CPU-seconds per
// second for node_cpu_seconds. Intervals in which a counter went back are left out of its
// growth and of its time. If no other interval is left, its rate is 0.
func (r *Recording) Rate(family string, match map[string]string, begin, end time.Time) (float64, error) {
	return r.sum(family, match, begin, end, func(s Series, from, to int) (float64, bool) {
		delta, unknown, ok := r.growth(s, from, to)
		if delta > 0 {
			delta /= r.Times[to].Sub(r.Times[from]).Seconds() - unknown
		}
		return delta, ok
	})
}

// Mean returns the mean of a gauge over the time between the snapshots nearest to
// begin and end (trapezoids, so each interval counts by its length), summed over
// the series whose labels contain all of match. Intervals in which a series was
// absent do not count for that series. The error is ErrNoData.
func (r *Recording) Mean(family string, match map[string]string, begin, end time.Time) (float64, error) {
	return r.sum(family, match, begin, end, func(s Series, from, to int) (float64, bool) {
		area, seconds := 0.0, 0.0
		for i := from; i < to; i++ {
			a, b := s.Values[i], s.Values[i+1]
			if a.IsAbsent() || b.IsAbsent() {
				continue
			}
			d := r.Times[i+1].Sub(r.Times[i]).Seconds()
			area += d * float64(a+b) / 2
			seconds += d
		}
		return area / seconds, seconds > 0
	})
}

// Family returns the family of that name (without _total).
func (r *Recording) Family(name string) (*Family, bool) {
	for i := range r.Families {
		if r.Families[i].Name == name {
			return &r.Families[i], true
		}
	}
	return nil, false
}

// window returns the series that match and the snapshots nearest to begin and end.
func (r *Recording) window(family string, match map[string]string, begin, end time.Time) (series []Series, from, to int, err error) {
	f, ok := r.Family(family)
	if !ok {
		return nil, 0, 0, fmt.Errorf("%s: %w", family, ErrNoData)
	}
	for _, s := range f.Series {
		if !contains(s.Labels, match) {
			continue
		}
		if len(s.Values) != len(r.Times) {
			return nil, 0, 0, fmt.Errorf("%s%s: %d values for %d snapshots; the recording is damaged: %w",
				family, inBraces(s.Labels), len(s.Values), len(r.Times), ErrNoData)
		}
		series = append(series, s)
	}
	if len(series) == 0 {
		return nil, 0, 0, fmt.Errorf("%s%s: no such series: %w", family, inBraces(match), ErrNoData)
	}
	from, to = r.nearest(begin), r.nearest(end)
	if from >= to || begin.Before(r.Times[0].Add(-Interval)) || end.After(r.Times[len(r.Times)-1].Add(Interval)) {
		return nil, 0, 0, fmt.Errorf("%s: the window of %v from %s is not within the recording: %w",
			family, end.Sub(begin), begin.UTC().Format(time.RFC3339Nano), ErrNoData)
	}
	return series, from, to, nil
}

// nearest returns the index of the snapshot nearest to t; 0 where there is none.
func (r *Recording) nearest(t time.Time) int {
	i := sort.Search(len(r.Times), func(i int) bool { return !r.Times[i].Before(t) })
	if i == len(r.Times) || i > 0 && t.Sub(r.Times[i-1]) < r.Times[i].Sub(t) {
		i--
	}
	return max(i, 0)
}

// contains says whether labels contains all of match.
func contains(labels, match map[string]string) bool {
	for name, value := range match {
		if labels[name] != value {
			return false
		}
	}
	return true
}

// inBraces returns a label set as PromQL writes it, "" if empty.
func inBraces(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteByte('{')
	for i, name := range sortedNames(labels) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(name)
		b.WriteString(`="`)
		b.WriteString(escape.Replace(labels[name]))
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}
