package load

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	const s, ms, us = time.Second, time.Millisecond, time.Microsecond
	tests := []struct {
		name    string
		rate    float64
		elapsed time.Duration
		hits    int64
		wait    time.Duration // until the next
		planned int64         // due before elapsed
	}{
		{"the first is due at once", 1000, 0, 0, 0, 0},
		{"the second after one interval", 1000, 0, 1, ms, 0},
		{"half an interval gone", 1000, ms / 2, 1, ms / 2, 1},
		{"due on the dot is not before", 1000, ms, 1, 0, 1},
		{"just past due", 1000, ms + 1, 1, 0, 2},
		{"overdue after a stall", 1000, s, 5, 0, 1000},
		{"ahead of the plan", 1000, s, 1010, 10 * ms, 1000},
		{"slower than one a second", 0.5, s, 1, s, 1},
		{"an interval that is no whole nanosecond", 3, s, 3, 0, 3},
		{"no drift after an hour", 30000, 3600 * s, 108_000_001, 33*us + 333, 108_000_000},
		{"no drift after a day at a high rate", 1e6, 86400 * s, 86_400_000_001, us, 86_400_000_000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := pace{tt.rate}
			if got := p.wait(tt.elapsed, tt.hits); got != tt.wait {
				t.Errorf("wait(%v, %d) = %v, want %v", tt.elapsed, tt.hits, got, tt.wait)
			}
			if got := p.planned(tt.elapsed); got != tt.planned {
				t.Errorf("planned(%v) = %d, want %d", tt.elapsed, got, tt.planned)
			}
		})
	}
}

// The two directions of the plan must agree, or requests at the end of the
// window would be planned twice or never.
func FuzzPace(f *testing.F) {
	f.Add(10000.0, int64(time.Second))
	f.Add(77777.7, int64(3*time.Second+1))
	f.Add(1.0/3, int64(time.Hour))
	f.Fuzz(func(t *testing.T, rate float64, until int64) {
		if !(rate > 1e-3 && rate <= 1e7) || until < 0 || until > int64(24*time.Hour) {
			t.Skip("outside of what a load is asked for")
		}
		p := pace{rate}
		n := p.planned(time.Duration(until))
		if n > 0 && p.at(n-1) >= time.Duration(until) {
			t.Errorf("request %d is planned before %v but due at %v", n-1, until, p.at(n-1))
		}
		if p.at(n) < time.Duration(until) {
			t.Errorf("request %d is due at %v, before %v, and not planned", n, p.at(n), until)
		}
	})
}
