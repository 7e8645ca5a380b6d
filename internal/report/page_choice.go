package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
)

// choice is the part of the page that helps to choose.
type choice struct {
	*analysis.Recommendation            // nil where nothing could be scored
	Ranked                   []ranked   // the same with places in the palette
	Needs                    []string   // columns of the matrix
	Matrix                   []matrixed // rows
	Decision                 *decision
	Charts                   []chart // of the scores
}

type ranked struct {
	analysis.Choice
	Place int
}

// matrixed is what one contender can do.
type matrixed struct {
	Contender string
	Place     int // in the palette, -1 for one that was not measured
	Cells     []ability
}

// ability is a capability in words: "", where nothing is known.
type ability struct {
	Text    string
	Yes, No bool
	Checked bool // proven by a check of the run, not only promised
}

// decision is the way to one contender by questions: each asks for what the
// answer so far lacks.
type decision struct {
	Questions []question `json:"questions"`
	Else      int        `json:"else"` // place of the contender that nothing speaks against
}

type question struct {
	Needs []string `json:"needs"`
	Take  int      `json:"take"` // place of the contender
	Words string   `json:"words"`
}

// choice is nil for a report with neither capabilities nor a recommendation.
func (v *view) choice() *choice {
	if len(v.Capabilities) == 0 && v.Recommendation == nil {
		return nil
	}
	c := &choice{Recommendation: v.Recommendation}
	colors := v.colors()
	c.matrix(v.Capabilities, colors)
	if v.Recommendation == nil {
		return c
	}
	scores := chart{
		ID: "chart-score", Kind: "bars", X: &axis{"Score", "1"}, Places: places{Group: -1},
		Title:   "Score",
		Caption: "Weighted geometric mean of the ratios to " + v.Baseline + ", turned so that higher is better. Line: its interval under resampling.",
		Table:   plainTable{Head: []string{"contender", "score", "interval", "comes first"}},
	}
	for _, r := range v.Recommendation.Ranked {
		place, known := colors[r.Contender]
		if !known {
			place = -1
		}
		c.Ranked = append(c.Ranked, ranked{r, place})
		if !known || !isFinite(r.Score) {
			continue
		}
		res := analysis.Result{Median: r.Score, Unit: "1", CI: r.CI}
		if r.CI != nil && !finiteInterval(r.CI) {
			res.CI = nil
		}
		wins := fmt.Sprintf("%.0f %%", r.Wins*100)
		b := bar{C: place, figure: newFigure(&res), Mark: value(&res), Rounds: []float64{}}
		scores.Rows = append(scores.Rows, b)
		scores.Table.add(place, r.Contender, value(&res), interval(&res), wins)
	}
	if len(scores.Rows) > 0 {
		scores.Label = fmt.Sprintf("Bar chart of the scores of %s; the table below it has the figures", plural(len(scores.Rows), "contender"))
		c.Charts = append(c.Charts, scores)
	}
	c.decide()
	return c
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
			if cell.Checked && a.Source != "check" {
				continue
			}
			no := slices.Contains([]string{"no", "none", "fail"}, a.Value)
			*cell = ability{Text: a.Value, No: no, Yes: !no && !slices.Contains([]string{"", "unknown", "partial"}, a.Value), Checked: a.Source == "check"}
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
// first, and answers with the best contender that meets it.
func (c *choice) decide() {
	list := slices.DeleteFunc(slices.Clone(c.Ranked), func(r ranked) bool { return r.Place < 0 })
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
		d.Questions[i].Needs = append(d.Questions[i].Needs, printable(o.need))
		d.Questions[i].Words = strings.Join(d.Questions[i].Needs, " or ")
	}
	c.Decision = d
}

// Name is the contender at a place.
func (p page) Name(place int) string { return p.Data.Contenders[place] }
