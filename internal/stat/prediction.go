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

// PredictTogether is Predict for several figures of the same runs, a row each. The spread
// between runs is pooled over the figures, which makes the intervals of figures alike. A row
// may have fewer figures than others.
func PredictTogether(rows [][]float64, confidence float64) []Shift {
	spread, ok := PooledSpread(rows, false)
	list := make([]Shift, len(rows))
	for i, row := range rows {
		list[i] = Predict(row, confidence)
		if n := float64(len(row)); ok && longest(rows) >= minRuns && n > 0 && list[i].Ratio > 0 {
			// The figures of a run may all move together: only runs are degrees of freedom.
			free := float64(min(spread.Free, longest(rows)-1))
			half := studentQuantile(0.5+confidence/2, free) * spread.Within * math.Sqrt(1+1/n)
			list[i].Low, list[i].High = list[i].Ratio*math.Exp(-half), list[i].Ratio*math.Exp(half)
		}
	}
	return list
}

// minRuns is the fewest runs from which one figure is predicted alone.
const minRuns = 3 // two runs have one difference, of which little follows

func longest(rows [][]float64) int {
	n := 0
	for _, row := range rows {
		n = max(n, len(row))
	}
	return n
}
