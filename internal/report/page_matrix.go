package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file makes the page's first picture (contenders by steps) and its strip of validity
// (contenders by rounds). Both are tables, so they need no script.

// standings is one figure of each step as per cent of the baseline's.
type standings struct {
	Columns   []htmlColumn
	Rows      []standingRow
	AllUnsure bool     // so that Unsure tells no figure from another
	Gaps      []string // why cells have no figure, the most frequent reason first
}

type standingRow struct {
	layout.Contender
	Place int
	Cells []standingCell
}

type standingCell struct {
	Place   int // of its step
	Percent string
	Full    string // ratio and interval in words, or why there is none
	Sort    string // the ratio as a number
	Shade   int    // 0 to 6, of how good it is; -1 for none
	Unsure  bool   // the interval contains 1, or there is no interval
}

const shades = 6

// standings returns the matrix of a group; nil if no contender has a ratio.
func (v *sheet) standings(g *layout.Group) *standings {
	m := &standings{AllUnsure: true}
	for _, s := range v.Steps {
		if c, ok := v.StepColumn(g, s.ID); ok {
			m.Columns = append(m.Columns, htmlColumn{c, v.stepPlace(s.ID)})
		}
	}
	colors, some := v.colors(), false
	gaps := map[string]int{}
	for _, one := range g.Contenders {
		if one.Baseline {
			continue
		}
		row := standingRow{Contender: one, Place: colors[one.ID]}
		for _, c := range m.Columns {
			cell := standingCell{Place: c.Place, Shade: -1}
			if f := g.Figure(one.ID, c.Column); f != nil && f.Ranked && f.VsBaseline != nil {
				some = true
				ratio := f.VsBaseline.Ratio
				cell.Percent, cell.Full, cell.Sort = strconv.FormatFloat(100*ratio, 'f', 0, 64), layout.Comparison(f.VsBaseline)+", "+layout.Value(f), fmt.Sprintf("%g", ratio)
				good := ratio
				if c.Better == result.Lower && ratio > 0 {
					good = 1 / ratio
				}
				cell.Shade = int(math.Round(shades * math.Min(1, math.Max(0, good))))
				ci := f.VsBaseline.CI
				cell.Unsure = ci == nil || ci[0] <= 1 && ci[1] >= 1
				m.AllUnsure = m.AllUnsure && ci == nil
			} else {
				cell.Full = v.gap(g, one, c.Column)
				gaps[cell.Full]++
			}
			row.Cells = append(row.Cells, cell)
		}
		m.Rows = append(m.Rows, row)
	}
	if !some {
		return nil
	}
	m.Gaps = slices.SortedFunc(maps.Keys(gaps), func(a, b string) int { return cmp.Or(gaps[b]-gaps[a], strings.Compare(a, b)) })
	return m
}

// gap says why a contender has no ratio in the column: the finding that left its samples out,
// or what is missing.
func (v *sheet) gap(g *layout.Group, one layout.Contender, c layout.Column) string {
	here := analysis.FindingPlace{Contender: one.ID, Step: c.Step}
	for i := range v.Findings {
		if f := &v.Findings[i]; f.Excluded && slices.Contains(f.Places, here) {
			return cmp.Or(lowerFirst(f.Title), f.Code)
		}
	}
	switch f := g.Figure(one.ID, c); {
	case f == nil:
		return g.Absent(one, c)
	case !f.Ranked:
		return "not ranked"
	case g.Figure(v.Baseline, c) == nil:
		return v.Baseline + " has no figure"
	}
	return "too few rounds beside " + v.Baseline + "'s"
}

// validity says which samples count in each round, of the contenders that lack some.
type validity struct {
	Rounds []int
	Rows   []validityRow
	Whole  int // contenders whose samples all count
}

type validityRow struct {
	Contender string
	Place     string // as attributes hold it
	Cells     []validityCell
}

type validityCell struct {
	Text  string // "7 of 8", "latency left out"; "" if all count
	State string // all, some, none; "" if nothing was measured
	Why   string // the reasons' codes
}

