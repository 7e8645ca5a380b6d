package mesh

import (
	"maps"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/stat"
)

// observation is one direction's figure on the scale of badness.
type observation struct {
	Pair
	bad float64
}

// fit splits observations into parts that add up: middle + sender + receiver + border + rest.
// It is Tukey's median polish over the pairs that were measured, so a few bad pairs of a node
// do not make the node bad. Nodes are fitted before borders: what a node does to all partners
// is the node's. Senders, receivers and borders have a median of 0.
type fit struct {
	middle   float64
	out, in  []float64 // by node; NaN: no observation
	border   map[[2]string]float64
	rest     []float64 // by observation
	noise    float64   // standard deviation of one observation
	outNoise float64   // standard deviation of a node's sending part, noise included
	inNoise  float64
	partners float64 // of a node, on average
}

const (
	maxPolish    = 30
	polishEnough = 1e-4
	minCrossing  = 3 // pairs that a border's part needs
)

// polish fits the observations. Borders are ordered zones, from and to.
func polish(nodes []Node, list []observation) fit {
	f := fit{out: make([]float64, len(nodes)), in: make([]float64, len(nodes)), border: map[[2]string]float64{}}
	bySender, byReceiver := make([][]int, len(nodes)), make([][]int, len(nodes))
	byBorder := map[[2]string][]int{}
	f.rest = make([]float64, len(list))
	for i, o := range list {
		f.rest[i] = o.bad
		bySender[o.From] = append(bySender[o.From], i)
		byReceiver[o.To] = append(byReceiver[o.To], i)
		zones := [2]string{nodes[o.From].Zone, nodes[o.To].Zone}
		byBorder[zones] = append(byBorder[zones], i)
	}
	borders := slices.SortedFunc(maps.Keys(byBorder), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	f.middle = stat.Median(f.rest)
	for i := range f.rest {
		f.rest[i] -= f.middle
	}
	values := make([]float64, 0, len(list))
	take := func(group []int) float64 {
		values = values[:0]
		for _, i := range group {
			values = append(values, f.rest[i])
		}
		m := stat.Median(values)
		for _, i := range group {
			f.rest[i] -= m
		}
		return m
	}
	for range maxPolish {
		change := 0.0
		for n := range nodes {
			if len(bySender[n]) > 0 {
				m := take(bySender[n])
				f.out[n], change = f.out[n]+m, max(change, math.Abs(m))
			}
			if len(byReceiver[n]) > 0 {
				m := take(byReceiver[n])
				f.in[n], change = f.in[n]+m, max(change, math.Abs(m))
			}
		}
		if len(borders) > 1 {
			for _, zones := range borders { // in order: the same figures give the same fit
				if group := byBorder[zones]; len(group) >= minCrossing {
					m := take(group)
					f.border[zones], change = f.border[zones]+m, max(change, math.Abs(m))
				}
			}
		}
		if change < polishEnough {
			break
		}
	}
	f.center(bySender, byReceiver)
	used := 0
	for n := range nodes {
		used += min(1, len(bySender[n])) + min(1, len(byReceiver[n]))
	}
	// The parts follow the noise: of n observations, about used degrees of freedom are spent.
	free := max(1, len(list)-used-len(f.border))
	f.noise = spread(f.rest) * math.Sqrt(float64(len(list))/float64(free))
	f.partners = float64(len(list)) / float64(max(1, len(nodes)))
	// A median of n values has a standard deviation of 1.25/sqrt(n) times that of a value.
	minimum := 1.2533 * f.noise / math.Sqrt(max(1, f.partners))
	f.outNoise, f.inNoise = max(minimum, spread(f.out)), max(minimum, spread(f.in))
	return f
}

// NodeRatios returns, by node, how many times the usual figure a node has as a sender and as a
// receiver; NaN where it was not measured. The metric is RTT or Goodput.
func NodeRatios(nodes []Node, path string, m Metric, figures []Figure) (out, in []float64) {
	f := polish(nodes, observations(path, m, figures))
	for n := range nodes {
		f.out[n], f.in[n] = valueOf(m, f.out[n]), valueOf(m, f.in[n])
	}
	return f.out, f.in
}

// center moves the medians of the parts into the middle. Parts without an observation are NaN.
func (f *fit) center(bySender, byReceiver [][]int) {
	for n := range f.out {
		if len(bySender[n]) == 0 {
			f.out[n] = math.NaN()
		}
		if len(byReceiver[n]) == 0 {
			f.in[n] = math.NaN()
		}
	}
	for _, part := range [][]float64{f.out, f.in} {
		m := stat.Median(finite(part))
		if math.IsNaN(m) {
			continue
		}
		f.middle += m
		for n := range part {
			part[n] -= m
		}
	}
	var borders []float64
	for _, v := range f.border {
		borders = append(borders, v)
	}
	if m := stat.Median(borders); len(borders) > 0 {
		f.middle += m
		for zones := range f.border {
			f.border[zones] -= m
		}
	}
}

// spread returns a standard deviation that outliers do not change: 1.4826 times the median
// distance from the median.
func spread(list []float64) float64 {
	list = finite(list)
	if len(list) == 0 {
		return 0
	}
	m := stat.Median(list)
	far := make([]float64, len(list))
	for i, v := range list {
		far[i] = math.Abs(v - m)
	}
	return 1.4826 * stat.Median(far)
}

func finite(list []float64) []float64 {
	var out []float64
	for _, v := range list {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			out = append(out, v)
		}
	}
	return out
}
