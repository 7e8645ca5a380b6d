package mesh

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/stat"
)

// CompareSchema is the version of a Change as JSON.
const CompareSchema = "cnibench/mesh-compare/1"

// Change says which places got worse or better from one mesh of a cluster to the next.
type Change struct {
	Schema string `json:"schema"`
	// Worse are places that only the new mesh names, and those that both name whose figure is
	// now worse by what is worth a name. Better is the reverse.
	Worse  []Place `json:"worse"`
	Better []Place `json:"better"`
	Levels []Level `json:"levels"`
	// Joined and Left are nodes of only the new or the old mesh: their places are no change.
	Joined []string `json:"joined"`
	Left   []string `json:"left"`
}

// Level is how a figure changed over all directions that both meshes measured.
type Level struct {
	Path   string  `json:"path"`
	Metric Metric  `json:"metric"`
	Pairs  int     `json:"pairs"`
	Before float64 `json:"before"` // medians
	After  float64 `json:"after"`
}

// Compare returns what changed. A place is new only if both meshes had its nodes: each was named
// with at most 5 % false names in its own mesh, so a comparison of two sound meshes has a wrong
// one in at most 10 %.
func Compare(before, after *Report) *Change {
	c := &Change{Schema: CompareSchema, Worse: []Place{}, Better: []Place{}, Levels: []Level{}, Joined: []string{}, Left: []string{}}
	nodes := func(r *Report) (list []string) {
		for _, n := range r.Nodes {
			if !slices.Contains(r.Gone, n.Name) {
				list = append(list, n.Name)
			}
		}
		return list
	}
	old, now := nodes(before), nodes(after)
	for _, n := range now {
		if !slices.Contains(old, n) {
			c.Joined = append(c.Joined, n)
		}
	}
	for _, n := range old {
		if !slices.Contains(now, n) {
			c.Left = append(c.Left, n)
		}
	}
	c.Worse = append(c.Worse, findWorsened(before.Slow, after.Slow, c.Joined)...)
	c.Better = append(c.Better, findWorsened(after.Slow, before.Slow, c.Left)...)
	for _, path := range []string{Host, Pod} {
		for _, m := range Metrics {
			was, is := pairsOf(before, path, m), pairsOf(after, path, m)
			var a, b []float64
			for pair, v := range was {
				if w, both := is[pair]; both {
					a, b = append(a, v), append(b, w)
				}
			}
			if len(a) > 0 {
				c.Levels = append(c.Levels, Level{path, m, len(a), stat.Median(a), stat.Median(b)})
			}
		}
	}
	return c
}

// findWorsened returns the places of the second list that the first lacks or that are worse in the
// second one, without those of nodes that are new.
func findWorsened(was, is []Place, added []string) []Place {
	var out []Place
	for _, p := range is {
		if slices.Contains(added, p.From) || slices.Contains(added, p.To) {
			continue
		}
		i := slices.IndexFunc(was, func(o Place) bool {
			return o.Kind == p.Kind && o.From == p.From && o.To == p.To && o.Path == p.Path && o.Metric == p.Metric
		})
		if i < 0 || fallenBy(p.Metric, was[i].Value, p.Value) {
			out = append(out, p)
		}
	}
	return out
}

// fallenBy reports whether a figure got worse by what is worth a name.
func fallenBy(m Metric, before, after float64) bool {
	if m == MTU {
		return after < before
	}
	d := badness(m, after) - badness(m, before)
	return !math.IsNaN(d) && d >= limit(m)
}

func pairsOf(r *Report, path string, m Metric) map[[2]string]float64 {
	out := map[[2]string]float64{}
	for i := range r.Pairs {
		if v := r.Pairs[i].value(m); v != nil && r.Pairs[i].Path == path {
			out[[2]string{r.Pairs[i].From, r.Pairs[i].To}] = *v
		}
	}
	return out
}

// String returns the change for a terminal.
func (c *Change) String() string {
	var b strings.Builder
	switch {
	case len(c.Worse) == 0:
		b.WriteString("No place got worse.\n")
	case len(c.Worse) == 1:
		b.WriteString("One place got worse.\n")
	default:
		fmt.Fprintf(&b, "%d places got worse.\n", len(c.Worse))
	}
	for _, p := range c.Worse {
		fmt.Fprintf(&b, "  ✗ %s\n", p.Text())
	}
	for _, p := range c.Better {
		fmt.Fprintf(&b, "  ✓ better: %s; it was %s\n", p.Where(), Format(p.Metric, p.Value))
	}
	if len(c.Joined) > 0 {
		fmt.Fprintf(&b, "  New nodes, not compared: %s\n", strings.Join(c.Joined, ", "))
	}
	if len(c.Left) > 0 {
		fmt.Fprintf(&b, "  Nodes that are gone: %s\n", strings.Join(c.Left, ", "))
	}
	for _, l := range c.Levels {
		fmt.Fprintf(&b, "  Median of %d directions, %s network: %s, before %s\n", l.Pairs, l.Path, Format(l.Metric, l.After), Format(l.Metric, l.Before))
	}
	return b.String()
}
