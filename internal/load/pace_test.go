package load

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPace(t *testing.T) {
	const s, ms, us = time.Second, time.Millisecond, time.Microsecond
	ladder := Config{Steps: []float64{1000, 2000, 500}, Warmup: 500 * ms, Duration: 2 * s}
	ramp := Config{Rate: 1000, Ramp: 3000, Warmup: s, Duration: 2 * s}
	fall := Config{Rate: 3000, Ramp: 1000, Warmup: s, Duration: 2 * s}
	tests := []struct {
		name string
		cfg  Config
		n    int64
		at   time.Duration
	}{
		{"the first is due at once", Config{Rate: 1000}, 0, 0},
		{"the second after one interval", Config{Rate: 1000}, 1, ms},
		{"slower than one a second", Config{Rate: 0.5}, 1, 2 * s},
		{"an interval that is no whole nanosecond", Config{Rate: 3}, 3, s},
		{"no drift after an hour", Config{Rate: 30000}, 108_000_001, 3600*s + 33*us + 333},
		{"no drift after a day at a high rate", Config{Rate: 1e6}, 86_400_000_001, 86400*s + us},
		{"a ladder warms up at its first rate", ladder, 499, 499 * ms},
		{"its first step", ladder, 500 + 1999, 2499 * ms},
		{"the second begins where the first ends", ladder, 500 + 2000, 2500 * ms},
		{"and is faster", ladder, 500 + 2001, 2500*ms + 500*us},
		{"the third", ladder, 500 + 2000 + 4000 + 1, 4502 * ms},
		{"and goes on", ladder, 500 + 2000 + 4000 + 1000 + 10, 6520 * ms},
		{"a ramp warms up at its first rate", ramp, 999, 999 * ms},
		{"begins there", ramp, 1000, s},
		{"has 1000+500 after a second", ramp, 1000 + 1500, 2 * s},
		{"and 4000 at its end", ramp, 1000 + 4000, 3 * s},
		{"and goes on at its last rate", ramp, 1000 + 4000 + 3, 3*s + ms},
		{"the slowest comes at last", Config{Rate: minRate}, 1, 1e6 * s},
		{"never", Config{Rate: minRate}, 1 << 40, never},
		{"a falling one", fall, 3000 + 2500, 2 * s},
		{"to its end", fall, 3000 + 4000, 3 * s},
		{"and on", fall, 3000 + 4000 + 1, 3*s + ms},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// Rounding may take a nanosecond.
			if got := newPace(tt.cfg).at(float64(tt.n)); (got - tt.at).Abs() > 1 {
				t.Errorf("request %d is due at %v, want %v", tt.n, got, tt.at)
			}
		})
	}
}

// Threads that share a plan send together what one alone would.
func TestSchedulesOfThreadsAreThePlan(t *testing.T) {
	for name, cfg := range map[string]Config{
		"constant": {Rate: 7777},
		"poisson":  {Rate: 7777, Poisson: true, Seed: 3},
		"ladder":   {Steps: []float64{1000, 3000}, Duration: time.Second, Poisson: true},
	} {
		t.Run(name, func(t *testing.T) {
			const until, threads = int64(2 * time.Second), 3
			times := func(first, stride int64) (all []int64) {
				for s := newSchedule(cfg, first); s.due < until; s.advance(stride) {
					all = append(all, s.due)
				}
				return all
			}
			var together []int64
			for k := range int64(threads) {
				together = append(together, times(k, threads)...)
			}
			slices.Sort(together)
			if d := cmp.Diff(times(0, 1), together); d != "" {
				t.Errorf("-alone +together:\n%s", d)
			}
		})
	}
}

// The gaps are exponential: their distribution function lies within the
// Kolmogorov-Smirnov distance that one in a thousand samples of this size
// exceeds, and the counts of windows have the variance of their mean. The
// seeds are fixed, so the test is not a matter of luck.
func TestPoissonArrivals(t *testing.T) {
	const n, rate = 20000, 1000.0
	for _, seed := range []uint64{0, 1, 2, 12345} {
		cfg := Config{Rate: rate, Poisson: true, Seed: seed}
		var gaps []float64
		counts := make([]float64, 0, n)
		last, window := 0.0, 0
		for s := newSchedule(cfg, 0); s.n < n; s.advance(1) {
			at := float64(s.due) / 1e9
			gaps = append(gaps, at-last)
			last = at
			for window = int(at / 0.01); len(counts) <= window; {
				counts = append(counts, 0)
			}
			counts[window]++
		}
		slices.Sort(gaps)
		distance := 0.0
		for i, g := range gaps {
			distance = max(distance, math.Abs(1-math.Exp(-g*rate)-(float64(i)+0.5)/n))
		}
		if limit := 1.95 / math.Sqrt(n); distance > limit {
			t.Errorf("seed %d: distance %.4f from the exponential distribution, want at most %.4f", seed, distance, limit)
		}
		mean, variance := 0.0, 0.0
		counts = counts[:window] // the last is cut off
		for _, c := range counts {
			mean += c / float64(len(counts))
		}
		for _, c := range counts {
			variance += (c - mean) * (c - mean) / float64(len(counts)-1)
		}
		if ratio := variance / mean; ratio < 0.88 || ratio > 1.12 {
			t.Errorf("seed %d: variance of counts is %.3f of their mean, want 1", seed, ratio)
		}
	}
	first, again := newSchedule(Config{Rate: 1, Poisson: true, Seed: 1}, 1000), newSchedule(Config{Rate: 1, Poisson: true, Seed: 1}, 0)
	again.advance(1000)
	if first.due != again.due {
		t.Errorf("request 1000 is due at %d and at %d of one plan", first.due, again.due)
	}
}

// A plan never goes back in time, whatever its rates.
func FuzzPace(f *testing.F) {
	f.Add(10000.0, 20000.0, 100.0, int64(time.Second), int64(20000))
	f.Add(77777.7, 1.0/3, 0.0, int64(3*time.Second+1), int64(5))
	f.Fuzz(func(t *testing.T, a, b, c float64, duration, n int64) {
		for _, rate := range []float64{a, b} {
			if !(rate > 1e-3 && rate <= 1e7) {
				t.Skip("outside of what a load is asked for")
			}
		}
		if duration < int64(time.Millisecond) || duration > int64(time.Hour) || n < 0 || n > 1e9 {
			t.Skip("outside of what a load is asked for")
		}
		cfgs := []Config{{Rate: a, Ramp: b, Duration: time.Duration(duration)}, {Steps: []float64{a, b}, Duration: time.Duration(duration)}}
		if c > 1e-3 && c <= 1e7 {
			cfgs = append(cfgs, Config{Steps: []float64{a, b, c}, Duration: time.Duration(duration)})
		}
		for _, cfg := range cfgs {
			p := newPace(cfg)
			if before, at := p.at(float64(n)), p.at(float64(n+1)); at < before-1 || before < 0 {
				t.Errorf("%+v: request %d is due at %v, the next at %v", cfg, n, before, at)
			}
		}
	})
}
