package report

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/unit"
)

// choice is the part of the page that helps to choose.
type choice struct {
	Sentence, Needed string       // "" if nothing could be scored
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

// ranked is a choice, with the contender's place in the palette or -1.
type ranked struct {
	analysis.Choice
	Place int
	Ratio string   // the score in words
	Terms []string // by criterion
}

// half is one half of the matrix: the contenders that the run measured, or the others,
// which are folded.
type half struct {
	Fold bool
	Rows []matrixed
}

// Halves returns the rows of the matrix in at most two halves.
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

// matrixed is a contender's row of the matrix of capabilities.
type matrixed struct {
	Contender string
	Place     int // in the palette, -1 for one that was not measured
	Cells     []ability
}

// advised is the advice for a scenario.
type advised struct{ Scenario, Summary, Text string }

// ability is a cell of the matrix of capabilities. Its Text is "" if nothing is known.
type ability struct {
	Text, Detail string
	Yes, No      bool
	Proof        string // "check" or "measured" if this run proved it; "" if the catalogue says so
}

// Bare says whether the sign alone tells what the text says.
func (a ability) Bare() bool { return a.Text == "yes" || a.Text == "no" }

// decision is a series of questions that leads to a contender. A reader who answers yes
// takes the question's contender, else goes on with the next question.
type decision struct {
	Questions []question `json:"questions"`
	Else      int        `json:"else"` // place of the contender if all answers are no
}

type question struct {
	Take  int    `json:"take"` // place of the contender
	Words string `json:"words"`
}

// choice returns nil for a report with neither capabilities nor a recommendation.
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
	c.Sentence, c.Needed, c.Lost, c.Unknown, c.Notes = layout.FirmnessText(rec), layout.NameNeeds(rec), layout.GroupLosses(rec.Lost), layout.GroupLosses(rec.Unknown), rec.Notes
	if len(rec.Ranked) > 0 {
		c.Legend = layout.RecommendLegend(rec)
	}
	for i, list := range append([]analysis.Recommendation{*rec}, rec.Others...) {
		if len(list.Ranked) == 0 {
			continue
		}
		l := v.choiceList(&list, colors, fmt.Sprintf("chart-score-%d", i+1))
		if len(rec.Others) > 0 {
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
	l := choiceList{Group: v.GroupPlace(layout.Site{Kernel: r.Kernel, Underlay: r.Underlay})}
	for _, w := range r.Weights {
		l.Criteria = append(l.Criteria, w.Criterion)
	}
	scores := chart{
		ID: id, Kind: "bars", X: &axis{"Score", "1"}, Places: places{Group: l.Group},
		Title:   "Score",
		Caption: "1 is " + v.Baseline + ". Line: what resampling the rounds gives. Higher is better.",
		Table:   plainTable{Head: []string{"contender", "score"}},
	}
	for _, choice := range r.Ranked {
		place, known := colors[choice.Contender]
		if !known {
			place = -1
		}
		row := ranked{Choice: choice, Place: place, Ratio: layout.WithInterval(choice.Score, choice.CI)}
		for _, t := range choice.Terms {
			row.Terms = append(row.Terms, unit.Ratio(t.Ratio)+"×")
		}
		l.Ranked = append(l.Ranked, row)
		if !known || !layout.IsFinite(choice.Score) {
			continue
		}
		f := toFigure(analysis.Estimate{Median: choice.Score, CI: choice.CI}, "1")
		scores.Rows = append(scores.Rows, bar{C: place, figure: f, Mark: unit.Ratio(choice.Score), Rounds: []float64{}})
		scores.Table.add(place, choice.Contender, row.Ratio)
	}
	if len(scores.Rows) > 1 {
		scores.Label = fmt.Sprintf("Bar chart of the scores of %s; the table below it has the figures", unit.Plural(len(scores.Rows), "contender"))
		l.Charts = append(l.Charts, scores)
	}
	return l
}

// matrix arranges the capabilities. The result of a check replaces the catalogue's, and
// measured contenders come first.
func (c *choice) matrix(all []analysis.Capability, colors map[string]int) {
	all = slices.DeleteFunc(slices.Clone(all), func(a analysis.Capability) bool {
		return slices.Contains(analysis.AlwaysNeeded(), a.Name) // who lacks these is ruled out, and listed there
	})
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

// has says whether the contender meets the need.
func (c *choice) has(contender, need string) bool {
	i := slices.IndexFunc(c.Matrix, func(m matrixed) bool { return m.Contender == contender })
	k := slices.Index(c.Needs, need)
	return i >= 0 && k >= 0 && c.Matrix[i].Cells[k].Yes
}

// decide sets c.Decision. There is a question for every need that the first choice does
// not meet, the need that fewest contenders meet first, and the question leads to the best
// contender that meets the need. Without such a need there is no decision.
func (c *choice) decide(choices []ranked) {
	list := slices.DeleteFunc(slices.Clone(choices), func(r ranked) bool { return r.Place < 0 })
	if len(list) == 0 {
		return
	}
	d := &decision{Else: list[0].Place, Questions: []question{}}
	type unmet struct {
		need        string
		count, best int // contenders that meet the need, and the index of the best of them
	}
	var asked []unmet
	for _, need := range c.Needs {
		o := unmet{need: need, best: -1}
		for i, r := range list {
			if c.has(r.Contender, need) {
				if o.count++; o.best < 0 {
					o.best = i
				}
			}
		}
		if o.best > 0 {
			asked = append(asked, o)
		}
	}
	slices.SortStableFunc(asked, func(a, b unmet) int { return a.count - b.count })
	var words [][]string // of each question
	for _, o := range asked {
		place := list[o.best].Place
		i := slices.IndexFunc(d.Questions, func(q question) bool { return q.Take == place })
		if i < 0 {
			d.Questions = append(d.Questions, question{Take: place})
			words = append(words, nil)
			i = len(d.Questions) - 1
		}
		words[i] = append(words[i], text.SafeLine(layout.NeedWords(o.need)))
		d.Questions[i].Words = layout.OrList(words[i])
	}
	if len(d.Questions) > 0 {
		c.Decision = d
	}
}

// Name returns the contender at a place.
func (p page) Name(place int) string { return p.Data.Contenders[place] }
