// Package bench runs a plan: for every round and contender it brings the
// network up, checks that pods reach each other, drives each step while the
// nodes are recorded, seals the samples and takes the network down. It sees
// arenas only through arena.Arena, computes no statistics across samples and
// prints nothing. Next: run.go, then step.go.
package bench

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
)

// Visit is one contender in one round with the steps to take, in order.
type Visit struct {
	Round int // from 1
	Entry result.Entry
	Steps []result.Step
}

// Visits expands a plan: in every round all contenders and, for each, all
// steps, both in an order drawn from the plan's seed and the round, so that a
// resumed run goes on in the same order.
func Visits(p *result.Plan) []Visit {
	var visits []Visit
	for round := 1; round <= p.Rounds; round++ {
		order := shuffle(p.Contenders, p.Seed, round, "")
		for _, entry := range order {
			steps := shuffle(p.Steps, p.Seed, round, entry.ID+"@"+entry.Underlay)
			steps = slices.DeleteFunc(steps, func(s result.Step) bool { return !p.Takes(entry.ID, s.ID) })
			visits = append(visits, Visit{Round: round, Entry: entry, Steps: steps})
		}
	}
	return visits
}

// groups splits visits into those that are made together: all of a round if contenders are
// up at the same time, else each alone.
func groups(p *result.Plan, visits []Visit) [][]Visit {
	var list [][]Visit
	for _, v := range visits {
		if n := len(list); n > 0 && list[n-1][0].Round == v.Round && p.Together > 1 {
			list[n-1] = append(list[n-1], v)
			continue
		}
		list = append(list, []Visit{v})
	}
	return list
}

// stepsOf returns the steps of visits that are made together. A single visit keeps its
// own order; several share an order drawn for the round.
func stepsOf(p *result.Plan, visits []Visit) []result.Step {
	switch len(visits) {
	case 0:
		return nil
	case 1:
		return visits[0].Steps
	}
	return shuffle(p.Steps, p.Seed, visits[0].Round, "")
}

// shuffle returns a copy of list in an order drawn from seed, round and name.
func shuffle[T any](list []T, seed uint64, round int, name string) []T {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	rng := rand.New(rand.NewPCG(seed, uint64(round)^h.Sum64()))
	out := append([]T(nil), list...)
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// dropSealed leaves out the steps that are sealed already, and visits without other steps.
func dropSealed(visits []Visit, sealed map[result.Key]bool) []Visit {
	return dropDone(visits, func(v Visit, s result.Step) bool {
		return sealed[result.Key{Contender: v.Entry.ID, Underlay: v.Entry.Underlay, Step: s.ID, Round: v.Round}]
	})
}

// dropDone returns the visits with the steps that are not done, without those that have
// none left.
func dropDone(visits []Visit, done func(Visit, result.Step) bool) []Visit {
	var rest []Visit
	for _, v := range visits {
		var steps []result.Step
		for _, s := range v.Steps {
			if !done(v, s) {
				steps = append(steps, s)
			}
		}
		if len(steps) > 0 {
			v.Steps = steps
			rest = append(rest, v)
		}
	}
	return rest
}

// stepsIn counts the steps of visits.
func stepsIn(visits []Visit) (n int) {
	for _, v := range visits {
		n += len(v.Steps)
	}
	return n
}
