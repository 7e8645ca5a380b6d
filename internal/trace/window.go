package trace

import (
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// This file finds the measured window in a recording: a sample says how long
// it was, and the recorder took a snapshot at both of its ends.

// window is where the measured window lies in a recording.
type window struct {
	from, to int       // snapshots, −1 where they are not known
	begin    time.Time // where the snapshots are not known
	seconds  float64   // 0 where it is not known: to the end of the recording
}

// markedWindow is the pair of snapshots that mark the measured window: exactly
// as far apart as the sample says, −1 where there is none. Ticks can be as far
// apart by chance, so that the pair farthest from the beat of the ticks, which
// begins with the recording, is taken.
func markedWindow(times []time.Time, s *result.Sample) (from, to int) {
	want := s.Elapsed.Duration()
	from, to = -1, -1
	farthest := time.Duration(-1)
	j := 0 // the first snapshot that is not too near to i
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

// besideMark is the window of a node that was marked together with the
// client's: the snapshot nearest to the client's mark, or the one with the
// same number where the nodes' clocks differ.
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
	if from >= 0 && times[from].Sub(begin).Abs() > least && index < len(times) {
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

// chosen returns the snapshots that intervals lie between: the window's marks, and
// of the others those that are not too near to one of them.
func chosen(times []time.Time, from, to int) []int {
	var at []int
	for i, t := range times {
		marked := i == from || i == to
		near := func(j int) bool { return j >= 0 && !marked && t.Sub(times[j]).Abs() < least }
		if near(from) || near(to) || !marked && len(at) > 0 && t.Sub(times[at[len(at)-1]]) < least {
			continue
		}
		at = append(at, i)
	}
	return at
}
