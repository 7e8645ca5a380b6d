package mesh

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// world is a simulated cluster whose faults are known.
type world struct {
	nodes  []Node
	noise  float64 // standard deviation of the logarithm of one figure
	nature float64 // the same between healthy nodes
	rng    *rand.Rand

	out, in   []float64 // share of the usual goodput that a node can send and receive
	link      map[Pair]float64
	lossOut   []float64
	lossIn    []float64
	lossLink  map[Pair]float64
	mtuOut    []float64
	mtuLink   map[Pair]float64
	borderRTT map[[2]string]float64 // seconds that a border adds
}

func newWorld(nodes, zones int, seed uint64) *world {
	w := &world{
		noise: 0.1, nature: 0.03, rng: rand.New(rand.NewPCG(seed, 1)),
		link: map[Pair]float64{}, lossLink: map[Pair]float64{}, mtuLink: map[Pair]float64{}, borderRTT: map[[2]string]float64{},
	}
	for i := range nodes {
		n := Node{Name: fmt.Sprintf("node-%d", i)}
		if zones > 0 {
			n.Zone = fmt.Sprintf("zone-%d", i%zones)
		}
		w.nodes = append(w.nodes, n)
		w.out = append(w.out, math.Exp(w.nature*w.rng.NormFloat64()))
		w.in = append(w.in, math.Exp(w.nature*w.rng.NormFloat64()))
		w.mtuOut = append(w.mtuOut, 1450)
	}
	w.lossOut, w.lossIn = make([]float64, nodes), make([]float64, nodes)
	return w
}

// measure returns one figure of the pair. probes are those of a loss.
func (w *world) measure(p Pair, m Metric, probes int) float64 {
	one := func(v map[Pair]float64, none float64) float64 {
		if v, ok := v[p]; ok {
			return v
		}
		return none
	}
	zones := [2]string{w.nodes[p.From].Zone, w.nodes[p.To].Zone}
	switch m {
	case Goodput:
		return 10e9 * min(w.out[p.From], w.in[p.To], one(w.link, 1)) * math.Exp(w.noise*w.rng.NormFloat64())
	case RTT:
		rtt := 100e-6
		if zones[0] != zones[1] {
			rtt = 600e-6
		}
		return (rtt + w.borderRTT[zones]) * math.Exp(w.noise*w.rng.NormFloat64())
	case Loss:
		lost := 0
		p := 1 - (1-1e-5)*(1-w.lossOut[p.From])*(1-w.lossIn[p.To])*(1-one(w.lossLink, 0))
		for range probes {
			if w.rng.Float64() < p {
				lost++
			}
		}
		return float64(lost) / float64(probes)
	}
	return min(w.mtuOut[p.From], one(w.mtuLink, 9000))
}

// light returns the all-to-all figures: round trips, loss and packet sizes.
func (w *world) light(path string, probes int) []Figure {
	var out []Figure
	for i := range w.nodes {
		for j := range w.nodes {
			if p := (Pair{i, j}); i != j {
				f := Figure{Pair: p, Path: path, Probes: probes, Values: map[Metric]float64{}}
				for _, m := range []Metric{RTT, Loss, MTU} {
					f.Values[m] = w.measure(p, m, probes)
				}
				out = append(out, f)
			}
		}
	}
	return out
}

// bandwidth returns the goodput of every direction of a design.
func (w *world) bandwidth(path string, d Design) []Figure {
	var out []Figure
	for _, round := range d.Rounds {
		for _, p := range round {
			for _, p := range []Pair{p, p.Back()} {
				out = append(out, Figure{Pair: p, Path: path, Values: map[Metric]float64{Goodput: w.measure(p, Goodput, 0)}})
			}
		}
	}
	return out
}

// judge runs both passes.
func (w *world) judge(figures []Figure) []Place {
	suspects := Screen(w.nodes, figures)
	var outcomes []Outcome
	for _, t := range PlanTrials(w.nodes, suspects, cycles, w.rng) {
		o := Outcome{Trial: t, Probes: 300, Value: w.measure(t.Test, t.Metric, 300)}
		for _, c := range t.Controls {
			o.ControlValues = append(o.ControlValues, w.measure(c, t.Metric, 300))
		}
		outcomes = append(outcomes, o)
	}
	return Judge(w.nodes, suspects, outcomes, falseAll)
}
