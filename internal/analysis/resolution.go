package analysis

import (
	"fmt"
	"math"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// wantedChange is the relative difference for which reports say how many rounds show it.
const wantedChange = 0.05

// detectable returns the smallest relative difference that n rounds with noise of that
// standard deviation would show (nil: none), and how many rounds would show 5 %.
func detectable(sd float64, n int, needs func(n int) float64) (mdd *float64, rounds int) {
	if math.IsNaN(sd) {
		return nil, 0
	}
	rounds = stat.RoundsFor(math.Log1p(wantedChange)/sd, needs)
	minimum := needs(n)
	if math.IsInf(minimum, 1) {
		return nil, rounds
	}
	change := math.Expm1(minimum * sd)
	if math.IsInf(change, 1) {
		return nil, rounds
	}
	return &change, rounds
}

// noise returns the standard deviation of the logarithms that a contender is tested by,
// their number, and needs, which gives the least difference in standard deviations that n
// values show. The noise of a contender is that of its ratios to the baseline or, if rounds
// are not paired, that of both; the baseline's is its own. It is NaN if unknown.
func (e *Evidence) noise(at FigureKey, contender string) (sd float64, n int, needs func(n int) float64) {
	values := e.Figures[at][contender].Values()
	if contender == e.Run.Baseline {
		return stat.LogDeviation(values), len(values), stat.DetectableRanks
	}
	ratios, ok := e.Ratios(at, contender)
	switch {
	case !ok:
		return math.NaN(), 0, nil
	case e.Unpaired():
		base := e.Figures[e.BaseOf(at)][e.Run.Baseline].Values()
		both := math.Hypot(stat.LogDeviation(values), stat.LogDeviation(base)) / math.Sqrt2
		return both, min(len(values), len(base)), stat.DetectableRanks
	}
	return stat.LogDeviation(ratios) * e.Autocorrelation[at.ComparableSet].DetectableBy(), len(ratios), stat.DetectablePaired
}

// maxRounds is the largest number of rounds that a report suggests.
const maxRounds = 60

// Wanted is how many rounds a run should have: the one number that every report gives.
type Wanted struct {
	Rounds int `json:"rounds"`
	// Shows is the difference to the baseline that a typical contender's goodput and median
	// latency would show with so many rounds, 0.05 for 5 %; 0: the rounds only give
	// intervals and letters, because there are too few to know the noise.
	Shows   float64 `json:"shows,omitempty"`
	Minutes float64 `json:"minutes,omitempty"` // that they would take; 0 is unknown
}

// Text returns "about 48 rounds (18 min) would show 5 %".
func (w *Wanted) Text() string {
	s := fmt.Sprintf("about %d rounds", w.Rounds)
	if w.Minutes > 0 {
		s += fmt.Sprintf(" (%.0f min)", math.Max(1, w.Minutes))
	}
	if w.Shows == 0 {
		return s + " would give intervals and letters"
	}
	return s + fmt.Sprintf(" would show %.0f %%", math.Ceil(100*w.Shows-1e-9))
}

// AdviseRounds returns how many rounds the run should have; nil if it has them, or has nothing to
// compare, or is imported.
func (e *Evidence) AdviseRounds() *Wanted {
	rounds, contenders := e.Rounds(), 0
	sd, series := 0.0, 0 // the noisier of the two main figures
	have := map[result.Aspect]bool{}
	for _, at := range e.Keys {
		aspect := at.Row().Aspect
		if !e.IsMainMetric(at) || have[aspect] || e.Lossy(e.BaseOf(at), e.Run.Baseline) || len(e.SelectRankable(at, e.Figures[at])) == 0 {
			continue
		}
		have[aspect] = true
		contenders = max(contenders, len(e.Figures[at]))
		var noise []float64
		for c := range e.Figures[at] {
			if own, n, _ := e.noise(at, c); c != e.Run.Baseline && n > 1 && !math.IsNaN(own) {
				noise = append(noise, own)
			}
		}
		if own := stat.Median(noise); own > sd {
			sd, series = own, len(noise)
		}
	}
	if contenders < 2 || e.Run.Arena == "imported" {
		return nil
	}
	w := &Wanted{Rounds: RoundsForContenders(contenders)}
	if series > 0 && rounds >= stat.NeedsForInterval(e.Opt.Confidence) && rounds >= RoundsForRanks(contenders, e.Unpaired(), e.Opt.Alpha) {
		w.Shows = wantedChange
		w.Rounds = stat.RoundsFor(math.Log1p(wantedChange)/sd, stat.DetectablePaired)
		if w.Rounds == 0 || w.Rounds > maxRounds {
			w.Rounds, w.Shows = maxRounds, math.Expm1(stat.DetectablePaired(maxRounds)*sd)
		}
	}
	if w.Rounds <= rounds {
		return nil
	}
	w.Minutes = float64(w.Rounds) * e.roundTime().Minutes()
	return w
}

// roundTime returns how long a round took; 0 if the samples do not tell.
func (e *Evidence) roundTime() time.Duration {
	var first, last time.Time
	for i := range e.Samples {
		s := &e.Samples[i]
		if s.Started.IsZero() {
			continue
		}
		if end := s.Started.Add(time.Duration(float64(s.Elapsed) * 1e9)); end.After(last) {
			last = end
		}
		if first.IsZero() || s.Started.Before(first) {
			first = s.Started
		}
	}
	if rounds := e.Rounds(); rounds > 0 && last.After(first) {
		return last.Sub(first) / time.Duration(rounds)
	}
	return 0
}

// RoundsWanted returns the number of rounds of Wanted; 0 if there is none.
func (e *Evidence) RoundsWanted() int {
	if w := e.AdviseRounds(); w != nil {
		return w.Rounds
	}
	return 0
}

// Spread is what rounds of one contender differ by in a figure, pooled over contenders.
type Spread struct {
	Kernel   string `json:"kernel"`
	Underlay string `json:"underlay"`
	Step     string `json:"step"`
	Metric   string `json:"metric"`
	// Within is the usual relative difference of a round from its contender's mean, and
	// Different the smallest difference of two contenders that means something: chance gives
	// it to no pair in 19 of 20 runs.
	Within    float64 `json:"within"`
	Different float64 `json:"different"`
}

// Spreads returns the spread of each main figure whose rounds are too few for letters.
func (e *Evidence) Spreads() []Spread {
	var list []Spread
	for _, at := range e.Keys {
		contenders := e.SelectRankable(at, e.Figures[at])
		if !e.IsMainMetric(at) || e.Rounds() >= RoundsForRanks(len(contenders), e.Unpaired(), e.Opt.Alpha) {
			continue
		}
		var rows [][]float64
		for _, c := range e.OrderContenders(contenders) {
			rows = append(rows, contenders[c].Values())
		}
		if s, ok := stat.PooledSpread(rows, !e.Unpaired()); ok {
			list = append(list, Spread{at.Kernel, at.Underlay, at.Step, at.Metric, math.Expm1(s.Within), math.Expm1(s.Different)})
		}
	}
	return list
}
