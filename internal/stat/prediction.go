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
	logs := logs(figures)
	mean := Mean(logs)
	if math.IsNaN(mean) {
		return s
	}
	s.Ratio = math.Exp(mean)
	if n := float64(len(logs)); n >= minRuns {
		half := studentQuantile(0.5+confidence/2, n-1) * Deviation(logs) * math.Sqrt(1+1/n)
		s.Low, s.High = math.Exp(mean-half), math.Exp(mean+half)
	}
	return s
}

// PredictRatios predicts several contenders' ratios of one more run, on a machine of its own: a
// row each, of the machines' ratios, a list of runs each. A machine counts once, however many
// of its runs there are: they are no draws of machines (random effects, two levels). From one
// run to another all ratios move together, in proportion to their logarithms: a machine on
// which the baseline is dear makes every other contender look cheap. The spread between
// machines is therefore pooled over the rows as a share of the logarithm. A row may lack
// machines that others have, and even have one: then its interval is as wide as the difference
// of two machines. To predict another hour of one machine, give each hour as a machine.
func PredictRatios(rows [][][]float64, confidence float64) []Shift {
	var squares, free float64
	machines := 0
	list := make([]Shift, len(rows))
	counts := make([]int, len(rows))
	for i, row := range rows {
		list[i] = Shift{math.NaN(), math.NaN(), math.NaN()}
		var means []float64
		for _, runs := range row {
			if len(runs) > 0 {
				means = append(means, Mean(logs(runs)))
			}
		}
		mean := Mean(means)
		if math.IsNaN(mean) || math.IsInf(mean, 0) {
			continue
		}
		counts[i], list[i].Ratio = len(means), math.Exp(mean)
		machines = max(machines, len(means))
		if len(means) < 2 {
			continue // says nothing of the spread between machines
		}
		for _, runs := range row {
			for _, v := range logs(runs) { // not of the machine's mean: another run has its own noise
				squares += (v - mean) * (v - mean) / float64(len(runs)) / (mean*mean + nearOne*nearOne)
			}
		}
		free += float64(len(means) - 1)
	}
	if machines < minRuns || squares == 0 {
		return list
	}
	relative := math.Sqrt(squares / free)
	// The ratios of a run move together: only machines are degrees of freedom.
	quantile := studentQuantile(0.5+confidence/2, float64(machines-1))
	for i := range rows {
		if counts[i] == 0 {
			continue
		}
		mean := math.Log(list[i].Ratio)
		half := quantile * relative * math.Hypot(mean, nearOne) * math.Sqrt(1+1/float64(counts[i]))
		list[i].Low, list[i].High = math.Exp(mean-half), math.Exp(mean+half)
	}
	return list
}

// logs returns the logarithms of figures; those that have none are NaN.
func logs(figures []float64) []float64 {
	list := make([]float64, len(figures))
	for i, v := range figures {
		list[i] = math.NaN()
		if v > 0 && !math.IsInf(v, 0) {
			list[i] = math.Log(v)
		}
	}
	return list
}

// nearOne is the logarithm of a ratio below which the spread between runs no longer shrinks
// with the ratio: what is left is the noise of the runs.
const nearOne = 0.25

// minRuns is the fewest runs, or machines, from which another is predicted.
const minRuns = 3 // two have one difference, of which little follows
