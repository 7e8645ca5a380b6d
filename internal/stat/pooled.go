package stat

import (
	"math"
	"math/rand/v2"
)

// This file tests short series of many samples together, because ten values of one sample
// tell little.

// Mirrored tests whether many samples change in one direction within their windows, as
// after a warm-up that is too short. changes[i][k] is how much higher sample i is after
// its k-th cut than before that cut (a difference of logarithms). Cuts are symmetric in the
// window: the last mirrors the first. The hypothesis is that every sample could as likely
// have run backwards in time, even if neighbouring values resemble each other. Run
// backwards, a sample has at each cut the negative change of the mirrored cut. The
// statistic is the largest change over all cuts; p compares it with that of all
// combinations of samples run backwards (beyond 13 samples with 4,096 random
// combinations). at is the cut of the largest change.
func Mirrored(changes [][]float64) (at int, p float64) {
	if len(changes) == 0 {
		return 0, 1
	}
	cuts := len(changes[0])
	scale := make([]float64, cuts) // equal for a cut and its mirror, so running backwards does not change it
	for k := range scale {
		for _, c := range changes {
			scale[k] += c[k]*c[k] + c[cuts-1-k]*c[cuts-1-k]
		}
	}
	largest := func(signs []float64) (at int, most float64) {
		for k := range cuts {
			sum := 0.0
			for i, c := range changes {
				if signs[i] < 0 {
					sum -= c[cuts-1-k]
				} else {
					sum += c[k]
				}
			}
			if scale[k] > 0 && math.Abs(sum)/math.Sqrt(scale[k]) > most {
				at, most = k, math.Abs(sum)/math.Sqrt(scale[k])
			}
		}
		return at, most
	}
	flips := signFlips(len(changes))
	at, observed := largest(flips[0])
	far := 0
	for _, signs := range flips {
		if _, size := largest(signs); size >= observed*(1-1e-12) {
			far++
		}
	}
	return at, float64(far) / float64(len(flips))
}

// steppedBlock is how many neighbouring values stay together when a series is permuted.
const steppedBlock = 2

// Stepped tests whether the series change their levels, each at its own place, more than
// chance would. The statistic is the sum of Pettitt's sizes over all series. p comes from
// random orders of each series' blocks of two neighbouring values, with a fixed seed, and
// is at least 1/2000. Values are permuted in blocks because a second that resembles the
// previous second is no step. p is 1 if no series has 8 values.
func Stepped(series [][]float64) (p float64) {
	const orders, enough, least = 1999, 10, 8
	size := func(values []float64) float64 {
		_, size := pettitt(values)
		n := float64(len(values))
		return size / math.Sqrt(n*n*n)
	}
	observed := 0.0
	var used [][]float64
	for _, values := range series {
		if len(values) >= least {
			observed += size(values)
			used = append(used, values)
		}
	}
	if len(used) == 0 {
		return 1
	}
	r := rand.New(rand.NewPCG(uint64(len(used)), 2))
	far := 0
	for done := 1; done <= orders; done++ {
		sum := 0.0
		for _, values := range used {
			sum += size(permutedBlocks(r, values))
		}
		if sum >= observed*(1-1e-12) {
			if far++; far == enough { // p is valid in spite of the early end (Besag and Clifford 1991)
				return float64(far) / float64(done)
			}
		}
	}
	return float64(far+1) / (orders + 1)
}

// permutedBlocks returns the series with its blocks in random order. The first block has
// one or two values, at random.
func permutedBlocks(r *rand.Rand, values []float64) []float64 {
	var blocks [][]float64
	if first := r.IntN(steppedBlock); first > 0 {
		blocks = append(blocks, values[:first])
		values = values[first:]
	}
	for len(values) > 0 {
		n := min(steppedBlock, len(values))
		blocks, values = append(blocks, values[:n]), values[n:]
	}
	var out []float64
	for _, i := range r.Perm(len(blocks)) {
		out = append(out, blocks[i]...)
	}
	return out
}
