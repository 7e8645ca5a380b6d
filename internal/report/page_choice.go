package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/printable"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/unit"
)

// choice is the part of the page that helps to choose.
type choice struct {
	Sentence, Needed string       // "" where nothing could be scored
	Lists            []choiceList // contenders that may be ranked with each other
	Lost, Unknown    []layout.Losses
	Notes, Legend    []string
	Decision         *decision
	Scenarios        []advised

	Needs  []string   // columns of the matrix
	Matrix []matrixed // rows
}

type choiceList struct {
	Title, Sentence string // "" for the only list
	Group           int
	Criteria        []string
	Ranked          []ranked
	Charts          []chart // of the scores
}

// ranked is a choice with its place in the palette, -1 for none.
type ranked struct {
	analysis.Choice
	Place int
	Ratio string // the score in words
	First string
	Terms []string // one to each criterion
}

// half is the contenders that the run measured, or the others, which are folded.
type half struct {
	Fold bool
	Rows []matrixed
}

// Halves are the rows of the matrix.
func (c *choice) Halves() []half {
	first := slices.IndexFunc(c.Matrix, func(m matrixed) bool { return m.Place < 0 })
	if first < 0 {
		return []half{{Rows: c.Matrix}}
	}
	if first == 0 {
		return []half{{Fold: true, Rows: c.Matrix}}
	}
	return []half{{Rows: c.Matrix[:first]}, {Fold: true, Rows: c.Matrix[first:]}}
}

// matrixed is what one contender can do.
type matrixed struct {
	Contender string
	Place     int // in the palette, -1 for one that was not measured
	Cells     []ability
}

// advised is the advice for a scenario.
type advised struct{ Scenario, Summary, Text string }

// ability is a capability in words: "", where nothing is known.
type ability struct {
	Text, Detail string
	Yes, No      bool
	Proof        string // "check" or "measured" in this run; "" is the catalogue's word
}

// decision is the way to one contender by questions: each asks for what the
// answer so far lacks.
type decision struct {
	Questions []question `json:"questions"`
	Else      int        `json:"else"` // place of the contender that nothing speaks against
}

type question struct {
	Take  int    `json:"take"` // place of the contender
	Words string `json:"words"`
}

// choice is nil for a report with neither capabilities nor a recommendation.
func (v *sheet) choice() *choice {
	if len(v.Capabilities) == 0 && v.Recommendation == nil {
		return nil
	}
	c := &choice{}
	colors := v.colors()
	c.matrix(v.Capabilities, colors)
	for _, a := range v.Advice {
		c.Scenarios = append(c.Scenarios, advised{a.Scenario, a.Summary, layout.AdviceText(&a)})
	}
	rec := v.Recommendation
	if rec == nil {
		return c
	}
	c.Sentence, c.Needed, c.Lost, c.Unknown, c.Notes = layout.FirmnessText(rec), layout.Asked(rec), layout.GroupLosses(rec.Lost), layout.GroupLosses(rec.Unknown), rec.Notes
	if len(rec.Ranked) > 0 {
		c.Legend = layout.RecommendLegend(rec)
	}
	for i, list := range append([]analysis.Recommendation{*rec}, rec.Apart...) {
		if len(list.Ranked) == 0 {
			continue
		}
		l := v.choiceList(&list, colors, fmt.Sprintf("chart-score-%d", i+1))
		if len(rec.Apart) > 0 {
			l.Title = layout.ListTitle(&list)
		}
		if i > 0 {
			l.Sentence = layout.FirmnessText(&list)
		}
		c.Lists = append(c.Lists, l)
	}
	if len(rec.Ranked) > 0 {
		c.decide(c.Lists[0].Ranked)
	}
	return c
}

