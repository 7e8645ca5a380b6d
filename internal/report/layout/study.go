package layout

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file makes tables of a study's pictures. A picture shows all groups together,
// because each contender is compared with the baseline of its own group.

// PictureTable is a picture as rows and columns.
type PictureTable struct {
	*analysis.Picture
	Head   []string // of the columns after the contenders'
	Rows   []PictureRow
	Legend string
}

// PictureRow is a contender in one group.
type PictureRow struct {
	ID    string
	Name  string // the id, followed by the group if the contender is in several
	Cells []PictureCell
}

// PictureCell is a figure in words, with the colour and the word of its band.
type PictureCell struct{ Text, Color, Word string }

// Pictures returns tables of the study's pictures for which the run has figures.
func (v *View) Pictures() []PictureTable {
	if v.Study == nil {
		return nil
	}
	var out []PictureTable
	a := pictures{v}
	for i := range v.Study.Pictures {
		p := &v.Study.Pictures[i]
		t := PictureTable{Picture: p}
		switch p.Kind {
		case analysis.PictureMatrix:
			t = a.matrix(p)
		case analysis.PictureFigures:
			t = a.figures(p)
		case analysis.PictureLoad:
			t = a.overRates(p)
		}
		if len(t.Rows) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// pictures has the methods that make the tables.
type pictures struct{ *View }

// columnOf returns the picture's column of a step in a group.
func (v pictures) columnOf(p *analysis.Picture, g *Group, step string) (Column, bool) {
	if p.Metric != "" {
		return g.Has(step, p.Metric)
	}
	return v.StepColumn(g, step)
}

// rowName returns PictureRow.Name.
func (v pictures) rowName(g *Group, id string) string {
	in := 0
	for i := range v.Groups {
		if slices.ContainsFunc(v.Groups[i].Contenders, func(c Contender) bool { return c.ID == id }) {
			in++
		}
	}
	if in > 1 && g.Title() != "" {
		return id + ", " + g.Title()
	}
	return id
}

// table makes the table of a picture. cell returns the cell of a figure. Rows without any
// figure are left out.
func (v pictures) table(p *analysis.Picture, baseline bool, cell func(*Group, Column, *analysis.Result) PictureCell) PictureTable {
	t := PictureTable{Picture: p}
	steps := p.Select(v.Steps)
	for _, s := range steps {
		t.Head = append(t.Head, s.ID)
	}
	for i := range v.Groups {
		g := &v.Groups[i]
		for _, c := range g.Contenders {
			if c.Baseline && !baseline || len(p.Contenders) > 0 && !slices.Contains(p.Contenders, c.ID) {
				continue
			}
			row, some := PictureRow{ID: c.ID, Name: v.rowName(g, c.ID)}, false
			for _, s := range steps {
				one := PictureCell{Text: unit.Missing}
				if col, ok := v.columnOf(p, g, s.ID); ok {
					if f := g.Figure(c.ID, col); f != nil {
						one = cell(g, col, f)
						some = some || one.Text != unit.Missing
					}
				}
				row.Cells = append(row.Cells, one)
			}
			if some {
				t.Rows = append(t.Rows, row)
			}
		}
	}
	if len(p.Contenders) > 0 {
		slices.SortStableFunc(t.Rows, func(a, b PictureRow) int { return slices.Index(p.Contenders, a.ID) - slices.Index(p.Contenders, b.ID) })
	}
	return t
}

// matrix shows each figure as per cent of the baseline's, in the colours of the bands.
func (v pictures) matrix(p *analysis.Picture) PictureTable {
	t := v.table(p, false, func(_ *Group, c Column, f *analysis.Result) PictureCell {
		if f.VsBaseline == nil || !f.Ranked {
			return PictureCell{Text: unit.Missing}
		}
		ratio := f.VsBaseline.Ratio
		if c.Better == result.Lower && ratio > 0 {
			ratio = 1 / ratio
		}
		band := p.Band(ratio)
		return PictureCell{Text: strconv.FormatFloat(100*ratio, 'f', 0, 64), Color: band.Color, Word: band.Word}
	})
	var words []string
	for i, b := range p.Bands {
		if i+1 < len(p.Bands) {
			words = append(words, fmt.Sprintf("%s, %s: %s %% and more", b.Word, b.Color, Exact(100*b.AtLeast)))
		} else {
			words = append(words, fmt.Sprintf("%s, %s: less", b.Word, b.Color))
		}
	}
	t.Legend = fmt.Sprintf("Per cent of %s, of the figure that tells most of each step. %s.", v.Baseline, strings.Join(words, "; "))
	return t
}

// figures shows medians beside ratios.
func (v pictures) figures(p *analysis.Picture) PictureTable {
	t := v.table(p, true, func(_ *Group, _ Column, f *analysis.Result) PictureCell {
		cell := PictureCell{Text: Value(f)}
		if f.VsBaseline != nil {
			cell.Text += " (" + unit.Ratio(f.VsBaseline.Ratio) + "×)"
		}
		return cell
	})
	t.Legend = fmt.Sprintf("Medians; × is the ratio to %s.", v.Baseline)
	return t
}

// overRates shows a metric as a ratio to the baseline of the same underlay, with the
// achieved rate.
func (v pictures) overRates(p *analysis.Picture) PictureTable {
	t := v.table(p, true, func(g *Group, c Column, f *analysis.Result) PictureCell {
		cell := PictureCell{Text: Value(f)}
		if f.VsBaseline != nil {
			cell.Text = unit.Ratio(f.VsBaseline.Ratio) + "× (" + cell.Text + ")"
		}
		if rate := g.Figure(f.Contender, Column{Step: c.Step, Metric: result.Rate}); rate != nil {
			cell.Text += " at " + Value(rate)
		}
		return cell
	})
	t.Legend = fmt.Sprintf("%s; × is the ratio to %s on the same underlay. The rate is the one achieved: where it is below the others' of its column, the option was overloaded.", MetricLabel(p.Metric), v.Baseline)
	return t
}

// StepColumn returns the column that represents a step: the first ranked metric of the
// aspects Traffic and Typical.
func (v *View) StepColumn(g *Group, step string) (Column, bool) {
	for _, aspect := range []result.Aspect{result.Traffic, result.Typical} {
		for _, name := range result.OfAspect(aspect) {
			c, ok := g.Has(step, name)
			if ok && slices.ContainsFunc(g.Contenders, func(one Contender) bool { f := g.Figure(one.ID, c); return f != nil && f.Ranked }) {
				return c, true
			}
		}
	}
	return Column{}, false
}
