package mesh

import "github.com/cnibench/cnibench/internal/stat"

// Ramp raises the number of pairs that send at the same time, and goes back for good where the
// network does not bear it.
type Ramp struct {
	size, maximum int
	alone         []Strain // of slots with one pair
	strained      int      // slots in a row
	held          bool
}

// Strain is what the load of one pair did to the network.
type Strain struct {
	Again   float64 // share of TCP segments that were sent again, 0 to 1
	Dropped bool    // the receiver's backlog was full (softnet)
}

const (
	strainedShare = 0.01 // of segments sent again, over what one pair alone has
	strainedSlots = 2    // in a row, since one slot can be chance
)

// NewRamp returns a ramp from 1 to most pairs.
func NewRamp(maximum int) *Ramp { return &Ramp{size: 1, maximum: max(1, maximum)} }

// Slot takes the pairs of the next slot from those that wait, and returns the others.
func (r *Ramp) Slot(nodes []Node, waiting []Pair, l Limits) (slot, later []Pair) {
	crossing := map[[2]string]int{}
	for _, p := range waiting {
		border := borderOf(nodes, p)
		full := l.PerBorder > 0 && border[0] != border[1] && crossing[border] >= l.PerBorder
		if len(slot) == r.size || full {
			later = append(later, p)
			continue
		}
		crossing[border]++
		slot = append(slot, p)
	}
	return slot, later
}

// Saw takes what a slot did and chooses the size of the next one. A slot is strained if its
// median pair sends over a hundredth of the segments more often than the median pair alone did,
// or if most receivers dropped packets and alone they did not. One bad link is no strain.
func (r *Ramp) Saw(pairs []Strain) {
	if r.size == 1 {
		r.alone = append(r.alone, pairs...)
	} else if strained(pairs, r.alone) {
		if r.strained++; r.strained >= strainedSlots {
			r.size, r.strained, r.held = max(1, r.size/2), 0, true
		}
		return
	}
	r.strained = 0
	if !r.held {
		r.size = min(r.maximum, 2*r.size)
	}
}

// Held returns the number of pairs at which the ramp was held back; 0: it was not.
func (r *Ramp) Held() int {
	if !r.held {
		return 0
	}
	return r.size
}

func strained(pairs, alone []Strain) bool {
	if len(pairs) == 0 || len(alone) == 0 {
		return false
	}
	again, dropped := middleStrain(pairs)
	usual, usually := middleStrain(alone)
	return again > usual+strainedShare || dropped && !usually
}

// middleStrain returns the median share of segments sent again, and whether most receivers
// dropped packets.
func middleStrain(list []Strain) (again float64, dropped bool) {
	var shares []float64
	n := 0
	for _, s := range list {
		shares = append(shares, s.Again)
		if s.Dropped {
			n++
		}
	}
	return stat.Median(shares), 2*n > len(list)
}
