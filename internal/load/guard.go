package load

import "time"

// guard decides how long before a send the loop stops sleeping and spins. A thread
// wakes up late, by a few microseconds on one machine and by 165 µs from deep sleep on
// another, and that delay would be in every latency. So the guard learns the 95th
// percentile of the delay (lead), and the loop spins for that long.
type guard struct {
	lead        float64 // nanoseconds
	disabled    bool    // never spin: a spin would take the CPU away from the measured network
	pausedUntil int64   // do not spin before this time, because another process needs the CPU
	lost        int64   // nanoseconds, since lostSince, for which other processes had the CPU during spins
	lostSince   int64
}

const (
	firstLead = 60 * time.Microsecond
	maxLead   = 200 * time.Microsecond
	leadStep  = 10 * time.Microsecond
	// spinStep is the longest time between two polls of a spin. If more time passes,
	// another process may have had the CPU.
	spinStep = 20 * time.Microsecond
	// When other processes take more than maxLost of the CPU within spinPause, the
	// loop does not spin for spinPause. Kernel threads and Go's monitor, which run for
	// microseconds now and then, take less.
	spinPause = 20 * time.Millisecond
	maxLost   = spinPause / 10
)

// learn takes the delay of a wake-up in nanoseconds. lead follows the 95th percentile of
// the delays in steps (Robbins and Monro, 1951).
func (g *guard) learn(late int64) {
	if float64(late) > g.lead {
		g.lead = min(g.lead+0.95*float64(leadStep), float64(maxLead))
	} else {
		g.lead = max(g.lead-0.05*float64(leadStep), 0)
	}
}

// spinTime returns how many nanoseconds before a send the loop shall wake up.
func (g *guard) spinTime(now int64) int64 {
	if g.disabled || now < g.pausedUntil {
		return 0
	}
	return int64(g.lead)
}

// countInterruption counts a spin in which another process had the CPU for lost nanoseconds.
// Spinning pauses if other processes need much of the CPU.
func (g *guard) countInterruption(now, lost int64) {
	if now-g.lostSince > int64(spinPause) {
		g.lostSince, g.lost = now, 0
	}
	if g.lost += lost; g.lost > int64(maxLost) {
		g.pausedUntil = now + int64(spinPause)
	}
}
