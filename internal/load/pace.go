package load

import (
	"math"
	"time"
)

// A plan consists of two pure functions. The first returns how many requests are
// expected before request n (constant or Poisson arrivals), the second (pace) the time
// at which that many are expected. So neither a slow server nor a late sender changes
// the plan, requests that wait need no memory, and any arrivals go with any pace.

// segment is a stretch of time in which the rate is constant or changes
// evenly.
type segment struct {
	from  float64 // begin of the segment, nanoseconds after the start of the plan
	count float64 // requests expected before the segment
	rate  float64 // at the begin, 1/s, above 0
	slope float64 // of the rate, 1/s²
}

// pace is the rate over time: segments in order, of which the last never ends.
type pace []segment

// newPace returns the rate that c asks for, the warm-up at the first rate included.
func newPace(c Config) pace {
	length, warmup := c.Duration.Seconds(), c.Warmup.Seconds()
	switch {
	case len(c.Steps) > 0:
		p := pace{{rate: c.Steps[0]}}
		from, count := float64(c.Warmup), c.Steps[0]*warmup
		for i, rate := range c.Steps {
			if i > 0 {
				p = append(p, segment{from: from, count: count, rate: rate})
			}
			from += float64(c.Duration)
			count += rate * length
		}
		return p
	case c.Ramp > 0:
		top := float64(c.Warmup + c.Duration)
		return pace{
			{rate: c.Rate},
			{from: float64(c.Warmup), count: c.Rate * warmup, rate: c.Rate, slope: (c.Ramp - c.Rate) / length},
			{from: top, count: c.Rate*warmup + (c.Rate+c.Ramp)/2*length, rate: c.Ramp},
		}
	}
	return pace{{rate: c.Rate}}
}

// never is later than any window's end.
const never = 1 << 62

// at returns the time after the start at which x requests are expected, or never if
// that time is later.
func (p pace) at(x float64) time.Duration {
	i := len(p) - 1
	for i > 0 && p[i].count > x {
		i--
	}
	s := p[i]
	beyond := x - s.count // requests since the segment began
	if s.slope == 0 {
		return time.Duration(min(never, s.from+beyond*1e9/s.rate))
	}
	// beyond = rate·t + slope·t²/2, solved for t in the form that is exact for
	// small slopes. At the end of a falling ramp, rounding can make the radicand negative.
	root := math.Sqrt(max(0, s.rate*s.rate+2*s.slope*beyond))
	return time.Duration(min(never, s.from+2e9*beyond/(s.rate+root)))
}

// schedule walks along a plan, request by request or in strides.
type schedule struct {
	pace    pace
	poisson bool
	seed    uint64

	n        int64   // number of the request, from 0
	expected float64 // requests expected before the request
	due      int64   // time of the request, nanoseconds after the start
}

// newSchedule returns c's plan at request n.
func newSchedule(c Config, n int64) schedule {
	s := schedule{pace: newPace(c), poisson: c.Poisson, seed: c.Seed, n: -1}
	if c.open() {
		s.advance(n + 1)
	}
	return s
}

// advance moves s k requests forward.
func (s *schedule) advance(k int64) {
	if s.poisson {
		for range k {
			s.n++
			s.expected += gap(s.seed, s.n)
		}
	} else {
		s.n += k
		s.expected = float64(s.n)
	}
	s.due = int64(s.pace.at(s.expected))
}

// gap returns the n-th of the exponentially distributed numbers of mean 1 that seed
// gives: the gaps between the requests of a Poisson process at rate 1.
func gap(seed uint64, n int64) float64 {
	const step = 1.0 / (1 << 53) // from one float64 in [0, 1) to the next
	return -math.Log1p(-float64(splitMix64(seed+uint64(n)*0x9e3779b97f4a7c15)>>11) * step)
}

// splitMix64 is the output function of the generator SplitMix64 (Steele, Lea and Flood,
// "Fast splittable pseudorandom number generators", 2014) for a counter z.
func splitMix64(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
