package report

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/unit"
)

// agreementCharts returns a chart of our ratios and a study's for each agreement.
func (v *sheet) agreementCharts() []chart {
	var out []chart
	colors := v.colors()
	for i := range v.Agreements {
		a := &v.Agreements[i]
		c := chart{
			ID: fmt.Sprintf("chart-agreement-%d", i+1), Kind: "scatter", Places: ofSteps(a.Step), View: viewPublished,
			X: &axis{"The study's ratio to its baseline", "1"}, Y: &axis{"Our ratio to " + v.Baseline, "1"},
			Title:   layout.AgreementName(v.Report, a),
			Caption: "Each point is a contender. On a rising line the orders agree; the scales need not. Crosses: our intervals.",
			Table:   plainTable{Head: []string{"contender", "ours", "theirs"}},
		}
		c.Places.Group, c.Places.Steps = -1, v.stepPlaces(c.Places)
		for _, f := range layout.Against(v.Report, a) {
			p := point{C: colors[f.Contender], X: figure{Value: f.Ratio, Text: layout.PublishedRatio(f)}, Y: figure{Value: f.Ours.Ratio, Text: layout.Comparison(&f.Ours)}}
			if f.Ours.CI != nil {
				p.Y.Low, p.Y.High = &f.Ours.CI[0], &f.Ours.CI[1]
			}
			c.Points = append(c.Points, p)
			c.Table.add(p.C, f.Contender, p.Y.Text, p.X.Text)
		}
		c.Label = fmt.Sprintf("Scatter chart of our ratios against the study's with %s; the table below it has the figures", unit.Plural(len(c.Points), "contender"))
		out = append(out, c)
	}
	return out
}
