package load

import (
	"testing"
	"time"
)

// What the kernel does between two looks is work, however short: a thread that spins for
// 100 ms in looks of 400 ns has waited for 100 ms, whatever interrupts of 15 µs lengthen
// some looks. (Looks of up to 20 µs used to count as waiting in full.)
func TestSpinLeavesInterruptsOut(t *testing.T) {
	const look, interrupt, looks = 400, 15_000, 250_000
	for name, every := range map[string]int{"none": looks + 1, "each hundredth look": 100, "each fifth look": 5} {
		var s spin
		var wall time.Duration
		for i := range looks {
			took := int64(look)
			if i%every == every-1 {
				took += interrupt
			}
			s.add(took)
			wall += time.Duration(took)
		}
		waited := time.Duration(looks * look)
		// A look with an interrupt may count twice the usual.
		if maximum := waited + waited/time.Duration(every) + waited/20; s.total < waited*95/100 || s.total > maximum {
			t.Errorf("%s: %v of %v counted as waiting; it was %v", name, s.total, wall, waited)
		}
	}
}

// A look becomes slower when the CPU does: the usual time follows.
func TestSpinFollows(t *testing.T) {
	var s spin
	for range 1000 {
		s.add(400)
	}
	before := s.total
	for range 1000 {
		s.add(1200)
	}
	if got := s.total - before; got < 1100*time.Microsecond || got > 1200*time.Microsecond {
		t.Errorf("%v of 1.2 ms counted", got)
	}
}
