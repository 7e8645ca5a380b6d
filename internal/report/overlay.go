package report

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text"
)

// letters name the two runs of an overlay.
var letters = [2]string{"A", "B"}

// WriteOverlay writes a page that draws two runs in the same charts. A contender of both is
// there twice, as "canal · A" and "canal · B". Every ratio is to the baseline of its own run.
// Errors: those of w.
func WriteOverlay(w io.Writer, a, b Run, at Page) error {
	runs := [2]Run{a, b}
	var pages [2]*page
	var names [2]string
	for i, run := range runs {
		names[i] = filepath.Base(run.Dir)
		if filepath.Base(a.Dir) == filepath.Base(b.Dir) {
			names[i] = run.Dir
		}
		names[i] = letters[i] + ": " + text.SafeLine(names[i])
		pages[i] = newPage(finite(run.Report), at)
	}
	if err := overlay(pages[0], pages[1], names).write(w); err != nil {
		return fmt.Errorf("overlay as %s: %w", HTML, err)
	}
	return nil
}

// overlay returns the page of two runs: a with what b has beside it. Both pages are used up.
func overlay(a, b *page, names [2]string) *page {
	j := newJoin(&a.Data, &b.Data)
	p := &page{
		sheet: a.sheet, Page: a.Page, Title: names[0] + ", " + names[1], Legend: a.Legend,
		Style: a.Style, Loader: a.Loader, Policy: a.Policy,
		Answer: append([]string{"Two runs in the same charts. Of two alike in colour, B is the one that is dashed, hollow or paler. A ratio is to the baseline of its own run."}, apart(a, b)...),
		Traces: traces{List: a.Traces.List[:0]},
	}
	for i, one := range []*page{a, b} {
		run := one.Runs[0]
		run.Name = names[i]
		p.Runs = append(p.Runs, run)
	}
	p.Data = j.data(&a.Data, &b.Data)
	for i := range max(len(a.Sections), len(b.Sections)) {
		s := section{Place: i}
		if i < len(a.Sections) {
			s.Title, s.charts = a.Sections[i].Title, a.Sections[i].charts
		}
		var of []chart
		if i < len(b.Sections) {
			of = b.Sections[i].charts
		}
		s.charts = j.charts(shared(s.charts), shared(of))
		p.Sections = append(p.Sections, s)
		p.Data.Charts = append(p.Data.Charts, s.charts...)
	}
	kept := []string{viewOverview, viewThroughput, viewLatency, viewEfficiency, viewResources, viewResults}
	p.Views = slices.DeleteFunc(p.links(), func(l link) bool { return !slices.Contains(kept, l.ID) })
	return p
}

// shared returns the charts that compare contenders, which two runs can share.
func shared(list []chart) []chart {
	return slices.DeleteFunc(slices.Clone(list), func(c chart) bool { return c.View == viewRates || c.View == viewStudy })
}

// apart says what else differs between the runs than the hour.
func apart(a, b *page) []string {
	var out []string
	if x, y := a.Runs[0].Machine, b.Runs[0].Machine; x != y {
		out = append(out, fmt.Sprintf("The machines differ: %s in A, %s in B.", x, y))
	}
	for _, s := range a.Steps {
		i := slices.IndexFunc(b.Steps, func(o result.Step) bool { return o.ID == s.ID })
		if i < 0 {
			continue
		}
		x, y := fmt.Sprint(s.Params[result.RateParam]), fmt.Sprint(b.Steps[i].Params[result.RateParam])
		if x != y {
			out = append(out, fmt.Sprintf("Rates differ: %s has %s requests/s in A and %s in B, so its latencies are of two loads.", s.ID, x, y))
		}
	}
	return append(out, "What changed, with intervals: cnibench compare A B.")
}

// join joins the data of two runs. Places of the second are moved behind those of the first.
type join struct {
	first  int   // how many contenders the first run has
	same   []int // of each contender of the second: its place in the first, or -1
	steps  []int // new places of the second's steps
	metric []int // of its metrics
}

