package report

import (
	"cmp"
	_ "embed" // the page's parts
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/report/packed"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/unit"
)

//go:embed assets/page.html
var pageSource string

//go:embed assets/page.css
var pageStyle string

// pageScript is built from ui/; its notices are at its head and, with the long
// licences, in assets/NOTICES.txt.
//
//go:embed assets/charts.js
var pageScript string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"value": layout.Value, "interval": layout.Interval, "comparison": layout.Comparison, "standing": layout.SideOfBaseline, "letters": layout.Letters,
	"place": func(f analysis.Finding) string { return f.Where() }, "describe": layout.Describe, "plural": unit.Plural, "join": strings.Join, "label": layout.MetricLabel, "publishedRatio": layout.PublishedRatio,
	"ours": func(f analysis.PublishedFigure) string { return layout.Comparison(&f.Ours) },
}).Parse(pageSource))

// The parts of the page, each with an address of its own: #overview, ….
const (
	viewOverview   = "overview"
	viewStudy      = "study"
	viewThroughput = "throughput"
	viewLatency    = "latency"
	viewRates      = "rates" // within latency: one contender at all rates
	viewEfficiency = "efficiency"
	viewResources  = "resources"
	viewChoice     = "choice"
	viewPublished  = "published"
	viewTraces     = "seconds"
	viewFindings   = "findings"
	viewMethod     = "method"
	viewResults    = "results"
)

// Page says where a page is shown. The zero value is a page in a file.
type Page struct {
	// Live is the ETag with which the page is served. The page polls its own address
	// for a new ETag. "" is a page that is not served.
	Live  string
	Place string // "run 2 of 3" if several runs are served
	Links []Link // to other pages
	// TraceBudget is the most bytes of second-by-second data; 0 is 2 MiB.
	TraceBudget int
}

// sheet is a report as the page draws it.
type sheet struct{ *layout.View }

// page is what the template shows.
type page struct {
	*sheet
	Page
	Title    string
	Runs     []shownRun
	Views    []link
	Sections []section
	Findings []analysis.Finding
	Legend   []string
	Answer   []string
	Advice   []string // the choice in three lines
	Unables  []layout.Unable
	Setup    []setting
	Repeat   string
	Choice   *choice
	Data     pageData
	Traces   traces
	Agreed   layout.Agreed

	AgreementCharts []chart

	Policy string
	Style  template.CSS
	Loader template.JS
	// Packed texts, which the loader unpacks.
	Script, DataJSON, TraceJSON template.HTML
}

type link struct{ ID, Name string }

// Link leads to another page.
type Link struct{ Address, Name string }

// section is one group on the page.
type section struct {
	Place   int
	Title   string
	Matrix  *standings  // nil if no contender has a ratio
	Summary []htmlTable // a single table; empty without a headline
	Another *layout.AnotherRun
	Further []htmlTable
	charts  []chart
}

// Charts returns the charts of a view.
func (s section) Charts(view string) []chart {
	return slices.DeleteFunc(slices.Clone(s.charts), func(c chart) bool { return c.View != view })
}

type htmlTable struct {
	Columns []htmlColumn
	Rows    []htmlRow
	Steps   []result.Step
}

type htmlColumn struct {
	layout.Column
	Place int // of its step
}

type htmlRow struct {
	layout.Contender
	Place int // in the palette
	Cells []htmlCell
}

type htmlCell struct {
	*analysis.Result
	Place  int    // of its step
	Absent string // why there is no figure
}

type setting struct{ Key, Value string }

// shownRun is a line about a run that the page shows.
type shownRun struct {
	Name string // of one of several, else ""
	*analysis.Report
	Machine string // its CPU and kernel
	Noted   string // its findings in a few words
}

func writeHTML(w io.Writer, r *analysis.Report, opt Options) error {
	return writePage(w, r, Page{})
}

// WritePage writes the page for the place where it is shown. Errors: those of w.
func WritePage(w io.Writer, r *analysis.Report, at Page) error {
	if err := writePage(w, finite(r), at); err != nil {
		return fmt.Errorf("report as %s: %w", HTML, err)
	}
	return nil
}

func writePage(w io.Writer, r *analysis.Report, at Page) error { return newPage(r, at).write(w) }

