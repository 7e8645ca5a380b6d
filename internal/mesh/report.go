package mesh

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Schema is the version of a Report as JSON.
const Schema = "cnibench/mesh/1"

// Report is what a mesh found.
type Report struct {
	Schema string       `json:"schema"`
	Nodes  []Node       `json:"nodes"`
	Pairs  []PairReport `json:"pairs"`
	Slow   []Place      `json:"slow"`
	Shared []Shared     `json:"shared"`
	// Suspects is how many places the first pass suspected; the second one judged Judged of them.
	Suspects int `json:"suspects"`
	Judged   int `json:"judged"`
	// Late are the nodes whose prober was late itself: their figures blame nobody.
	Late []string `json:"late"`
	// Gone are the nodes that ended or were away while the mesh was measured. They are not judged.
	Gone []string `json:"gone"`
	// Absent are the nodes that were asked for and never took part, with the reason.
	Absent []string `json:"absent"`
	// Held is the number of pairs at a time at which the load was held back, because more of
	// them harmed the network; 0: it was not.
	Held int  `json:"held"`
	Cost Cost `json:"cost"`
	// Cap is the most that a sender sent, bit/s; 0: no limit. A goodput near it is the limit
	// and no figure of the network.
	Cap float64 `json:"cap"`
}

// PairReport is one direction on one network. A figure that was not measured is absent.
type PairReport struct {
	From    string   `json:"from"`
	To      string   `json:"to"`
	Path    string   `json:"path"`
	RTT     *float64 `json:"rtt_p50,omitempty"`
	Loss    *float64 `json:"loss,omitempty"`
	Goodput *float64 `json:"goodput,omitempty"`
	MTU     *float64 `json:"mtu,omitempty"`
}

// value returns the figure of a metric; nil if it was not measured.
func (p *PairReport) value(m Metric) *float64 {
	return map[Metric]*float64{Goodput: p.Goodput, RTT: p.RTT, Loss: p.Loss, MTU: p.MTU}[m]
}

// NewReport joins the figures of one direction and network and adds the places.
func NewReport(nodes []Node, figures []Figure, slow []Place) *Report {
	figures = slices.Clone(figures)
	sortFigures(figures)
	r := &Report{Schema: Schema, Nodes: nodes, Pairs: []PairReport{}, Slow: slow, Shared: []Shared{}, Late: []string{}, Gone: []string{}, Absent: []string{}}
	if r.Slow == nil {
		r.Slow = []Place{}
	}
	at := map[string]int{}
	late := map[int]bool{}
	for _, f := range figures {
		key := fmt.Sprintf("%d %d %s", f.From, f.To, f.Path)
		i, known := at[key]
		if !known {
			i, at[key] = len(r.Pairs), len(r.Pairs)
			r.Pairs = append(r.Pairs, PairReport{From: nodes[f.From].Name, To: nodes[f.To].Name, Path: f.Path})
		}
		late[f.From] = late[f.From] || f.Late
		for m, v := range f.Values {
			p := &r.Pairs[i]
			switch m {
			case RTT:
				p.RTT = &v
			case Loss:
				p.Loss = &v
			case Goodput:
				p.Goodput = &v
			case MTU:
				p.MTU = &v
			}
		}
	}
	for i, n := range nodes {
		if late[i] {
			r.Late = append(r.Late, n.Name)
		}
	}
	bad := map[string]bool{}
	for _, p := range slow {
		switch p.Kind {
		case Sender, NodeBoth:
			bad[p.From] = true
		case Receiver:
			bad[p.To] = true
		}
	}
	if shared := SharedLabels(nodes, bad); shared != nil {
		r.Shared = shared
	}
	return r
}

// Where returns the place in words.
func (p Place) Where() string {
	switch p.Kind {
	case Sender:
		return "what " + p.From + " sends"
	case Receiver:
		return "what " + p.To + " receives"
	case NodeBoth:
		return p.From + ", both ways"
	case Border:
		return "zone " + p.From + " to zone " + p.To
	}
	return p.From + " to " + p.To
}

// Network returns the place's network in words.
func (p Place) Network() string {
	if p.Path == Host {
		return "nodes' own network"
	}
	return "pod network"
}

// Text returns the place, its figure and what is usual, in one line.
func (p Place) Text() string {
	return fmt.Sprintf("%s: %s, usual %s (%s)", p.Where(), Format(p.Metric, p.Value), Format(p.Metric, p.Usual), p.Network())
}

// Next returns the command that looks for the cause. good is a node that nobody blames.
func (p Place) Next(good string) string {
	a, b := p.From, p.To
	switch p.Kind {
	case Border:
		return ""
	case Sender, NodeBoth:
		b = good
	case Receiver:
		a = good
	}
	return "cnibench diagnose --nodes " + a + "," + b
}

// Format returns a metric's value with its unit.
func Format(m Metric, v float64) string {
	switch m {
	case Goodput:
		if v >= 1e9 {
			return fmt.Sprintf("%.3g Gbit/s", v/1e9)
		}
		return fmt.Sprintf("%.3g Mbit/s", v/1e6)
	case RTT:
		if v >= 1e-3 {
			return fmt.Sprintf("%.3g ms", v*1e3)
		}
		return fmt.Sprintf("%.3g µs", v*1e6)
	case Loss:
		return fmt.Sprintf("%.3g %% lost", v*100)
	}
	return fmt.Sprintf("%.0f-byte packets at most", v)
}

