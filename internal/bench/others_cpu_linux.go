package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the CPU time of a process and its threads; false: there is no such
// process.
func cpuTime(pid int) (time.Duration, bool) {
	const scheduled = 2 // CPUCLOCK_SCHED: user and system time as the scheduler counts it, in nanoseconds
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}
