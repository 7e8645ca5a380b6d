package stat

import (
	"math"
	"math/rand/v2"
	"slices"
)

// This file tests whether the noise of a series lasts from one round into the next, and
// computes by how much that widens intervals.

// maxOrders is how many random orders of the rounds are tried.
const maxOrders = 1999

// MinSerial is the fewest rounds with which lasting noise can be found.
const MinSerial = 6

// Serial is the result of Serially.
type Serial struct {
	Correlation float64 // of the residuals of a round with those of the previous round; about -1/rounds if rounds are independent
	P           float64 // of the hypothesis that rounds are independent
	// Upper is the upper end of a one-sided 90 % interval of the correlation. The mean of
	// the correlation over random orders is subtracted.
	Upper float64
}

// maxLasting is the largest correlation that Inflation corrects for.
const maxLasting = 0.8

// upperNormal is the normal quantile of 90 %.
const upperNormal = 1.281552

// Inflation returns the factor, 1 or more, by which the standard error of a mean of rounds
// can be larger than with independent rounds: the root of (1+r)/(1-r), as for the mean of
// a long autoregressive series of correlation r. r is Upper, limited to 0 to 0.8. The
// factor is 1 if Upper is unknown.
func (s Serial) Inflation() float64 {
	if !(s.Upper > 0) {
		return 1
	}
	r := min(s.Upper, maxLasting)
	return math.Sqrt((1 + r) / (1 - r))
}

// Serially tests whether a series that was high in a round tends to be high in the next
// round, too. The effect of a round on all series of a table is subtracted first. A table
// holds the series of several contenders for one figure, as for Apart; all tables have the
// same rounds. If rounds are independent, every order of them is equally likely, so the
// test puts the rounds of all tables together into random orders (with a fixed seed).
// Series with a missing round and tables of fewer than two series are left out. All fields
// are NaN if nothing is left, or with fewer than six rounds.
func Serially(tables [][][]float64) Serial {
	var left [][]float64
	for _, table := range tables {
		left = append(left, residuals(table)...)
	}
	if len(left) == 0 || len(left[0]) < MinSerial {
		return Serial{math.NaN(), math.NaN(), math.NaN()}
	}
	order := indices(len(left[0]))
	observed := lagOne(left, order)
	r := rand.New(rand.NewPCG(uint64(len(order)), 16))
	reached, chance := 1, make([]float64, maxOrders)
	for i := range chance {
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		chance[i] = lagOne(left, order)
		if chance[i] >= observed-1e-12 {
			reached++
		}
	}
	return Serial{observed, float64(reached) / (maxOrders + 1), observed - Mean(chance) + upperNormal*Deviation(chance)}
}

// residuals returns the complete series minus their own means and minus the mean of each
// round, scaled to a mean square of 1, so that no series decides the test alone.
func residuals(table [][]float64) [][]float64 {
	var whole [][]float64
	for _, s := range takeLogs(table) {
		if !slices.ContainsFunc(s, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
			whole = append(whole, slices.Clone(s))
		}
	}
	if len(whole) < 2 {
		return nil
	}
	for _, s := range whole {
		center(s)
	}
	column := make([]float64, len(whole))
	for round := range whole[0] {
		for i, s := range whole {
			column[i] = s[round]
		}
		center(column)
		for i, s := range whole {
			s[round] = column[i]
		}
	}
	var left [][]float64
	for _, s := range whole {
		squares := 0.0
		for _, v := range s {
			squares += v * v
		}
		if squares == 0 {
			continue // all contenders behave alike
		}
		for i := range s {
			s[i] /= math.Sqrt(squares / float64(len(s)))
		}
		left = append(left, s)
	}
	return left
}

// center subtracts the mean from the values.
func center(values []float64) {
	mean := Mean(values)
	for i := range values {
		values[i] -= mean
	}
}

// lagOne returns the mean product of neighbouring values with the rounds in the order.
func lagOne(series [][]float64, order []int) float64 {
	sum := 0.0
	for _, s := range series {
		for k := 1; k < len(order); k++ {
			sum += s[order[k-1]] * s[order[k]]
		}
	}
	return sum / float64(len(series)*(len(order)-1))
}
