package stat

import "math"

// This file predicts what another run will give from several runs. The interval of one run
// knows nothing of another hour or machine, which moves a ratio by more than rounds do.

// Predict returns an interval that holds the figure of one more run of the same kind with at
// least the confidence, from the figures of several runs: random effects over runs. The runs'
// logarithms are taken for normal with one spread, which contains both what moves between
// runs and the noise within them. Ratio is the geometric mean. Low and High are NaN with
// fewer than three figures, whose spread says too little, or if a figure is not positive.
func Predict(figures []float64, confidence float64) Shift {
	s := Shift{math.NaN(), math.NaN(), math.NaN()}
	logs := make([]float64, len(figures))
	for i, v := range figures {
		if !(v > 0) || math.IsInf(v, 0) {
			return s
		}
		logs[i] = math.Log(v)
	}
	if len(logs) == 0 {
		return s
	}
	mean := Mean(logs)
	s.Ratio = math.Exp(mean)
	if n := float64(len(logs)); n >= minRuns {
		half := studentQuantile(0.5+confidence/2, n-1) * Deviation(logs) * math.Sqrt(1+1/n)
		s.Low, s.High = math.Exp(mean-half), math.Exp(mean+half)
	}
	return s
}

// PredictRatios is Predict for several contenders' ratios of the same runs, a row each. From
// one run to another all ratios move together, in proportion to their logarithms: a machine on
// which the baseline is dear makes every other contender look cheap. The spread between runs
// is therefore pooled over the rows as a share of the logarithm. A row may have fewer figures
// than others, and even one: then its interval is as wide as the difference of two runs.
func PredictRatios(rows [][]float64, confidence float64) []Shift {
	var squares, free float64
	list := make([]Shift, len(rows))
	for i, row := range rows {
		list[i] = Predict(row, confidence)
		list[i].Low, list[i].High = math.NaN(), math.NaN()
		mean := math.Log(list[i].Ratio)
		if math.IsNaN(mean) {
			continue
		}
		for _, v := range row {
			d := math.Log(v) - mean
			squares += d * d / (mean*mean + nearOne*nearOne)
		}
		free += float64(len(row) - 1)
	}
	if longest(rows) < minRuns || squares == 0 {
		return list
	}
	relative := math.Sqrt(squares / free)
	// The ratios of a run move together: only runs are degrees of freedom.
	quantile := studentQuantile(0.5+confidence/2, float64(longest(rows)-1))
	for i, row := range rows {
		mean := math.Log(list[i].Ratio)
		half := quantile * relative * math.Hypot(mean, nearOne) * math.Sqrt(1+1/float64(len(row)))
		list[i].Low, list[i].High = math.Exp(mean-half), math.Exp(mean+half)
	}
	return list
}

// nearOne is the logarithm of a ratio below which the spread between runs no longer shrinks
// with the ratio: what is left is the noise of the runs.
const nearOne = 0.25

// minRuns is the fewest runs from which one figure is predicted alone.
const minRuns = 3 // two runs have one difference, of which little follows

func longest(rows [][]float64) int {
	n := 0
	for _, row := range rows {
		n = max(n, len(row))
	}
	return n
}
