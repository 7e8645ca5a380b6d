package main

import (
	"math"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/load/serve"
)

// percentile is the nearest-rank percentile q (0 to 100) of values, 0 for none.
func percentile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(q/100*float64(len(sorted))))-1)]
}

// waits is, for each request of an even plan of rate (1/s) that begins at
// begin, how long the server's stalls alone keep it waiting.
func waits(begin time.Time, rate float64, window time.Duration, stalls []serve.Interval) []time.Duration {
	planned := int(math.Round(rate * window.Seconds()))
	list := make([]time.Duration, planned)
	for n := range list {
		at := begin.Add(time.Duration(float64(n) / rate * 1e9))
		for _, stall := range stalls {
			if !at.Before(stall.From) && at.Before(stall.To) {
				list[n] = stall.To.Sub(at)
			}
		}
	}
	return list
}
