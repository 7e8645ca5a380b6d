package mesh

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cnibench/cnibench/internal/stat"
)

// Trial is one measurement of the second pass: a suspect's pair and, in the same cycle and in
// random order, control pairs that do not use what is suspected.
type Trial struct {
	Suspect  int // index in the list of suspects
	Cycle    int // from 1
	Path     string
	Metric   Metric
	Test     Pair
	Controls []Pair
}

// Outcome is what a trial gave, in the units of its metric. Probes are those of the test and of
// all controls, where the metric is Loss.
type Outcome struct {
	Trial
	Value         float64
	ControlValues []float64
	Probes        int
}

const (
	partnersOfSuspect = 3 // known-good nodes against which a suspect is measured
	cycles            = 5 // of each partner
	falseAll          = 0.05
)

// PlanTrials returns the trials of the suspects. Partners are nodes that nobody suspects, those
// of the suspect's zone first. A suspect for which there are no two such nodes has no trial:
// with two nodes nobody can tell which one is to blame. Each pair of a suspect is measured in so
// many cycles.
func PlanTrials(nodes []Node, suspects []Suspect, cycles int, rng *rand.Rand) []Trial {
	bad := map[string]map[int]bool{Pod: {}, Host: {}}
	for _, s := range suspects {
		if s.Kind == Sender {
			bad[s.Path][s.From] = true
		}
		if s.Kind == Receiver {
			bad[s.Path][s.To] = true
		}
	}
	var out []Trial
	for i, s := range suspects {
		good := func(zone string, not ...int) []int {
			var near, far []int
			for _, n := range rng.Perm(len(nodes)) {
				if bad[s.Path][n] || slices.Contains(not, n) {
					continue
				}
				if nodes[n].Zone == zone {
					near = append(near, n)
				} else {
					far = append(far, n)
				}
			}
			return slices.Concat(near, far)
		}
		add := func(test Pair, controls ...Pair) {
			for c := range cycles {
				out = append(out, Trial{i, c + 1, s.Path, s.Metric, test, controls})
			}
		}
		switch s.Kind {
		case Sender, Receiver:
			suspect := max(s.From, s.To)
			all := good(nodes[suspect].Zone, suspect)
			for p := range min(partnersOfSuspect, len(all)) {
				partner := all[p]
				// The control replaces the suspect by a good node that is as far from the partner.
				other := like(nodes, suspect, partner, all)
				if other < 0 {
					break
				}
				test, control := Pair{suspect, partner}, Pair{other, partner}
				if s.Kind == Receiver {
					test, control = test.Back(), control.Back()
				}
				add(test, control)
			}
		case Link:
			test := Pair{s.From, s.To}
			all := good(nodes[s.From].Zone, s.From, s.To)
			for p := range min(partnersOfSuspect, len(all)) {
				add(test, Pair{s.From, all[p]}, Pair{all[p], s.To})
			}
		case Border:
			from, to := inZone(nodes, good(s.Zones[0]), s.Zones[0]), inZone(nodes, good(s.Zones[1]), s.Zones[1])
			third := slices.DeleteFunc(good(""), func(n int) bool { return nodes[n].Zone == s.Zones[0] || nodes[n].Zone == s.Zones[1] })
			for p := range partnersOfSuspect {
				if len(from) < 2 || len(to) < 2 {
					break
				}
				a, b := from[p%len(from)], to[p%len(to)]
				if len(third) > 0 {
					c := third[p%len(third)]
					add(Pair{a, b}, Pair{a, c}, Pair{c, b})
				} else {
					add(Pair{a, b}, Pair{a, from[(p+1)%len(from)]}, Pair{to[(p+1)%len(to)], b})
				}
			}
		}
	}
	return out
}

// like returns a node of the list that can replace node n as the partner's other end: one of n's
// zone, else one that like n is in another zone than the partner, else any; -1: none.
func like(nodes []Node, n, partner int, list []int) int {
	best, rank := -1, 0
	for _, o := range list {
		if o == partner {
			continue
		}
		r := 1
		switch {
		case nodes[o].Zone == nodes[n].Zone:
			r = 3
		case (nodes[o].Zone == nodes[partner].Zone) == (nodes[n].Zone == nodes[partner].Zone):
			r = 2
		}
		if r > rank {
			best, rank = o, r
		}
	}
	return best
}

func inZone(nodes []Node, list []int, zone string) []int {
	return slices.DeleteFunc(slices.Clone(list), func(n int) bool { return nodes[n].Zone != zone })
}

// Judge returns the places that the second pass shows to be slow, the worst first. It tests each
// suspect exactly (Wilcoxon's signed-rank test of the ratios to the controls; Fisher's exact
// test of losses) and corrects for the number of suspects (Holm), so that a run names a healthy
// place with a chance of at most level. A place must also differ by what is worth a name.
func Judge(nodes []Node, suspects []Suspect, outcomes []Outcome, level float64) []Place {
	bySuspect := make([][]Outcome, len(suspects))
	for _, o := range outcomes {
		bySuspect[o.Suspect] = append(bySuspect[o.Suspect], o)
	}
	var places []Place
	var p []float64
	var worth []bool
	zones := zonesOf(nodes)
	for i, s := range suspects {
		if len(bySuspect[i]) == 0 {
			continue
		}
		place := placeOf(nodes, s)
		var ok bool
		switch s.Metric {
		case MTU:
			ok = judgeMTU(&place, bySuspect[i])
		case Loss:
			ok = judgeLoss(&place, bySuspect[i])
		default:
			ok = judgeLevel(&place, bySuspect[i], s.Kind == Border && zones < 3)
		}
		places, p, worth = append(places, place), append(p, place.P), append(worth, ok)
	}
	adjusted := stat.Holm(p)
	var out []Place
	for i, place := range places {
		if place.P = adjusted[i]; worth[i] && place.P <= level {
			out = append(out, place)
		}
	}
	return merge(out)
}