// choiceList arranges the contenders of one kernel and underlay.
func (v *sheet) choiceList(r *analysis.Recommendation, colors map[string]int, id string) choiceList {
	l := choiceList{Group: v.GroupPlace(layout.Site{Part: r.Part, Kernel: r.Kernel, Underlay: r.Underlay})}
	for _, w := range r.Weights {
		l.Criteria = append(l.Criteria, w.Criterion)
	}
	scores := chart{
		ID: id, Kind: "bars", X: &axis{"Score", "1"}, Places: places{Group: l.Group},
		Title:   "Score",
		Caption: "1 is " + v.Baseline + ". Line: what resampling the rounds gives. Higher is better.",
		Table:   plainTable{Head: []string{"contender", "score", "first"}},
	}
	for _, choice := range r.Ranked {
		place, known := colors[choice.Contender]
		if !known {
			place = -1
		}
		row := ranked{Choice: choice, Place: place, Ratio: layout.WithInterval(choice.Score, choice.CI), First: layout.Wins(&choice)}
		for _, t := range choice.Terms {
			row.Terms = append(row.Terms, unit.Ratio(t.Ratio)+"×")
		}
		l.Ranked = append(l.Ranked, row)
		if !known || !layout.IsFinite(choice.Score) {
			continue
		}
		f := estimated(analysis.Estimate{Median: choice.Score, CI: choice.CI}, "1")
		scores.Rows = append(scores.Rows, bar{C: place, figure: f, Mark: unit.Ratio(choice.Score), Rounds: []float64{}})
		scores.Table.add(place, choice.Contender, row.Ratio, row.First)
	}
	if len(scores.Rows) > 1 {
		scores.Label = fmt.Sprintf("Bar chart of the scores of %s; the table below it has the figures", unit.Plural(len(scores.Rows), "contender"))
		l.Charts = append(l.Charts, scores)
	}
	return l
}

// matrix arranges the capabilities: what a check found goes before what the
// catalogue says, contenders that were measured before others.
func (c *choice) matrix(all []analysis.Capability, colors map[string]int) {
	for _, a := range all {
		if !slices.Contains(c.Needs, a.Name) {
			c.Needs = append(c.Needs, a.Name)
		}
		if !slices.ContainsFunc(c.Matrix, func(m matrixed) bool { return m.Contender == a.Contender }) {
			place, known := colors[a.Contender]
			if !known {
				place = -1
			}
			c.Matrix = append(c.Matrix, matrixed{Contender: a.Contender, Place: place})
		}
	}
	for i := range c.Matrix {
		m := &c.Matrix[i]
		m.Cells = make([]ability, len(c.Needs))
		for _, a := range all {
			if a.Contender != m.Contender {
				continue
			}
			cell := &m.Cells[slices.Index(c.Needs, a.Name)]
			if cell.Proof != "" && a.Source == "catalogue" {
				continue
			}
			no := slices.Contains([]string{"no", "none", "fail"}, a.Value)
			*cell = ability{Text: a.Value, No: no, Yes: !no && !slices.Contains([]string{"", "unknown", "partial"}, a.Value), Detail: a.Detail}
			if a.Source != "catalogue" {
				cell.Proof = a.Source
			}
		}
	}
	slices.SortStableFunc(c.Matrix, func(a, b matrixed) int {
		switch {
		case (a.Place < 0) == (b.Place < 0):
			return 0
		case a.Place < 0:
			return 1
		}
		return -1
	})
}

// has says that the contender can do what the need asks for.
func (c *choice) has(contender, need string) bool {
	i := slices.IndexFunc(c.Matrix, func(m matrixed) bool { return m.Contender == contender })
	k := slices.Index(c.Needs, need)
	return i >= 0 && k >= 0 && c.Matrix[i].Cells[k].Yes
}

// decide asks for every need that the first choice does not meet, the rarest
// first, and answers with the best contender that meets it. Without a question
// there is nothing to draw.
func (c *choice) decide(of []ranked) {
	list := slices.DeleteFunc(slices.Clone(of), func(r ranked) bool { return r.Place < 0 })
	if len(list) == 0 {
		return
	}
	d := &decision{Else: list[0].Place, Questions: []question{}}
	type open struct {
		need      string
		who, take int
	}
	var asked []open
	for _, need := range c.Needs {
		o := open{need: need, take: -1}
		for i, r := range list {
			if c.has(r.Contender, need) {
				if o.who++; o.take < 0 {
					o.take = i
				}
			}
		}
		if o.take > 0 {
			asked = append(asked, o)
		}
	}
	slices.SortStableFunc(asked, func(a, b open) int { return a.who - b.who })
	for _, o := range asked {
		place := list[o.take].Place
		i := slices.IndexFunc(d.Questions, func(q question) bool { return q.Take == place })
		if i < 0 {
			d.Questions = append(d.Questions, question{Take: place})
			i = len(d.Questions) - 1
		}
		q := &d.Questions[i]
		q.Words = strings.TrimPrefix(q.Words+" or "+printable.Line(layout.NeedWords(o.need)), " or ")
	}
	if len(d.Questions) > 0 {
		c.Decision = d
	}
}

// Name is the contender at a place.
func (p page) Name(place int) string { return p.Data.Contenders[place] }