// Validity returns the strip of all samples; nil if every sample counts whole, because the
// strip then says nothing.
func (p page) Validity() *validity {
	s := &validity{}
	type spot struct {
		contender string
		round     int
	}
	valid, partly, all, why := map[spot]int{}, map[spot]int{}, map[spot]int{}, map[spot]string{}
	var contenders []string
	for _, m := range p.Marks {
		at := spot{m.Contender, m.Round}
		all[at]++
		switch {
		case m.Dropped != "":
			why[at] = m.Dropped
		case m.Partly != "":
			valid[at]++
			partly[at]++
			why[at] = cmp.Or(why[at], m.Partly)
		default:
			valid[at]++
		}
		if !slices.Contains(contenders, m.Contender) {
			contenders = append(contenders, m.Contender)
		}
		if !slices.Contains(s.Rounds, m.Round) {
			s.Rounds = append(s.Rounds, m.Round)
		}
	}
	if len(why) == 0 {
		return nil
	}
	slices.Sort(s.Rounds)
	slices.SortFunc(contenders, func(a, b string) int { return p.place(a) - p.place(b) })
	for _, c := range contenders {
		row := validityRow{Contender: c, Place: p.ContenderPlace(c)}
		for _, round := range s.Rounds {
			at := spot{c, round}
			cell := validityCell{Why: why[at]}
			switch n := all[at]; {
			case n == 0:
			case valid[at] == n && partly[at] == 0:
				cell.State = "all"
			case valid[at] == n:
				cell.State, cell.Text = "some", "latency left out"
			case valid[at] == 0:
				cell.State, cell.Text = "none", fmt.Sprintf("0 of %d", n)
			default:
				cell.State, cell.Text = "some", fmt.Sprintf("%d of %d", valid[at], n)
			}
			row.Cells = append(row.Cells, cell)
		}
		if slices.ContainsFunc(row.Cells, func(c validityCell) bool { return c.Text != "" }) {
			s.Rows = append(s.Rows, row)
		} else {
			s.Whole++
		}
	}
	return s
}

// place returns the contender's place in the palette; contenders without one come last.
func (p page) place(id string) int {
	if n, has := p.colors()[id]; has {
		return n
	}
	return len(p.Data.Contenders)
}

// hues returns a number for each contender's product, in the order in which products
// appear; 0 is the baseline's. ciphers are 0 for plain text, 1 for WireGuard, 2 for IPsec
// and others.
func (v *sheet) hues(colors map[string]int) (hues, ciphers []int) {
	hues, ciphers = make([]int, len(colors)), make([]int, len(colors))
	product := map[string]string{}
	for _, info := range v.Contenders {
		product[info.ID] = info.Product
	}
	order := map[string]int{}
	for _, id := range byPlace(colors) {
		family := product[id]
		if family == "" {
			family = id
		}
		if id == v.Baseline {
			continue
		}
		if order[family] == 0 {
			order[family] = len(order) + 1
		}
		hues[colors[id]] = order[family]
		switch v.Capability(id, "encryption") {
		case "", "no":
		case "wireguard":
			ciphers[colors[id]] = 1
		default:
			ciphers[colors[id]] = 2
		}
	}
	return hues, ciphers
}

func byPlace(colors map[string]int) []string {
	out := make([]string, len(colors))
	for id, place := range colors {
		out[place] = id
	}
	return out
}

// forest returns a chart of the ratios of a column with their intervals; nil with fewer
// than two ratios.
func (v *sheet) forest(g *layout.Group, c layout.Column, colors map[string]int) *chart {
	out := &chart{
		Kind: "forest", X: &axis{c.Head() + " by " + v.Baseline + "'s", "1"}, Places: ofSteps(c.Step),
		Title:   c.Head() + " against " + v.Baseline + ", " + v.title(c.Step),
		Caption: "Dot: ratio, paired by round. Line: its interval. The upright line is " + v.Baseline + ". " + betterIs(c.Better) + ".",
		Table:   plainTable{Head: []string{"contender", "ratio", "figure", "groups"}},
	}
	bounded, grouped := false, false
	for _, one := range g.SortBy([]layout.Column{c}).Contenders {
		f := g.Figure(one.ID, c)
		if f == nil || f.VsBaseline == nil || f.VsBaseline.Ratio <= 0 {
			continue
		}
		row := bar{C: colors[one.ID], Mark: layout.Letters(f), Rounds: []float64{}, figure: figure{Value: f.VsBaseline.Ratio, Text: layout.Comparison(f.VsBaseline)}}
		if ci := f.VsBaseline.CI; ci != nil && ci[0] > 0 {
			row.Low, row.High = &ci[0], &ci[1]
			bounded = true
		}
		grouped = grouped || row.Mark != ""
		out.Rows = append(out.Rows, row)
		out.Table.add(row.C, one.ID, layout.Comparison(f.VsBaseline), layout.Value(f), layout.Letters(f))
	}
	if len(out.Rows) < 2 {
		return nil
	}
	if !bounded {
		out.Caption = "Dot: ratio; the rounds are too few for intervals. The upright line is " + v.Baseline + ". " + betterIs(c.Better) + "."
	}
	if grouped {
		out.Caption += " Shaded bands and letters: groups that cannot be told apart."
	}
	out.Label = fmt.Sprintf("Forest plot of %s with %s; the table below it has the figures", out.Title, unit.Plural(len(out.Rows), "contender"))
	return out
}

