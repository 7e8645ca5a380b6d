package load

import (
	"testing"
	"time"
)

func TestGuardLearns(t *testing.T) {
	const us = int64(time.Microsecond)
	tests := []struct {
		name     string
		late     func(n int64) int64 // of wake-up n
		from, to time.Duration       // where the lead ends up
	}{
		{"always in time", func(int64) int64 { return 0 }, 0, 5 * time.Microsecond},
		{"always 50 µs late", func(int64) int64 { return 50 * us }, 45 * time.Microsecond, 65 * time.Microsecond},
		{"evenly up to 100 µs", func(n int64) int64 { return n * 37 % 100 * us }, 80 * time.Microsecond, 110 * time.Microsecond},
		{"a millisecond late", func(int64) int64 { return 1000 * us }, maxLead, maxLead},
		{"rarely late", func(n int64) int64 { return n % 50 / 49 * 150 * us }, 0, 12 * time.Microsecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := guard{lead: float64(firstLead)}
			for n := range int64(3000) {
				g.learn(tt.late(n))
			}
			if got := time.Duration(g.spinTime(0)); got < tt.from || got > tt.to {
				t.Errorf("wakes up %v ahead, want %v to %v", got, tt.from, tt.to)
			}
		})
	}
}

func TestGuardYields(t *testing.T) {
	const us, ms = int64(time.Microsecond), int64(time.Millisecond)
	tests := []struct {
		name        string
		every, lost int64
		yields      bool
	}{
		{"a monitor that looks now and then", ms, 5 * us, false},
		{"a server that answers 10,000 times a second", ms / 10, 25 * us, true},
		{"a neighbour that computes", 8 * ms, 4 * ms, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, yielded := guard{lead: 1000}, false
			for now := int64(0); now < 200*ms; now += tt.every {
				g.countInterruption(now, tt.lost)
				yielded = yielded || g.spinTime(now) == 0
			}
			if yielded != tt.yields {
				t.Errorf("yielded %v, want %v", yielded, tt.yields)
			}
			if later := g.spinTime(200*ms + int64(spinPause)); later != 1000 {
				t.Errorf("ahead %d a while later, want 1000", later)
			}
		})
	}
	g := guard{lead: 1000, disabled: true}
	if got := g.spinTime(int64(time.Hour)); got != 0 {
		t.Errorf("spins %d ns before a send where it never may", got)
	}
}

func TestLimits(t *testing.T) {
	tests := []struct {
		code string
		r    Result
	}{
		{"", Result{Sent: 100, Late: 1, GeneratorBusiest: 0.9, Steal: 0.01, GeneratorWait: 0.01}},
		{"rate_short", Result{Planned: 1000, Sent: 1000, Requests: 989, Missed: 11}},
		{"", Result{Planned: 1000, Sent: 1000, Requests: 990, Errors: map[Kind]int64{Reset: 10}}},
		{"request_errors", Result{Sent: 1000, Errors: map[Kind]int64{Reset: 6, Status: 5}}},
		{"load_generator_late", Result{Sent: 100, Late: 2}},
		{"load_generator_saturated", Result{GeneratorBusiest: 0.96}},
		{"cpu_steal", Result{Steal: 0.02}},
		{"cpu_contended", Result{GeneratorWait: 0.02}},
	}
	for _, tt := range tests {
		tt.r.judge()
		switch {
		case tt.code == "" && len(tt.r.Limits) > 0, tt.code != "" && (len(tt.r.Limits) != 1 || tt.r.Limits[0].Code != tt.code):
			t.Errorf("limits %v, want %q", tt.r.Limits, tt.code)
		}
	}
}
