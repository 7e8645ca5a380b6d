package load

import "time"

// guard decides how long before a send the loop stops sleeping and spins. A thread
// wakes up late, by a few microseconds on one machine and by 165 µs from deep sleep on
// another, and that delay would be in every latency. So the guard learns the 95th
// percentile of the delay (lead), and the loop spins for that long.
type guard struct {
	lead  float64 // nanoseconds
	off   bool    // no spinning: it would take the CPU away from the measured network
	until int64   // no spinning before this time, because another process needs the CPU
	lost  int64   // nanoseconds for which other processes had the CPU during spins
	since int64   // from when on lost is counted
}

const (
	firstLead = 60 * time.Microsecond
	mostLead  = 200 * time.Microsecond
	leadStep  = 10 * time.Microsecond
	// spinStep is the longest time from one look of a spin to the next without another
	// process in between.
	spinStep = 20 * time.Microsecond
	// When other processes take more than mostLost of the CPU within spinPause, the
	// loop does not spin for spinPause. Kernel threads and Go's monitor, which run for
	// microseconds now and then, take less.
	spinPause = 20 * time.Millisecond
	mostLost  = spinPause / 10
)

// woke learns that a wake-up was late by that many nanoseconds: lead follows the 95th
// percentile in steps (Robbins and Monro, 1951).
func (g *guard) woke(late int64) {
	if float64(late) > g.lead {
		g.lead = min(g.lead+0.95*float64(leadStep), float64(mostLead))
	} else {
		g.lead = max(g.lead-0.05*float64(leadStep), 0)
	}
}

// ahead returns how many nanoseconds before a send the loop shall wake up.
func (g *guard) ahead(now int64) int64 {
	if g.off || now < g.until {
		return 0
	}
	return int64(g.lead)
}

// interrupted learns that another process had the CPU for lost nanoseconds during a
// spin. If that happens often, spinning pauses.
func (g *guard) interrupted(now, lost int64) {
	if now-g.since > int64(spinPause) {
		g.since, g.lost = now, 0
	}
	if g.lost += lost; g.lost > int64(mostLost) {
		g.until = now + int64(spinPause)
	}
}
