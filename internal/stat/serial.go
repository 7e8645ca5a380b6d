package stat

import (
	"math"
	"math/rand/v2"
	"slices"
)

// This file asks whether what a round does to one series lasts into the next round, and by
// how much that widens intervals.

// mostOrders is how many orders of the rounds are tried.
const mostOrders = 1999

// leastSerial is the fewest rounds in which a lasting noise can be told.
const leastSerial = 6

// Serial is what Serially finds.
type Serial struct {
	Correlation float64 // of a round with the one before, of what is left of the values; chance alone makes it about -1/rounds
	P           float64
	// Upper is the upper end of a one-sided interval of 90 % for the correlation, without the
	// part that chance makes; the standard error is that of random orders.
	Upper float64
}

// mostLasting is the largest correlation that Inflation corrects for.
const mostLasting = 0.8

// upperNormal is the normal quantile of 90 %.
const upperNormal = 1.281552

// Inflation is by how much longer the standard error of a mean of rounds can be than that
// of independent rounds, 1 or more: the root of (1+r)/(1-r), with which the mean of an
// autoregressive series of correlation r varies in many rounds. r is Upper, at least 0 and
// at most 0.8. It is 1 where Upper is unknown.
func (s Serial) Inflation() float64 {
	if !(s.Upper > 0) {
		return 1
	}
	r := min(s.Upper, mostLasting)
	return math.Sqrt((1 + r) / (1 - r))
}

// Serially tests whether the rounds of series are in an order that matters once what
// a round does to all series of a table is taken out: whether a series that was high in a
// round tends to be high in the next. A table is what contenders did in the same rounds at
// one place, as of Apart; all tables have the same rounds. If rounds were independent, any
// order of them would be as likely, so all tables are put into random orders together (with
// a fixed seed). Series with a missing round and tables of fewer than two series are left
// out; P is NaN where nothing is left, or with fewer than six rounds.
func Serially(tables [][][]float64) Serial {
	var left [][]float64
	for _, table := range tables {
		left = append(left, residuals(table)...)
	}
	if len(left) == 0 || len(left[0]) < leastSerial {
		return Serial{math.NaN(), math.NaN(), math.NaN()}
	}
	order := indices(len(left[0]))
	observed := lagOne(left, order)
	r := rand.New(rand.NewPCG(uint64(len(order)), 16))
	reached, chance := 1, make([]float64, mostOrders)
	for i := range chance {
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		chance[i] = lagOne(left, order)
		if chance[i] >= observed-1e-12 {
			reached++
		}
	}
	return Serial{observed, float64(reached) / (mostOrders + 1), observed - Mean(chance) + upperNormal*Deviation(chance)}
}

// residuals are the series without their own means and without the mean of each round.
// Each has a mean square of one, so that no series decides alone.
func residuals(table [][]float64) [][]float64 {
	var whole [][]float64
	for _, s := range scaled(table) {
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
			continue // of contenders that are all the same
		}
		for i := range s {
			s[i] /= math.Sqrt(squares / float64(len(s)))
		}
		left = append(left, s)
	}
	return left
}

// center takes the mean out.
func center(values []float64) {
	mean := Mean(values)
	for i := range values {
		values[i] -= mean
	}
}

// lagOne is the mean product of neighbours in that order of the rounds.
func lagOne(series [][]float64, order []int) float64 {
	sum := 0.0
	for _, s := range series {
		for k := 1; k < len(order); k++ {
			sum += s[order[k-1]] * s[order[k]]
		}
	}
	return sum / float64(len(series)*(len(order)-1))
}