// Good returns a node that no place names; "" if there is none.
func (r *Report) Good() string {
	for _, n := range r.Nodes {
		if !slices.ContainsFunc(r.Slow, func(p Place) bool { return p.From == n.Name || p.To == n.Name }) {
			return n.Name
		}
	}
	return ""
}

// Verdict returns the answer in one sentence.
func (r *Report) Verdict() string {
	switch {
	case len(r.Nodes) < 3:
		return "With fewer than three nodes a slow one cannot be told from its partner. Add a node, or run: cnibench diagnose"
	case len(r.Slow) == 0:
		return fmt.Sprintf("No node, link or zone is slow: %d nodes, %d directions.", len(r.Nodes), len(r.Pairs))
	case len(r.Slow) == 1:
		return "One place is slow: " + r.Slow[0].Text() + "."
	}
	return fmt.Sprintf("%d places are slow; the first: %s.", len(r.Slow), r.Slow[0].Text())
}

// maxMatrix is how many nodes a matrix on a terminal has room for.
const maxMatrix = 16

// Matrix returns the goodput (or, where it was not measured, the round trips) of a network as
// rows of senders and columns of receivers, in per cent of the median; "" with too many nodes.
func (r *Report) Matrix(path string) string {
	if len(r.Nodes) > maxMatrix {
		return ""
	}
	index := map[string]int{}
	for i, n := range r.Nodes {
		index[n.Name] = i
	}
	for _, m := range []Metric{Goodput, RTT} {
		cells := make([][]float64, len(r.Nodes))
		for i := range cells {
			cells[i] = slices.Repeat([]float64{math.NaN()}, len(r.Nodes))
		}
		var all []float64
		for _, p := range r.Pairs {
			if v := p.value(m); p.Path == path && v != nil {
				cells[index[p.From]][index[p.To]] = *v
				all = append(all, *v)
			}
		}
		if len(all) > 0 {
			return drawMatrix(r.Nodes, m, path, cells, all)
		}
	}
	return ""
}

func drawMatrix(nodes []Node, m Metric, path string, cells [][]float64, all []float64) string {
	slices.Sort(all)
	middle := all[len(all)/2]
	what := "Goodput"
	if m == RTT {
		what = "Round trips"
	}
	width := 0
	for _, n := range nodes {
		width = max(width, len(n.Name))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s network, %% of the median (%s). Rows send, columns receive.\n", what, path, Format(m, middle))
	fmt.Fprintf(&b, "%*s", width+5, "")
	for i := range nodes {
		fmt.Fprintf(&b, "%5d", i+1)
	}
	b.WriteByte('\n')
	for i, row := range cells {
		fmt.Fprintf(&b, "%3d  %-*s", i+1, width, nodes[i].Name)
		for j, v := range row {
			switch {
			case i == j:
				b.WriteString("    ·")
			case math.IsNaN(v):
				b.WriteString("     ")
			default:
				fmt.Fprintf(&b, "%5.0f", 100*v/middle)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// String returns the report for a terminal: the answer, the places with the next command, what
// slow nodes have in common, and a matrix where it fits.
func (r *Report) String() string {
	var b strings.Builder
	b.WriteString(r.Verdict() + "\n")
	good := r.Good()
	for _, p := range r.Slow {
		fmt.Fprintf(&b, "  ✗ %s\n", p.Text())
		if p.Ratio > 0 && p.Low > 0 {
			fmt.Fprintf(&b, "      %.2f times usual (%.2f–%.2f)\n", p.Ratio, p.Low, p.High)
		}
		if next := p.Next(good); next != "" {
			fmt.Fprintf(&b, "      next: %s\n", next)
		}
	}
	for _, s := range r.Shared {
		fmt.Fprintf(&b, "  %d of %d slow nodes have %s=%s, %d of %d others have it\n", s.Slow[0], s.Slow[1], s.Label, s.Value, s.Sound[0], s.Sound[1])
	}
	if len(r.Late) > 0 {
		fmt.Fprintf(&b, "  The prober on %s was late itself: its round trips and losses are not judged.\n", strings.Join(r.Late, ", "))
	}
	if len(r.Gone) > 0 {
		fmt.Fprintf(&b, "  Ended or away while this was measured, so not judged: %s.\n", strings.Join(r.Gone, ", "))
	}
	for _, text := range r.Absent {
		fmt.Fprintf(&b, "  Not measured: %s.\n", text)
	}
	if r.Held > 0 {
		fmt.Fprintf(&b, "  More than %d pairs at a time made the network send again or drop, so no more were sent.\n", r.Held)
	}
	if r.Cap > 0 {
		fmt.Fprintf(&b, "  A sender sent at most %s: goodput near it is this limit.\n", Format(Goodput, r.Cap))
	}
	for _, path := range []string{Pod, Host} {
		if m := r.Matrix(path); m != "" {
			b.WriteString("\n" + m)
		}
	}
	return b.String()
}

// sortFigures orders figures by network, sender and receiver.
func sortFigures(list []Figure) {
	slices.SortStableFunc(list, func(a, b Figure) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
}
