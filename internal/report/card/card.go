// Package card draws a run as one picture for links and slides: the verdict, the five best
// contenders, and where they were measured. It computes no statistic and opens no file.
// Next: ../layout/answer.go, whose verdict it shows.
package card

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"slices"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/unit"
)

// Width and Height are the size of a picture beside a link that sites expect, in pixels.
const (
	Width  = 1200
	Height = 630
)

const (
	margin = 64
	edge   = Width - margin/2 // where texts are cut off
	best   = 5                // rows
)

var (
	paper = color.RGBA{0xff, 0xff, 0xff, 0xff}
	ink   = color.RGBA{0x1b, 0x1f, 0x24, 0xff}
	muted = color.RGBA{0x59, 0x63, 0x6e, 0xff}
	bar   = color.RGBA{0x7c, 0x8e, 0xe7, 0xff}
)

// pen draws on a picture.
type pen struct {
	*image.RGBA
	regular, bold *opentype.Font
}

// Write writes the picture of r as PNG. Errors: those of w.
func Write(w io.Writer, r *analysis.Report) error {
	p := pen{RGBA: image.NewRGBA(image.Rect(0, 0, Width, Height))}
	var err error
	if p.regular, err = opentype.Parse(goregular.TTF); err != nil {
		return err
	}
	if p.bold, err = opentype.Parse(gobold.TTF); err != nil {
		return err
	}
	draw.Draw(p, p.Bounds(), image.NewUniform(paper), image.Point{}, draw.Src)
	v := layout.New(r)
	if err := p.draw(v); err != nil {
		return err
	}
	return png.Encode(w, p)
}

func (p pen) draw(v *layout.View) error {
	if err := p.text(p.regular, 22, muted, margin, 66, edge, "cnibench, suite "+v.Run.Suite); err != nil {
		return err
	}
	y := 118
	lines, err := p.wrapped(p.bold, 34, Width-2*margin, v.Answer()[0])
	if err != nil {
		return err
	}
	const most = 4
	if len(lines) > most {
		lines = append(lines[:most-1:most-1], lines[most-1]+" …")
	}
	for _, line := range lines {
		if err := p.text(p.bold, 34, ink, margin, y, edge, line); err != nil {
			return err
		}
		y += 44
	}
	if err := p.rows(v, y+14); err != nil {
		return err
	}
	return p.text(p.regular, 20, muted, margin, Height-36, edge, strings.Join(facts(v), " · "))
}

// rows draws the best contenders of the group's first answer column, with bars.
func (p pen) rows(v *layout.View, y int) error {
	if len(v.Groups) == 0 {
		return nil
	}
	g := &v.Groups[0]
	columns := v.AnswerColumns(g)
	if len(columns) == 0 {
		return nil
	}
	var figures []*analysis.Result
	longest := 0.0
	for _, c := range g.Contenders {
		if f := g.Figure(c.ID, columns[0]); f != nil && len(figures) < best && !c.Baseline {
			figures = append(figures, f)
			longest = max(longest, f.Median)
		}
	}
	const name, room, size = 330, 420, 24
	for _, f := range figures {
		if err := p.text(p.regular, size, ink, margin, y+24, margin+name-10, f.Contender); err != nil {
			return err
		}
		if longest > 0 {
			end := margin + name + int(room*f.Median/longest)
			draw.Draw(p, image.Rect(margin+name, y+4, end, y+30), image.NewUniform(bar), image.Point{}, draw.Src)
		}
		words := layout.Value(f)
		if ratio := layout.Comparison(f.VsBaseline); ratio != "" {
			words += ", " + ratio
		}
		if err := p.text(p.regular, size, ink, margin+name+room+14, y+24, edge, words); err != nil {
			return err
		}
		y += 42
	}
	return nil
}

// facts returns the CPU, the kernel, the rounds, the arena and the date of the run.
func facts(v *layout.View) []string {
	out := []string{}
	add := func(words string) {
		if words != "" {
			out = append(out, words)
		}
	}
	cpu := v.Run.Environment["cpu.model"]
	if n := v.Run.Environment["cpu.count"]; n != "" {
		cpu = strings.TrimSpace(n + " CPUs " + cpu)
	}
	add(cpu)
	if kernel := v.Run.Environment["kernel.release"]; kernel != "" {
		add("kernel " + kernel)
	}
	add(fmt.Sprintf("%s, %s", unit.Plural(v.Run.Rounds, "round"), v.Run.Arena))
	if !v.Run.Started.IsZero() {
		add(v.Run.Started.UTC().Format("2006-01-02"))
	}
	return out
}

// text draws a line from x to at most end (pixels).
func (p pen) text(f *opentype.Font, size float64, in color.Color, x, y, end int, words string) error {
	face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		return err
	}
	words = text.SafeLine(words)
	room := fixed.I(end - x)
	for runes := []rune(words); font.MeasureString(face, words) > room && len(runes) > 0; {
		runes = runes[:len(runes)-1]
		words = string(runes) + "…"
	}
	d := font.Drawer{Dst: p, Src: image.NewUniform(in), Face: face, Dot: fixed.P(x, y)}
	d.DrawString(words)
	return nil
}

// wrapped returns the words in lines that are at most room pixels wide.
func (p pen) wrapped(f *opentype.Font, size float64, room int, words string) ([]string, error) {
	face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		return nil, err
	}
	lines := []string{""}
	for word := range slices.Values(strings.Fields(text.SafeLine(words))) {
		last := lines[len(lines)-1]
		if longer := strings.TrimSpace(last + " " + word); last == "" || font.MeasureString(face, longer) <= fixed.I(room) {
			lines[len(lines)-1] = longer
			continue
		}
		lines = append(lines, word)
	}
	return lines, nil
}
