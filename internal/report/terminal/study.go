package terminal

import (
	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/text"
)

// bandColor is the escape code of each band's colour. The eight colours of every terminal
// do not contain orange, so words are printed beside the figures, too.
var bandColor = map[string]string{"green": "32", "yellow": "33", "orange": "33;1", "red": "31"}

// maxWorded is how many columns have room for words beside their figures.
const maxWorded = 5

// pictures prints the tables of the study's pictures, if the run repeats a study.
func (t *Writer) pictures() {
	for i, p := range t.Pictures() {
		if i == 0 {
			t.Wrap("", text.SafeLine("Study "+t.Study.ID+": "+t.Study.Title+" ("+t.Study.By+")"), Bold)
			t.Line("")
		}
		t.Wrap("", text.SafeLine(p.Title), Bold)
		t.picture(p)
		t.Wrap("", text.SafeLine(p.Legend), Dim)
		if p.Note != "" {
			t.Wrap("", text.SafeLine(p.Note), Dim)
		}
		t.Line("")
	}
}

func (t *Writer) picture(p layout.PictureTable) {
	tw := NewGrid(ButFirst(len(p.Head) + 1)...)
	head := table.Row{t.Paint(Bold, "Contender")}
	for _, h := range p.Head {
		head = append(head, t.Paint(Bold, t.Shorten(h)))
	}
	tw.AppendHeader(head)
	wide := len(p.Head) <= maxWorded
	for _, r := range p.Rows {
		row := table.Row{t.Shorten(r.Name)}
		for _, c := range r.Cells {
			words := c.Text
			switch {
			case c.Word != "" && wide:
				words += " " + c.Word
			case c.Word != "":
				words += " " + c.Color[:1] // as the legend names it
			}
			row = append(row, t.Paint(bandColor[c.Color], words))
		}
		tw.AppendRow(row)
	}
	t.Grid(tw)
}