// newPage returns the page of a run, whose data are not yet packed.
func newPage(r *analysis.Report, at Page) *page {
	v := &sheet{layout.New(r)}
	p := &page{
		sheet: v, Page: at, Title: v.Title(), Findings: layout.BySeverity(r.Findings), Legend: v.Legend(), Answer: v.Answer(), Advice: v.AdviceLines(), Unables: v.Unables(),
		Repeat: repeat(r), Choice: v.choice(), Data: v.pageData(),
		Style:  template.CSS(pageStyle), //nolint:gosec // our own file
		Loader: template.JS(pageLoader), //nolint:gosec // our own file
		Policy: packed.Policy(at.Live != "", pageLoader, pageScript),
	}
	for _, key := range slices.Sorted(maps.Keys(r.Run.Environment)) {
		p.Setup = append(p.Setup, setting{key, r.Run.Environment[key]})
	}
	for i := range v.Groups {
		s := newSection(v, &v.Groups[i], i)
		p.Sections = append(p.Sections, s)
		p.Data.Charts = append(p.Data.Charts, s.charts...)
	}
	if p.Choice != nil {
		p.Data.Decision = p.Choice.Decision
		for _, l := range p.Choice.Lists {
			p.Data.Charts = append(p.Data.Charts, l.Charts...)
		}
	}
	p.Agreed, p.AgreementCharts = layout.Agreements(r), v.agreementCharts()
	p.Data.Charts = append(p.Data.Charts, p.AgreementCharts...)
	p.Traces = v.traces(cmp.Or(at.TraceBudget, traceBudget))
	p.Runs = []shownRun{{Report: r, Machine: machine(r.Run.Environment), Noted: p.Count()}}
	p.Views = p.links()
	return p
}

func (p *page) write(w io.Writer) error {
	var err error
	if p.Script, err = packedScript(); err != nil {
		return err
	}
	if p.DataJSON, err = packed.JSON(p.Data); err != nil {
		return err
	}
	if p.TraceJSON, err = packed.JSON(p.Traces); err != nil {
		return err
	}
	return pageTemplate.Execute(text.SafeWriter(w), p)
}

// links returns links to the views that have something to show.
func (p *page) links() []link {
	charts := func(view string) bool {
		return slices.ContainsFunc(p.Sections, func(s section) bool { return len(s.Charts(view)) > 0 })
	}
	var out []link
	for _, l := range []struct {
		link
		has bool
	}{
		{link{viewOverview, "Overview"}, true},
		{link{viewStudy, "Study"}, p.Study != nil},
		{link{viewThroughput, "Throughput"}, charts(viewThroughput)},
		{link{viewLatency, "Latency"}, charts(viewLatency)},
		{link{viewEfficiency, "Efficiency"}, charts(viewEfficiency)},
		{link{viewResources, "Resources"}, charts(viewResources)},
		{link{viewChoice, "Choice"}, p.Choice != nil},
		{link{viewPublished, "Published"}, p.Published != nil},
		{link{viewTraces, "Second by second"}, len(p.Traces.List) > 0},
		{link{viewFindings, "Findings"}, len(p.Findings) > 0 || len(p.Unables) > 0},
		{link{viewResults, "Every result"}, len(p.Data.Results) > 0},
		{link{viewMethod, "Method"}, true},
	} {
		if l.has {
			out = append(out, l.link)
		}
	}
	return out
}

// Has says whether the page has the view.
func (p page) Has(view string) bool {
	return slices.ContainsFunc(p.Views, func(l link) bool { return l.ID == view })
}

func newSection(v *sheet, g *layout.Group, place int) section {
	title := g.Title()
	if len(v.Groups) == 1 {
		title = "" // nothing to tell apart
	}
	s := section{Place: place, Title: title, Matrix: v.standings(g), Another: v.AnotherRun(g), charts: v.charts(g, fmt.Sprintf("chart-%d", place+1))}
	for i := range s.charts {
		s.charts[i].Places.Group = place
	}
	head := layout.Headline(g, v.Steps)
	if len(head) > 0 {
		s.Summary = append(s.Summary, newTable(v, g, head))
	}
	for _, columns := range layout.Pack(layout.Further(g, v.StepsOutside(v.Scales()), head), layout.ColumnsPerStep, func(layout.Column) int { return 1 }) {
		s.Further = append(s.Further, newTable(v, g, columns))
	}
	return s
}

func newTable(v *sheet, g *layout.Group, columns []layout.Column) htmlTable {
	t := htmlTable{Steps: layout.StepsOf(v.Steps, columns)}
	for _, c := range columns {
		t.Columns = append(t.Columns, htmlColumn{c, v.stepPlace(c.Step)})
	}
	colors := v.colors()
	for _, c := range g.Contenders {
		row := htmlRow{Contender: c, Place: colors[c.ID]}
		for _, col := range t.Columns {
			row.Cells = append(row.Cells, htmlCell{g.Figure(c.ID, col.Column), col.Place, g.Absent(c, col.Column)})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
