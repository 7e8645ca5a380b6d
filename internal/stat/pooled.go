package stat

import (
	"math"
	"math/rand/v2"
)

// This file pools short series of many samples: of one alone, ten values tell little.

// Mirrored tests whether many samples change in one direction within their windows, as
// they do where a warm-up was too short. changes[i][k] is by how much sample i is higher
// after its k-th cut than before it (a difference of logarithms); cuts are symmetric in
// the window, so that the last one mirrors the first. The hypothesis is that a sample
// runs backwards as likely as forwards, whatever its values have to do with their
// neighbours: then the change at a cut is as likely as the negative one at the mirrored cut.
// p is of the largest change over all cuts, by all combinations of samples run backwards
// (4,096 of them beyond 13 samples); at is the cut of the largest.
func Mirrored(changes [][]float64) (at int, p float64) {
	if len(changes) == 0 {
		return 0, 1
	}
	cuts := len(changes[0])
	scale := make([]float64, cuts) // the same for a cut and its mirror, so that flips leave it
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

// Stepped tests whether series change their level somewhere, each at a place of its own,
// more than the order of their values would by chance: the sum of Pettitt's sizes over all
// series. p is from random orders of each series' blocks of two neighbouring values, with
// a fixed seed, no less than 1/2000: seconds that resemble the one before are no step.
// It is 1 where no series has 8 values or more.
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
			if far++; far == enough { // Besag and Clifford 1991: p is exact all the same
				return float64(far) / float64(done)
			}
		}
	}
	return float64(far+1) / (orders + 1)
}

// permutedBlocks is the series with its blocks in random order; they begin at the first
// or second value.
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
