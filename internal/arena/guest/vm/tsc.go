package vm

import "time"

// tscKHz returns the frequency of the host's time stamp counter in kHz, or 0 where
// it has none. An emulated CPU shows the host's counter, and a kernel that
// must measure its frequency there gets it wrong on a busy host, or not at
// all, and then its clocks run at several times their speed or not at all.
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

// stamp reads the clock and the counter at the same time: of some tries the
// one that was disturbed least.
func stamp() (time.Time, uint64) {
	var at time.Time
	var ticks uint64
	least := time.Duration(1<<63 - 1)
	for range 20 {
		before := time.Now()
		now := rdtsc()
		after := time.Now()
		if took := after.Sub(before); took < least {
			least, at, ticks = took, before.Add(took/2), now
		}
	}
	return at, ticks
}
