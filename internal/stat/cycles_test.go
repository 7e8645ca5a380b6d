package stat

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The machine's mood, which changes from cycle to cycle by far more than the
// contenders differ, and a hiccup of one of them move no quotient.
func TestLevels(t *testing.T) {
	for name, left := range map[string]float64{"a stalled connection": 1. / 20, "no byte arrived": 0} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			truth := map[string]float64{"host": 1, "near": 0.97, "far": 0.4}
			names := slices.Sorted(maps.Keys(truth)) // a map's order would draw other numbers each time
			worst, plain := 0.0, 0.0
			for range 200 {
				c := Cycled{}
				for name := range truth {
					c[name] = map[int]float64{}
				}
				mood := 0.0
				for cycle := range 30 {
					mood = 0.8*mood + 0.3*rng.NormFloat64()
					for _, name := range names {
						c[name][cycle] = 20e9 * truth[name] * math.Exp(mood+0.04*rng.NormFloat64())
					}
				}
				c["near"][7] *= left
				levels := c.Levels()
				for name, v := range truth {
					worst = max(worst, math.Abs(levels[name]/levels["host"]/v-1))
				}
				// What one measurement each at its own time would give.
				plain = max(plain, math.Abs(c["near"][3]/c["host"][22]/truth["near"]-1))
			}
			// Six standard errors of a quotient of two means of 30 values: 4 % · √(2/30) = 1.03 %.
			if !(worst <= 0.062) || plain < 0.2 {
				t.Errorf("quotients of levels are off by up to %.3f, of values of two times by %.3f", worst, plain)
			}
		})
	}
}

// Two contenders: what a stalled slice of one leaves of its cycle does not move the other.
func TestLevelsOfTwoWithZeros(t *testing.T) {
	c := Cycled{"a": {}, "b": {}}
	for cycle := range 10 {
		mood := 1 + 0.05*float64(cycle)
		c["a"][cycle], c["b"][cycle] = 20*mood, 10*mood
	}
	want := c.Levels()
	c["a"][2], c["b"][2], c["b"][5] = 0, 0, 0 // in cycle 2 nobody received anything
	got := c.Levels()
	if math.Abs(got["a"]/got["b"]-2) > 1e-9 || math.Abs(got["a"]/want["a"]-1) > 0.05 {
		t.Errorf("%v, want about %v", got, want)
	}
	c["b"][7] = 0
	if got := c.Levels(); got != nil {
		t.Errorf("more zeros than are trimmed: %v", got)
	}
}

// The levels of equal noise are as precise as means with it taken out.
func TestLevelsPrecision(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const runs, cycles, noise = 400, 30, 0.05
	squares := 0.0
	for range runs {
		c := Cycled{}
		for i := range 9 {
			values := map[int]float64{}
			for cycle := range cycles {
				values[cycle] = math.Exp(noise * rng.NormFloat64())
			}
			c[fmt.Sprint(i)] = values
		}
		levels := c.Levels()
		d := math.Log(levels["1"] / levels["0"])
		squares += d * d
	}
	ideal := noise * math.Sqrt(2.0/cycles)
	if got := math.Sqrt(squares / runs); got > 1.15*ideal {
		t.Errorf("deviation of the logarithm of a quotient %.4f, that of means %.4f", got, ideal)
	}
}

// Contenders of different blocks have no cycle in common. Their quotients to the one that was
// in all blocks are true, although the machine was three times slower in the second block.
func TestLevelsOfBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	truth := map[string]float64{"host": 1, "a": 0.9, "b": 0.7, "c": 0.5, "d": 0.3}
	c := Cycled{}
	for _, name := range slices.Sorted(maps.Keys(truth)) {
		c[name] = map[int]float64{}
	}
	for block, names := range [][]string{{"host", "a", "b"}, {"host", "c", "d"}} {
		for cycle := 10 * block; cycle < 10*block+10; cycle++ {
			mood := math.Pow(3, -float64(block)) * math.Exp(0.3*rng.NormFloat64())
			for _, name := range names {
				c[name][cycle] = truth[name] * mood
			}
		}
	}
	check := func(what string) {
		levels := c.Levels()
		for name, want := range truth {
			if got := levels[name] / levels["host"]; !(math.Abs(got-want) <= 1e-9) {
				t.Errorf("%s: %s: %.4f of the host, want %.4f", what, name, got, want)
			}
		}
	}
	check("all received")
	c["a"][3] = 0
	check("no byte arrived in one slice")
	delete(c, "host")
	if got := c.Levels(); got != nil {
		t.Errorf("nobody was in both blocks: %v", got)
	}
}

func TestLevelsOfLittle(t *testing.T) {
	if got := (Cycled{"a": {1: 1, 2: 2}, "b": {3: 1}}).Levels(); got != nil {
		t.Errorf("no cycle of both: %v", got)
	}
	if got := (Cycled{"a": {1: 1}, "b": {1: 0}}).Levels(); got != nil {
		t.Errorf("a zero: %v", got)
	}
	if got := (Cycled{"a": {1: 2, 2: 7}, "b": {1: 1, 3: 9}}).Levels(); math.Abs(got["a"]/got["b"]-2) > 1e-9 {
		t.Errorf("only the cycle of both counts: %v", got)
	}
}

// What the cycles do to the others leaves a contender's level alone that they do nothing
// to: its absolute figure is right, too.
func TestLevelsOfOneThatIsLeftAlone(t *testing.T) {
	c := Cycled{"a": {}, "b": {}, "capped": {}}
	for cycle := range 10 {
		mood := 1.0
		if cycle < 4 {
			mood = 0.3
		}
		c["a"][cycle], c["b"][cycle], c["capped"][cycle] = 20*mood, 10*mood, 1
	}
	levels := c.Levels()
	if got := levels["capped"]; math.Abs(got-1) > 1e-9 {
		t.Errorf("level %v, want 1", got)
	}
	if got := levels["a"] / levels["b"]; math.Abs(got-2) > 1e-9 {
		t.Errorf("ratio %v, want 2", got)
	}
}