// title returns a step's name with its id: "TCP, 1 stream (dts)".
func (v *sheet) title(step string) string {
	if name := v.StepName(step); name != step {
		return name + " (" + step + ")"
	}
	return step
}

// encryptions are the columns of the picture of what encryption costs.
var encryptions = []string{"plain", "wireguard", "ipsec"}

// slopes returns a chart of what encryption costs each product, at the first step that has
// goodput; nil if no product was measured with and without encryption.
func (v *sheet) slopes(g *layout.Group, colors map[string]int) *chart {
	c, ok := v.first(g, result.Goodput)
	if !ok {
		return nil
	}
	type product struct {
		name string
		best map[string]*analysis.Result
	}
	var products []*product
	for _, one := range g.Contenders {
		f := g.Figure(one.ID, c)
		if f == nil || one.Baseline || one.Info.Product == "" {
			continue
		}
		kind := v.Capability(one.ID, "encryption")
		if kind == "" || kind == "no" {
			kind = "plain"
		}
		i := slices.IndexFunc(products, func(p *product) bool { return p.name == one.Info.Product })
		if i < 0 {
			i, products = len(products), append(products, &product{one.Info.Product, map[string]*analysis.Result{}})
		}
		if had := products[i].best[kind]; had == nil || had.Median < f.Median {
			products[i].best[kind] = f
		}
	}
	out := &chart{
		Kind: "slopes", X: &axis{"encryption", ""}, Y: &axis{c.Head(), c.Unit}, Parts: []string{"plain", "WireGuard", "IPsec"}, Places: ofSteps(c.Step),
		Title:   "What encryption costs, " + v.title(c.Step),
		Caption: "A line for each product, from its fastest configuration in plain text to its fastest with WireGuard and with IPsec; medians.",
		Table:   plainTable{Head: []string{"product", "plain", "WireGuard", "IPsec"}},
	}
	shares := map[string][]string{} // goodput as a share of that in plain text, by kind of encryption
	for _, p := range products {
		line := series{Name: p.name, Points: [][2]short{}}
		row := []string{p.name}
		for k, kind := range encryptions {
			f := p.best[kind]
			if f == nil {
				row = append(row, "–")
				continue
			}
			line.C = colors[f.Contender]
			line.Points = append(line.Points, [2]short{short(k), short(f.Median)})
			row = append(row, f.Contender+" "+layout.Value(f))
			if plain := p.best["plain"]; plain != nil && k > 0 && plain.Median > 0 {
				shares[out.Parts[k]] = append(shares[out.Parts[k]], fmt.Sprintf("%s %.0f %%", p.name, 100*f.Median/plain.Median))
			}
		}
		if len(line.Points) > 1 {
			out.Series = append(out.Series, line)
			out.Table.add(line.C, row...)
		}
	}
	if len(out.Series) == 0 {
		return nil
	}
	for _, kind := range out.Parts {
		if len(shares[kind]) > 0 {
			out.Caption += fmt.Sprintf(" Goodput with %s, of that in plain text: %s.", kind, strings.Join(shares[kind], ", "))
		}
	}
	out.Label = fmt.Sprintf("Slopes of goodput with and without encryption of %s; the table below has the figures", unit.Plural(len(out.Series), "product"))
	return out
}
