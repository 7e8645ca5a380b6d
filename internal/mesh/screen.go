package mesh

import (
	"cmp"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/stat"
)

// Suspect is a place that the first pass gives reason to measure again. It accuses nobody.
type Suspect struct {
	Kind     Kind
	From, To int       // indices of nodes; -1: none
	Zones    [2]string // of a Border, from and to
	Path     string
	Metric   Metric
	Score    float64 // how far from usual, in multiples of the noise; the order of suspects
}

const (
	suspectNode = 3.0 // multiples of the noise from which a node or border is a suspect
	suspectLink = 4.0 // and a link, of which there are many more
	suspectLoss = 7.0 // logarithm of the likelihood ratio from which losses make a suspect
	// maxSuspects bounds the second pass: each suspect takes 15 trials.
	maxSuspects = 200
)

// Screen returns the places that look slow, the most conspicuous first.
func Screen(nodes []Node, figures []Figure) []Suspect {
	var out []Suspect
	for _, path := range []string{Host, Pod} {
		for _, m := range Metrics {
			list := observations(path, m, figures)
			if len(list) == 0 {
				continue
			}
			var found []Suspect
			switch m {
			case MTU:
				found = screenMTU(nodes, list)
			case Loss:
				found = screenLoss(nodes, path, figures)
			default:
				found = screenLevels(nodes, m, list)
			}
			for _, s := range found {
				s.Path, s.Metric = path, m
				out = append(out, s)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Suspect) int { return cmp.Compare(b.Score, a.Score) })
	return out[:min(len(out), maxSuspects)]
}

// observations returns the figures of one network and metric on the scale of badness. Figures
// of a sender that was late itself (a packet's size needs no clock), and what cannot be such a
// figure, are left out.
func observations(path string, m Metric, figures []Figure) []observation {
	var out []observation
	for _, f := range figures {
		v, ok := f.Values[m]
		if !ok || f.Path != path || f.Late && m != MTU || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if v < 0 || v == 0 && m != Loss {
			continue
		}
		out = append(out, observation{f.Pair, badness(m, v)})
	}
	return out
}

// screenLevels finds places that are slow by goodput or round trips.
func screenLevels(nodes []Node, m Metric, list []observation) []Suspect {
	f := polish(nodes, list)
	var out []Suspect
	worth := limit(m) / 2 // the second pass decides, so half of what is worth a name is worth a look
	for n := range nodes {
		if f.out[n] > max(worth, suspectNode*f.outNoise) {
			out = append(out, Suspect{Kind: Sender, From: n, To: -1, Score: f.out[n] / max(f.outNoise, worth/suspectNode)})
		}
		if f.in[n] > max(worth, suspectNode*f.inNoise) {
			out = append(out, Suspect{Kind: Receiver, From: -1, To: n, Score: f.in[n] / max(f.inNoise, worth/suspectNode)})
		}
	}
	pairs := map[[2]string]float64{}
	for _, o := range list {
		pairs[[2]string{nodes[o.From].Zone, nodes[o.To].Zone}]++
	}
	for zones, part := range f.border {
		noise := 1.2533 * math.Hypot(f.noise, f.outNoise) / math.Sqrt(pairs[zones])
		if zones[0] != zones[1] && part > max(worth, suspectNode*noise) {
			out = append(out, Suspect{Kind: Border, From: -1, To: -1, Zones: zones, Score: part / max(noise, worth/suspectNode)})
		}
	}
	for i, o := range list {
		// The polish takes part of a bad pair into its nodes where they have few partners.
		if f.rest[i] > max(worth, suspectLink*f.noise) {
			out = append(out, Suspect{Kind: Link, From: o.From, To: o.To, Score: f.rest[i] / max(f.noise, worth/suspectLink)})
		}
	}
	slices.SortFunc(out, compareSuspects)
	return out
}

func compareSuspects(a, b Suspect) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To),
		cmp.Compare(a.Zones[0]+"\x00"+a.Zones[1], b.Zones[0]+"\x00"+b.Zones[1]))
}

// group is a candidate and the observations that it would explain.
type group struct {
	Suspect
	pairs []int
}

