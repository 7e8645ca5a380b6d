package stat

import "math"

// This file estimates, for planning, how small a difference a test can find. It assumes
// normal noise; docs/methods.md derives the formulas.

// The tables below are for these chances: DetectAlpha of a false alarm, DetectPower of
// finding a real difference.
const (
	DetectAlpha = 0.05
	DetectPower = 0.80
)

// asymptote is the sum of the normal quantiles of 1−DetectAlpha/2 and DetectPower.
const asymptote = 1.959964 + 0.841621

// pairedShifts holds, by the number of values, the smallest shift of normal values (in
// their standard deviations) that SignedRank finds with DetectPower. A simulation gave the
// shifts, and a test repeats it. With fewer than 6 values even the largest shift gives no p
// below DetectAlpha.
var pairedShifts = []float64{6: 1.79, 7: 1.33, 8: 1.19, 9: 1.09, 10: 1.00, 11: 0.93, 12: 0.90}

// rankShifts holds the same for MannWhitney, by the number of values on each side.
var rankShifts = []float64{4: 2.89, 5: 2.30, 6: 1.91, 7: 1.77, 8: 1.53, 9: 1.52, 10: 1.40, 11: 1.32, 12: 1.25}

// DetectablePaired returns the smallest shift of n paired differences, in standard
// deviations of the differences, that SignedRank finds at DetectAlpha with
// DetectPower; +Inf if n is too small to find any shift.
func DetectablePaired(n int) float64 {
	return detectable(pairedShifts, n, asymptote/math.Sqrt(float64(n))*(1+1.4/float64(n)))
}

// DetectableRanks returns the same for MannWhitney of n values against n values, in
// standard deviations of one side.
func DetectableRanks(n int) float64 {
	return detectable(rankShifts, n, asymptote*math.Sqrt(2/float64(n))*math.Sqrt(math.Pi/3)*(1+0.8/float64(n)))
}

// apartShifts holds the smallest shift between two of several series that Apart finds with
// DetectPower, in standard deviations of the pair's differences.
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

// DetectableApart returns the smallest shift between two of several series of n rounds
// that Apart finds at DetectAlpha with DetectPower, in standard deviations of the pair's
// differences. It interpolates between the rows of apartShifts by the logarithm of the
// number of series. Beyond 12 rounds the shift falls with the root of the rounds, corrected
// by a term that simulations gave.
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

// wantedShift is the difference of two series that a run shall find by default, in standard
// deviations of one series' noise from round to round.
const wantedShift = 2

// usualFigures is how many figures a run usually has, at least, from which Serially can
// tell whether noise lasts from round to round.
const usualFigures = 2

// RoundsToTellApart returns how many rounds find, with DetectPower, a difference of
// wantedShift between two of several series whose noise is independent from round to round.
func RoundsToTellApart(series int) int {
	series = max(series, 2)
	return RoundsFor(wantedShift/math.Sqrt2, func(n int) float64 {
		usual := Serial{Upper: upperNormal / math.Sqrt(float64(usualFigures*(series-1)*n))}
		return DetectableApart(n, series) * usual.DetectableBy()
	})
}

// detectable returns the table's shift for n, or beyond if n is larger than the table:
// the asymptote with a term that simulations gave, which is within 2 % there.
func detectable(table []float64, n int, beyond float64) float64 {
	switch last := len(table) - 1; {
	case n < 0 || n <= last && table[n] == 0:
		return math.Inf(1)
	case n <= last:
		return table[n]
	}
	return beyond
}

// DetectableBy returns the factor by which the smallest detectable difference is larger
// than with independent rounds. That difference has two parts: the test's threshold, and
// the distance that exceeds the threshold in DetectPower of the runs. Inflation enlarges
// only the threshold. Its share of the difference, 0.8, was found by simulation.
func (s Serial) DetectableBy() float64 { return 1 + 0.8*(s.Inflation()-1) }

// maxRounds is where RoundsFor stops, because nobody measures more rounds.
const maxRounds = 100_000

// RoundsFor returns the smallest n for which needs(n) is at most shift; 0 if that takes
// more than maxRounds. needs is one of the functions above, and falls with n.
func RoundsFor(shift float64, needs func(n int) float64) int {
	if !(needs(maxRounds) <= shift) {
		return 0
	}
	shift = min(shift, math.MaxFloat64) // needs is +Inf for an n that finds no shift at all
	low, high := 1, maxRounds
	for low < high {
		if middle := (low + high) / 2; needs(middle) <= shift {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// LogDeviation returns the standard deviation of the values' natural logarithms, which
// for small noise is the relative noise. It is NaN with fewer than two values, or if a
// value is not positive.
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
