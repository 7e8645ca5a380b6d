package stat

import "math"

// This file says how small a difference a test can see: an estimate for
// planning, in which noise is normal; docs/statistics.md derives it.

// The chance of a false alarm and of seeing a difference that is there, which
// the tables below are for.
const (
	DetectAlpha = 0.05
	DetectPower = 0.80
)

// asymptote is the sum of the normal quantiles of 1−DetectAlpha/2 and DetectPower.
const asymptote = 1.959964 + 0.841621

// pairedShifts are, from 6 values on, the shifts of normal values (in their
// standard deviations) that SignedRank finds with DetectPower; found by simulation,
// and checked by one. With fewer values no shift, however large, gives a p
// below DetectAlpha.
var pairedShifts = []float64{6: 1.79, 7: 1.33, 8: 1.19, 9: 1.09, 10: 1.00, 11: 0.93, 12: 0.90}

// rankShifts are the same for MannWhitney of as many values on each side.
var rankShifts = []float64{4: 2.89, 5: 2.30, 6: 1.91, 7: 1.77, 8: 1.53, 9: 1.52, 10: 1.40, 11: 1.32, 12: 1.25}

// DetectablePaired is the smallest shift of n paired differences, in standard
// deviations of the differences, that SignedRank finds at DetectAlpha with
// DetectPower. +Inf where n is too small to find any.
func DetectablePaired(n int) float64 {
	return detectable(pairedShifts, n, asymptote/math.Sqrt(float64(n))*(1+1.4/float64(n)))
}

// DetectableRanks is the same for MannWhitney of n values against n others,
// in standard deviations of one side.
func DetectableRanks(n int) float64 {
	return detectable(rankShifts, n, asymptote*math.Sqrt(2/float64(n))*math.Sqrt(math.Pi/3)*(1+0.8/float64(n)))
}

// apartShifts are the same for one pair of so many series that Apart tells apart; shifts
// are in standard deviations of the pair's differences.
var apartShifts = []struct {
	series int
	shifts []float64 // from 6 rounds to 12
}{
	{2, []float64{1.77, 1.34, 1.14, 1.08, 1.01, 0.95, 0.90}},
	{3, []float64{1.88, 1.44, 1.28, 1.17, 1.09, 1.03, 0.98}},
	{5, []float64{2.02, 1.56, 1.43, 1.31, 1.23, 1.16, 1.09}},
	{9, []float64{2.13, 1.72, 1.55, 1.43, 1.33, 1.26, 1.20}},
	{16, []float64{2.29, 1.81, 1.71, 1.55, 1.49, 1.41, 1.33}},
}

// DetectableApart is the smallest shift between two of so many series of n rounds that
// Apart finds at DetectAlpha with DetectPower, in standard deviations of their differences.
// Between the rows of the table it goes with the logarithm of the number of series, and
// beyond 12 rounds with the root of the rounds, and a term that simulations gave.
func DetectableApart(n, series int) float64 {
	const first, last = 6, 12
	if n < first || series < 2 {
		return math.Inf(1)
	}
	row := 1
	for row < len(apartShifts)-1 && apartShifts[row].series < series {
		row++
	}
	below, above := apartShifts[row-1], apartShifts[row]
	part := math.Log(float64(series)/float64(below.series)) / math.Log(float64(above.series)/float64(below.series))
	at := min(n, last) - first
	shift := below.shifts[at] + part*(above.shifts[at]-below.shifts[at])
	if n > last {
		shift *= math.Sqrt(last/float64(n)) * (1 + 0.8/float64(n)) / (1 + 0.8/last)
	}
	return shift
}

// wantedShift is how far apart two series are that a run should tell apart unless told
// otherwise: two standard deviations of what a round does to one of them.
const wantedShift = 2

// usualFigures is how many figures of its steps a run has at least, as a rule, to tell from
// whether noise lasts from round to round.
const usualFigures = 2

// RoundsToTellApart is how many rounds find, with DetectPower, a difference of two standard
// deviations between two of so many series, whose noise begins anew in each round.
func RoundsToTellApart(series int) int {
	series = max(series, 2)
	return RoundsFor(wantedShift/math.Sqrt2, func(n int) float64 {
		usual := Serial{Upper: upperNormal / math.Sqrt(float64(usualFigures*(series-1)*n))}
		return DetectableApart(n, series) * usual.DetectableBy()
	})
}

// detectable takes small n from the table; beyond it the asymptote, with a
// term that simulations gave, is within 2 %.
func detectable(table []float64, n int, beyond float64) float64 {
	switch last := len(table) - 1; {
	case n < 0 || n <= last && table[n] == 0:
		return math.Inf(1)
	case n <= last:
		return table[n]
	}
	return beyond
}

// DetectableBy is by how much larger the smallest detectable difference is than that of
// independent rounds: Inflation makes the part of it larger that a test must exceed by
// chance, and not the part that makes it exceed that in DetectPower of the runs. Simulations
// gave the share of the first.
func (s Serial) DetectableBy() float64 { return 1 + 0.8*(s.Inflation()-1) }

// mostRounds is where RoundsFor stops: nobody measures more.
const mostRounds = 100_000

// RoundsFor is the smallest n for which needs(n), which is one of the
// functions above, is no more than shift; 0 where that takes more than anybody
// measures.
func RoundsFor(shift float64, needs func(n int) float64) int {
	if !(needs(mostRounds) <= shift) {
		return 0
	}
	shift = min(shift, math.MaxFloat64) // some n find nothing, however large
	low, high := 1, mostRounds          // needs falls with n
	for low < high {
		if middle := (low + high) / 2; needs(middle) <= shift {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// LogDeviation is the standard deviation of the values' natural logarithms:
// the relative noise, for small ones. NaN with fewer than two values, or with
// one that is not positive.
func LogDeviation(values []float64) float64 {
	logs := make([]float64, len(values))
	for i, v := range values {
		logs[i] = math.Log(v)
	}
	if sd := Deviation(logs); !math.IsInf(sd, 0) {
		return sd
	}
	return math.NaN()
}

// Mean is the arithmetic mean; NaN without values.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// Deviation is the standard deviation. NaN with fewer than two values.
func Deviation(values []float64) float64 {
	if len(values) < 2 {
		return math.NaN()
	}
	var mean, squares float64
	for i, v := range values { // Welford's recurrence
		d := v - mean
		mean += d / float64(i+1)
		squares += d * (v - mean)
	}
	return math.Sqrt(squares / float64(len(values)-1))
}
