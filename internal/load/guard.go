package load

import "time"

// guard is how long before a send the loop stops sleeping and looks without
// pause. It learns how late the thread wakes up, which is a few microseconds
// on one machine and 165 µs out of deep sleep on another, and is the delay
// that all but every twentieth wake-up stays below: what would otherwise be
// added to every latency.
type guard struct {
	lead  float64 // nanoseconds
	never bool    // spinning is off: it would take the CPU away from what is measured
	until int64   // no spinning before this time: another process needs the CPU
	lost  int64   // nanoseconds that others had the CPU during spins
	since int64   // when lost began to be counted
}

const (
	firstLead = 60 * time.Microsecond
	mostLead  = 200 * time.Microsecond
	leadStep  = 10 * time.Microsecond
	// spinStep is the longest turn of the loop that was not interrupted by another
	// process.
	spinStep = 20 * time.Microsecond
	// respite is how long the loop only sleeps once others took mostLost of the
	// CPU from its spinning within as long. What runs for microseconds now and
	// then, the kernel's threads and the runtime's monitor, takes less.
	respite  = 20 * time.Millisecond
	mostLost = respite / 10
)

// woke takes into account that a wake-up was so many nanoseconds late: the
// 95th percentile of a stream, followed in steps (Robbins and Monro, 1951).
func (g *guard) woke(late int64) {
	if float64(late) > g.lead {
		g.lead = min(g.lead+0.95*float64(leadStep), float64(mostLead))
	} else {
		g.lead = max(g.lead-0.05*float64(leadStep), 0)
	}
}

// ahead returns how long before a send to wake up at this time.
func (g *guard) ahead(now int64) int64 {
	if g.never || now < g.until {
		return 0
	}
	return int64(g.lead)
}

// interrupted takes into account that somebody else had the CPU for so long
// during a spin; who needs it often is left in peace for a while.
func (g *guard) interrupted(now, lost int64) {
	if now-g.since > int64(respite) {
		g.since, g.lost = now, 0
	}
	if g.lost += lost; g.lost > int64(mostLost) {
		g.until = now + int64(respite)
	}
}
