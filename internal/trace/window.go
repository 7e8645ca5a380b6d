package trace

import (
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// This file finds the measured window in a recording. The sample says how long the window
// was, and the recorder took a snapshot at its begin and at its end.

// window is the measured window of a recording.
type window struct {
	from, to int       // indexes of the snapshots at its ends; −1 if unknown
	begin    time.Time // used if the snapshots are unknown
	seconds  float64   // length; 0 if unknown: the window lasts to the end of the recording
}

// markedWindow returns the two snapshots that mark the measured window: they are exactly as
// far apart as the sample says. It returns −1 if there are none. Ordinary ticks can be the
// same distance apart by chance. Ticks are multiples of the interval since the recording
// began, so markedWindow takes the pair that is furthest from such a multiple.
func markedWindow(times []time.Time, s *result.Sample) (from, to int) {
	want := s.Elapsed.Duration()
	from, to = -1, -1
	farthest := time.Duration(-1)
	j := 0 // the first snapshot that is far enough from i
	for i, a := range times {
		for j = max(j, i+1); j < len(times) && times[j].Sub(a) <= want-time.Microsecond; {
			j++
		}
		if j == len(times) {
			break
		}
		beat := a.Sub(times[0]) % sysmon.Interval
		off := min(beat, sysmon.Interval-beat)
		if times[j].Sub(a)-want < time.Microsecond && off > farthest {
			from, to, farthest = i, j, off
		}
	}
	return from, to
}

// besideMark returns the window of a node that was marked together with the client's node. It
// begins at the snapshot nearest to the client's mark, or at the snapshot with the same
// index if the nodes' clocks differ.
func besideMark(times []time.Time, begin time.Time, index int, s *result.Sample) (from, to int) {
	nearest := func(at time.Time) int {
		best := -1
		for i, t := range times {
			if best < 0 || t.Sub(at).Abs() < times[best].Sub(at).Abs() {
				best = i
			}
		}
		return best
	}
	from = nearest(begin)
	if from >= 0 && times[from].Sub(begin).Abs() > minInterval && index < len(times) {
		from = index
	}
	if from < 0 {
		return -1, -1
	}
	if to = nearest(times[from].Add(s.Elapsed.Duration())); to <= from {
		return -1, -1
	}
	return from, to
}

// chooseSnapshots returns the snapshots that begin and end intervals: the window's marks, and all
// others that are not too close to a mark or to each other.
func chooseSnapshots(times []time.Time, from, to int) []int {
	var at []int
	for i, t := range times {
		marked := i == from || i == to
		near := func(j int) bool { return j >= 0 && !marked && t.Sub(times[j]).Abs() < minInterval }
		if near(from) || near(to) || !marked && len(at) > 0 && t.Sub(times[at[len(at)-1]]) < minInterval {
			continue
		}
		at = append(at, i)
	}
	return at
}