func zonesOf(nodes []Node) int {
	seen := map[string]bool{}
	for _, n := range nodes {
		seen[n.Zone] = true
	}
	return len(seen)
}

// placeOf returns the suspect with names in place of indices.
func placeOf(nodes []Node, s Suspect) Place {
	p := Place{Kind: s.Kind, Path: s.Path, Metric: s.Metric}
	if s.Kind == Border {
		p.From, p.To = s.Zones[0], s.Zones[1]
		return p
	}
	if s.From >= 0 {
		p.From = nodes[s.From].Name
	}
	if s.To >= 0 {
		p.To = nodes[s.To].Name
	}
	return p
}

// Two zones have nothing to be compared with but their own nodes, which are nearer. A border
// between them is slow if it adds this much to a round trip, or has less than half of the goodput.
const (
	farRTT     = 0.005 // s; zones of one region are 2 ms apart at most
	farGoodput = 2.0
)

// judgeLevel fills in the place's figures and reports whether the difference is worth a name.
// alone says that the place is a border with no other to compare with.
func judgeLevel(place *Place, list []Outcome, alone bool) bool {
	var ratios, values, usual []float64
	for _, o := range list {
		bad := math.Inf(-1)
		for _, v := range o.ControlValues {
			bad = max(bad, badness(place.Metric, v))
		}
		control := valueOf(place.Metric, bad)
		ratios, values, usual = append(ratios, o.Value/control), append(values, o.Value), append(usual, control)
	}
	shift, p := stat.ComparePaired(ratios, 1-falseAll, 1)
	place.Value, place.Usual = stat.Median(values), stat.Median(usual)
	place.Ratio, place.P = shift.Ratio, p
	if !math.IsNaN(shift.Low) {
		place.Low, place.High = shift.Low, shift.High
	}
	minimum := limit(place.Metric)
	if alone {
		if place.Metric == RTT {
			return place.Value-place.Usual > farRTT
		}
		minimum = math.Log(farGoodput)
	}
	return badness(place.Metric, shift.Ratio) >= minimum
}

// judgeLoss fills in the place's figures and reports whether the difference is worth a name: it
// must show at two partners, where the suspect has as many.
func judgeLoss(place *Place, list []Outcome) bool {
	var lost, sent, controlLost, controlSent float64
	at := map[Pair]float64{}
	for _, o := range list {
		n := float64(o.Probes)
		lost, sent = lost+o.Value*n, sent+n
		at[o.Test] += o.Value * n
		for _, v := range o.ControlValues {
			controlLost, controlSent = controlLost+v*n, controlSent+n
		}
	}
	place.Value, place.Usual = lost/sent, controlLost/controlSent
	place.P = FisherAbove(round(lost), round(sent), round(controlLost), round(controlSent))
	with := 0
	for _, l := range at {
		if l > 0 {
			with++
		}
	}
	return place.Value-place.Usual >= limits[Loss] && with >= min(2, len(at))
}

func round(v float64) int { return int(math.Round(v)) }

// judgeMTU reports whether every trial agrees: the suspect's pairs pass less than the controls.
func judgeMTU(place *Place, list []Outcome) bool {
	worst, usual := 0.0, math.Inf(1)
	for _, o := range list {
		worst = max(worst, o.Value)
		for _, v := range o.ControlValues {
			usual = min(usual, v)
		}
	}
	place.Value, place.Usual, place.Ratio = worst, usual, worst/usual
	return worst < usual
}

// merge joins a node's two directions, leaves out of the pods' places those that the nodes' own
// network has as well, and orders places: the nodes' network before the pods', then by metric
// and by how bad they are.
func merge(list []Place) []Place {
	has := func(list []Place, kind Kind, from, to string, like Place) bool {
		return slices.ContainsFunc(list, func(o Place) bool {
			return o.Kind == kind && o.From == from && o.To == to && o.Path == like.Path && o.Metric == like.Metric
		})
	}
	var out []Place
	for _, p := range list {
		switch {
		case p.Kind == Receiver && has(list, Sender, p.To, "", p):
			continue
		case p.Kind == Sender && has(list, Receiver, "", p.From, p):
			p.Kind, p.To = NodeBoth, p.From
		}
		out = append(out, p)
	}
	out = slices.DeleteFunc(out, func(p Place) bool {
		host := p
		host.Path = Host
		return p.Path == Pod && has(out, p.Kind, p.From, p.To, host)
	})
	slices.SortStableFunc(out, func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(slices.Index(Metrics, a.Metric), slices.Index(Metrics, b.Metric)),
			cmp.Compare(excess(b), excess(a)))
	})
	return out
}

// excess returns how bad a place is, for the order of places of one metric.
func excess(p Place) float64 {
	if p.Metric == Loss || p.Metric == MTU {
		return math.Abs(p.Value - p.Usual)
	}
	return badness(p.Metric, p.Ratio)
}
