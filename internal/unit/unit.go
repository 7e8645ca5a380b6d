// Package unit gives the quantities of a benchmark types instead of suffixes:
// bit rates are decimal bits per second, sizes are bytes (printed binary), and
// times are seconds. It imports the standard library only and knows nothing of
// runs or reports. Next: parse.go, format.go.
package unit

import (
	"math"
	"time"
)

// BitRate is application or line bits per second, decimal (1 Gbit/s = 1e9).
type BitRate float64

// Bytes is a size; memory and messages are printed in binary multiples.
type Bytes float64

// Seconds is a duration as reports carry it; smaller is better wherever it is
// a latency.
type Seconds float64

// Duration returns s as a time.Duration, to the nearest nanosecond.
func (s Seconds) Duration() time.Duration {
	return time.Duration(math.Round(float64(s) * float64(time.Second)))
}

// PerSecond is an event rate: requests, packets or connections a second.
type PerSecond float64
