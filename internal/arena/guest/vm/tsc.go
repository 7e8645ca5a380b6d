package vm

import "time"

// tscKHz returns the frequency of the host's time stamp counter in kHz, or 0 if there is none.
// An emulated CPU shows the host's counter. If the guest's kernel has to measure the frequency
// on a busy host, it gets a wrong value or none, and its clocks run several times too fast or
// stand still.
func tscKHz() uint64 {
	const window = 30 * time.Millisecond
	began, from := stamp()
	time.Sleep(window)
	ended, to := stamp()
	if to <= from {
		return 0
	}
	return uint64(float64(to-from) / float64(ended.Sub(began)) * 1e6)
}

// stamp reads the clock and the counter together. It tries several times and keeps the attempt
// that took the shortest time.
func stamp() (time.Time, uint64) {
	var at time.Time
	var ticks uint64
	minimum := time.Duration(1<<63 - 1)
	for range 20 {
		before := time.Now()
		now := rdtsc()
		after := time.Now()
		if took := after.Sub(before); took < minimum {
			minimum, at, ticks = took, before.Add(took/2), now
		}
	}
	return at, ticks
}
