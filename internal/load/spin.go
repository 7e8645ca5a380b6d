package load

import "time"

// spin adds up the time that a thread waits by spinning. The kernel handles interrupts
// between two looks, and much of a pod network's work is done in them. So of a look that
// took longer than usual only the usual time is waiting; the rest is work and stays in
// the CPU time of the load.
type spin struct {
	usual float64 // nanoseconds that one look takes: the median, followed in steps
	total time.Duration
}

const (
	usualStep = 1.02 // by which the median follows
	mostUsual = 2    // medians that one look can count as waiting
)

// add counts a look that took so many nanoseconds and saw nothing.
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
	s.total += time.Duration(min(took, mostUsual*s.usual))
}
