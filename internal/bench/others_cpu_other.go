//go:build !linux

package bench

import "time"

// cpuTime knows no process.
func cpuTime(int) (used time.Duration, ok bool) { return 0, false }