// candidates returns every place with the observations that it would explain.
func candidates(nodes []Node, pairs []Pair) []group {
	var out []group
	at := map[Suspect]int{}
	add := func(s Suspect, i int) {
		g, known := at[s]
		if !known {
			g, at[s] = len(out), len(out)
			out = append(out, group{Suspect: s})
		}
		out[g].pairs = append(out[g].pairs, i)
	}
	for i, p := range pairs {
		add(Suspect{Kind: Sender, From: p.From, To: -1}, i)
		add(Suspect{Kind: Receiver, From: -1, To: p.To}, i)
		add(Suspect{Kind: Link, From: p.From, To: p.To}, i)
		if a, b := nodes[p.From].Zone, nodes[p.To].Zone; a != b {
			add(Suspect{Kind: Border, From: -1, To: -1, Zones: [2]string{a, b}}, i)
		}
	}
	return out
}

// screenLoss finds places that lose datagrams. It takes the place that explains the losses best
// (by the likelihood of Poisson counts), takes its pairs away, and goes on with the others.
func screenLoss(nodes []Node, path string, figures []Figure) []Suspect {
	var pairs []Pair
	var lost, sent []float64
	for _, f := range figures {
		loss, ok := f.Values[Loss]
		if !ok || f.Path != path || f.Late || f.Probes <= 0 || loss < 0 || loss > 1 {
			continue
		}
		pairs, lost, sent = append(pairs, f.Pair), append(lost, loss*float64(f.Probes)), append(sent, float64(f.Probes))
	}
	background := usualLoss(nodes, pairs, lost, sent)
	all := candidates(nodes, pairs)
	gone := make([]bool, len(pairs))
	var out []Suspect
	for len(out) < maxSuspects {
		best, score := -1, suspectLoss
		for g := range all {
			var l, n float64
			for _, i := range all[g].pairs {
				if !gone[i] {
					l, n = l+lost[i], n+sent[i]
				}
			}
			if n == 0 || l/n < background+limits[Loss] {
				continue
			}
			gain := l*math.Log(l/n/background) - (l - background*n)
			if gain > score {
				best, score = g, gain
			}
		}
		if best < 0 {
			break
		}
		s := all[best].Suspect
		s.Score = score
		out = append(out, s)
		for _, i := range all[best].pairs {
			gone[i] = true
		}
	}
	return out
}

// usualLoss returns the loss of a healthy pair: the median over nodes of what they lose as
// senders, at least one in 100,000.
func usualLoss(nodes []Node, pairs []Pair, lost, sent []float64) float64 {
	l, n := make([]float64, len(nodes)), make([]float64, len(nodes))
	for i, p := range pairs {
		l[p.From], n[p.From] = l[p.From]+lost[i], n[p.From]+sent[i]
	}
	var rates []float64
	for i := range nodes {
		if n[i] > 0 {
			rates = append(rates, l[i]/n[i])
		}
	}
	if len(rates) == 0 {
		return 1e-5
	}
	return max(1e-5, stat.Median(rates))
}

// screenMTU finds places that packets of the usual size do not cross. A packet crosses if its
// sender, its receiver and what is between them let it pass, so a node is to blame if no
// partner gets a packet of the usual size, and a link if both its nodes have others that do.
func screenMTU(nodes []Node, list []observation) []Suspect {
	counts := map[float64]int{}
	for _, o := range list {
		counts[o.bad]++
	}
	usual, maximum := 0.0, 0
	for size, n := range counts {
		if n > maximum || n == maximum && size > usual {
			usual, maximum = size, n
		}
	}
	out, in := make([]float64, len(nodes)), make([]float64, len(nodes))
	byBorder := map[[2]string]float64{}
	for _, o := range list {
		out[o.From], in[o.To] = max(out[o.From], o.bad), max(in[o.To], o.bad)
		zones := [2]string{nodes[o.From].Zone, nodes[o.To].Zone}
		byBorder[zones] = max(byBorder[zones], o.bad)
	}
	var found []Suspect
	for n := range nodes {
		if out[n] > 0 && out[n] < usual {
			found = append(found, Suspect{Kind: Sender, From: n, To: -1, Score: 1000 + usual - out[n]})
		}
		if in[n] > 0 && in[n] < usual {
			found = append(found, Suspect{Kind: Receiver, From: -1, To: n, Score: 1000 + usual - in[n]})
		}
	}
	for zones, size := range byBorder {
		if zones[0] != zones[1] && size < usual {
			found = append(found, Suspect{Kind: Border, From: -1, To: -1, Zones: zones, Score: 900 + usual - size})
		}
	}
	for _, o := range list {
		if o.bad < min(usual, out[o.From], in[o.To], byBorder[[2]string{nodes[o.From].Zone, nodes[o.To].Zone}]) {
			found = append(found, Suspect{Kind: Link, From: o.From, To: o.To, Score: 800 + usual - o.bad})
		}
	}
	slices.SortFunc(found, compareSuspects)
	return found
}