func newJoin(a, b *pageData) *join {
	j := &join{first: len(a.Contenders)}
	for _, name := range b.Contenders {
		j.same = append(j.same, slices.Index(a.Contenders, name))
	}
	return j
}

// union appends the names of b that a lacks, and returns the places of all names of b.
func union(a, b []string) (all []string, places []int) {
	all = slices.Clone(a)
	for _, name := range b {
		i := slices.Index(all, name)
		if i < 0 {
			i, all = len(all), append(all, name)
		}
		places = append(places, i)
	}
	return all, places
}

// data returns what both runs have, without charts.
func (j *join) data(a, b *pageData) pageData {
	d := pageData{Run: a.Run + " and " + b.Run, Charts: []chart{}, Ciphers: slices.Concat(a.Ciphers, b.Ciphers), Results: slices.Clone(a.Results)}
	d.Steps, j.steps = union(a.Steps, b.Steps)
	d.Metrics, j.metric = union(a.Metrics, b.Metrics)
	d.Groups = slices.Clone(a.Groups)
	if len(b.Groups) > len(a.Groups) {
		d.Groups = append(d.Groups, b.Groups[len(a.Groups):]...)
	}
	hues, next := map[int]int{0: 0}, slices.Max(append(a.Hues, 0))+1
	for i, at := range j.same {
		if at >= 0 {
			hues[b.Hues[i]] = a.Hues[at]
		}
	}
	for i, name := range a.Contenders {
		d.Contenders, d.Hues = append(d.Contenders, ofRun(name, 0)), append(d.Hues, a.Hues[i])
		d.Second, d.Same = append(d.Second, false), append(d.Same, i)
	}
	for i, name := range b.Contenders {
		hue, known := hues[b.Hues[i]]
		if !known {
			hue, next = next, next+1
			hues[b.Hues[i]] = hue
		}
		same := j.same[i]
		if same < 0 {
			same = j.first + i
		}
		d.Contenders, d.Hues = append(d.Contenders, ofRun(name, 1)), append(d.Hues, hue)
		d.Second, d.Same = append(d.Second, true), append(d.Same, same)
	}
	for _, r := range b.Results {
		r.Contender, r.Step, r.Metric = r.Contender+j.first, j.steps[r.Step], j.metric[r.Metric]
		d.Results = append(d.Results, r)
	}
	return d
}

// ofRun is the name of a contender or product of a run.
func ofRun(name string, run int) string { return name + " · " + letters[run] }

// charts returns the charts of both runs. Charts of the same figure are one.
func (j *join) charts(a, b []chart) []chart {
	var out []chart
	for _, c := range a {
		out = append(out, j.chart(c, chart{Kind: c.Kind, Parts: c.Parts}))
	}
	for _, c := range b {
		i := slices.IndexFunc(a, func(o chart) bool { return shows(o) == shows(c) })
		if i >= 0 {
			out[i] = j.chart(a[i], c)
			continue
		}
		alone := chart{ID: "b-" + c.ID, Kind: c.Kind, X: c.X, Y: c.Y, Parts: c.Parts, View: c.View, Places: c.Places, Title: c.Title, Caption: c.Caption, Table: plainTable{Head: c.Table.Head}}
		alone.Places.Steps = nil
		out = append(out, j.chart(alone, c))
	}
	return out
}

// shows says what a chart shows, whatever the rates of its steps were.
func shows(c chart) string {
	of := func(a *axis) string {
		if a == nil {
			return ""
		}
		return a.Label
	}
	return strings.Join(append([]string{c.View, c.Kind, of(c.X), of(c.Y)}, c.Places.steps...), "\n")
}

