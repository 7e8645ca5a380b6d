package load

import "time"

// pace is a constant rate: when each request is due is a function of its
// number alone, so that neither a slow server nor a late sender moves the
// plan, and requests that wait need no memory.
type pace struct {
	rate float64 // requests per second, above 0
}

// at is when request n, counted from 0, is due after the start. A float64
// holds whole nanoseconds exactly for the first hundred days.
func (p pace) at(n int64) time.Duration {
	return time.Duration(float64(n) * 1e9 / p.rate)
}

// wait is how long after elapsed the next request is due when hits have been
// sent; 0 if it is due or overdue.
func (p pace) wait(elapsed time.Duration, hits int64) time.Duration {
	return max(0, p.at(hits)-elapsed)
}

// planned is how many requests are due before until.
func (p pace) planned(until time.Duration) int64 {
	n := int64(until.Seconds() * p.rate)
	for n > 0 && p.at(n-1) >= until {
		n--
	}
	for p.at(n) < until {
		n++
	}
	return n
}
