package mesh

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Design is which pairs are measured: matchings of nodes, each of which leaves out at most one
// node (one if their number is odd). No two nodes meet twice.
type Design struct {
	Nodes  int
	Rounds [][]Pair // unordered pairs; both directions are measured
}

// NewDesign returns k matchings in random order; all of them, so that every two nodes meet,
// with k of 0 or k at or above the number of matchings. Rounds are those of the circle method
// (a 1-factorization of the complete graph) over nodes in random order.
func NewDesign(nodes, k int, rng *rand.Rand) Design {
	d := Design{Nodes: nodes}
	if nodes < 2 {
		return d
	}
	seats := nodes + nodes%2 // with an odd number, who meets the empty seat rests
	rounds := seats - 1
	if k <= 0 || k > rounds {
		k = rounds
	}
	order := rng.Perm(nodes)
	for _, r := range rng.Perm(rounds)[:k] {
		var round []Pair
		add := func(a, b int) {
			if a < nodes && b < nodes {
				round = append(round, Pair{order[a], order[b]})
			}
		}
		add(r, seats-1)
		for i := 1; i < seats/2; i++ {
			add((r+i)%rounds, (r-i+rounds)%rounds)
		}
		d.Rounds = append(d.Rounds, round)
	}
	return d
}

// Pairs returns how many unordered pairs the design has.
func (d Design) Pairs() int {
	n := 0
	for _, round := range d.Rounds {
		n += len(round)
	}
	return n
}

// Limits bound the traffic of a tournament.
type Limits struct {
	AtOnce int `json:"at_once"` // pairs that send at the same time
	// PerBorder is how many pairs may cross the same two zones at the same time; 0: any number.
	PerBorder int           `json:"per_border"`
	Rate      float64       `json:"rate"`     // bit/s that a sender sends at most; 0: no limit
	Slice     time.Duration `json:"slice_ns"` // how long a pair sends
	Gap       time.Duration `json:"gap_ns"`   // between slices
}

// DefaultLimits keep a cluster usable: 1,000 nodes with 4 matchings take 80 s of slices.
var DefaultLimits = Limits{AtOnce: 10, PerBorder: 2, Rate: 200e6, Slice: 200 * time.Millisecond, Gap: 50 * time.Millisecond}

// Slots returns the pairs that send at the same time, in order. In a slot no node sends to or
// receives from more than one other. The number of pairs rises from 1 over 2 and 4 to
// l.AtOnce, so that what harms the cluster is seen while it is small.
func (d Design) Slots(nodes []Node, l Limits) [][]Pair {
	var slots [][]Pair
	ramp := NewRamp(l.AtOnce)
	for _, waiting := range d.Rounds {
		for len(waiting) > 0 {
			var slot []Pair
			slot, waiting = ramp.Slot(nodes, waiting, l)
			slots = append(slots, slot, Backs(slot))
			ramp.Saw(nil)
		}
	}
	return slots
}

// Backs returns the other directions of the pairs.
func Backs(list []Pair) []Pair {
	out := make([]Pair, len(list))
	for i, p := range list {
		out[i] = p.Back()
	}
	return out
}

// borderOf returns the zones of the pair's nodes in alphabetical order.
func borderOf(nodes []Node, p Pair) [2]string {
	a, b := nodes[p.From].Zone, nodes[p.To].Zone
	if a > b {
		a, b = b, a
	}
	return [2]string{a, b}
}

// Cost is what the first pass takes, for a plan that people read before anything is sent.
type Cost struct {
	Pairs      int     `json:"pairs"`      // directions
	Seconds    float64 `json:"seconds"`    // of all slots
	NodeRate   float64 `json:"node_rate"`  // bit/s, the most that a node sends or receives
	BorderRate float64 `json:"zone_rate"`  // bit/s, the most that crosses two zones one way
	NodeBytes  float64 `json:"node_bytes"` // the most that a node sends in all
	// Of light probes: to how many others a node sends, how long they take, and what a node sends.
	Partners     int     `json:"partners"`
	LightSeconds float64 `json:"light_seconds"`
	LightRate    float64 `json:"light_rate"` // bit/s
}

// CostOf returns what the slots take under the limits.
func CostOf(nodes []Node, slots [][]Pair, l Limits) Cost {
	c := Cost{Seconds: float64(len(slots)) * (l.Slice + l.Gap).Seconds(), NodeRate: l.Rate}
	sent := make([]int, len(nodes))
	for _, slot := range slots {
		c.Pairs += len(slot)
		crossing := map[[2]string]float64{}
		for _, p := range slot {
			sent[p.From]++
			if border := borderOf(nodes, p); border[0] != border[1] {
				crossing[border] += l.Rate
				c.BorderRate = max(c.BorderRate, crossing[border])
			}
		}
	}
	if len(sent) > 0 {
		c.NodeBytes = float64(slices.Max(sent)) * l.Rate * l.Slice.Seconds() / 8
	}
	return c
}