// chart returns a with what b has beside it.
func (j *join) chart(a, b chart) chart {
	out := a
	if b.Title != "" && b.Title != a.Title { // the rates of the step differ
		common := 0
		for common < min(len(a.Title), len(b.Title)) && a.Title[common] == b.Title[common] {
			common++
		}
		if end := strings.LastIndex(a.Title[:common], ", "); end >= 0 {
			out.Title = a.Title[:end] + " (" + strings.Join(a.Places.steps, ", ") + ")"
		}
	}
	out.Label = out.Title + " of two runs; the table below it has the figures"
	out.Reach = max(a.Reach, b.Reach)
	out.Caption, _, _ = strings.Cut(a.Caption, " Grey: ")
	out.Caption = strings.Replace(out.Caption, "Shaded bands and letters: groups", "Letters: groups of its own run", 1)
	if b.Steady > 0 && (a.Steady == 0 || b.Steady < a.Steady) {
		out.Steady = b.Steady
	}
	if out.Steady > 0 {
		out.Caption += greyText(out.Steady, "one of the runs")
	}
	for _, s := range b.Places.Steps {
		if s = j.steps[s]; !slices.Contains(out.Places.Steps, s) {
			out.Places.Steps = append(slices.Clone(out.Places.Steps), s)
		}
	}
	out.Rows = weave(j, a.Rows, b.Rows, func(x *bar) *int { return &x.C })
	out.Points = weave(j, a.Points, b.Points, func(x *point) *int { return &x.C })
	out.Series = weave(j, rename(a.Series, 0), rename(b.Series, 1), func(x *series) *int { return &x.C })
	var parts []int
	out.Parts, parts = union(a.Parts, b.Parts)
	stacks, pairs := slices.Clone(b.Stacks), slices.Clone(b.Pairs)
	for i := range stacks {
		stacks[i].Values = moved(stacks[i].Values, parts, len(out.Parts))
	}
	for i := range pairs {
		pairs[i].Figures = moved(pairs[i].Figures, parts, len(out.Parts))
	}
	out.Stacks = weave(j, a.Stacks, stacks, func(x *stack) *int { return &x.C })
	out.Pairs = weave(j, a.Pairs, pairs, func(x *pair) *int { return &x.C })
	out.Table = j.table(a.Table, b.Table)
	return out
}

// table returns the rows of both tables, under the heads of both.
func (j *join) table(a, b plainTable) plainTable {
	type row struct {
		of    int
		cells []string
	}
	rows := func(t plainTable, run int, cells func([]string) []string) (out []row) {
		for i, r := range t.Rows {
			out = append(out, row{t.Of[i], append([]string{ofRun(r[0], run)}, cells(r)[1:]...)})
		}
		return out
	}
	head, places := union(a.Head, b.Head)
	width := func(r []string) []string {
		return append(slices.Clone(r), slices.Repeat([]string{"–"}, len(head)-len(r))...)
	}
	out := plainTable{Head: head}
	for _, r := range weave(j, rows(a, 0, width), rows(b, 1, func(r []string) []string {
		all := slices.Repeat([]string{"–"}, len(head))
		for i, cell := range r {
			all[places[i]] = cell
		}
		return all
	}), func(x *row) *int { return &x.of }) {
		out.add(r.of, r.cells...)
	}
	return out
}

// moved puts values at their new places among n.
func moved[T any](values []*T, places []int, n int) []*T {
	out := make([]*T, n)
	for i, v := range values {
		out[places[i]] = v
	}
	return out
}

// rename names the lines that have names of their own after their run.
func rename(list []series, run int) []series {
	out := slices.Clone(list)
	for i := range out {
		if out[i].Name != "" {
			out[i].Name = ofRun(out[i].Name, run)
		}
	}
	return out
}

// weave returns a with each value of b behind that of the same contender, and the others at
// the end. of returns the place of a value's contender, which weave moves for values of b.
func weave[T any](j *join, a, b []T, of func(*T) *int) []T {
	b = slices.Clone(b)
	behind := map[int][]T{}
	var rest []T
	for i := range b {
		place := of(&b[i])
		same := j.same[*place]
		*place += j.first
		if same >= 0 && slices.ContainsFunc(a, func(x T) bool { return *of(&x) == same }) {
			behind[same] = append(behind[same], b[i])
		} else {
			rest = append(rest, b[i])
		}
	}
	var out []T
	for i, x := range a {
		out = append(out, x)
		place := *of(&x)
		if last := i+1 == len(a) || !slices.ContainsFunc(a[i+1:], func(o T) bool { return *of(&o) == place }); last {
			out = append(out, behind[place]...)
		}
	}
	return append(out, rest...)
}
