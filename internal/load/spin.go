package load

import "time"

// spin adds up the time that a thread waits by spinning, that is by polling again and
// again. During a poll the kernel may also handle interrupts, which do much of a pod
// network's work. So only the usual time of a poll counts as waiting. The rest of a
// longer poll is work, and stays in the CPU time of the load.
type spin struct {
	usual float64 // nanoseconds that one poll takes: the median, followed in steps
	total time.Duration
}

const (
	usualStep = 1.02 // factor of one step of the median
	maxUsual  = 2    // the most that a poll counts as waiting, in medians
)

// add counts a poll that took ns nanoseconds and found no event.
func (s *spin) add(ns int64) {
	took := float64(max(ns, 1))
	switch {
	case s.usual == 0:
		s.usual = took
	case took > s.usual:
		s.usual *= usualStep
	default:
		s.usual /= usualStep
	}
	s.total += time.Duration(min(took, maxUsual*s.usual))
}
