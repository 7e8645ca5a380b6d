package report

import (
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
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
	"value": value, "interval": interval, "comparison": comparison, "standing": standing, "tier": tier,
	"place": place, "describe": describe, "label": metricLabel, "plural": plural, "join": strings.Join,
	"count": func(n int64) string { return unit.Format(float64(n), "count") },
	"p": func(c *analysis.Comparison) string {
		if c == nil || c.P == nil {
			return ""
		}
		return fmt.Sprintf("%.3g", *c.P)
	},
}).Parse(pageSource))

// page is what the template shows.
type page struct {
	*view
	Sections []section
	Findings []analysis.Finding
	Legend   []string
	Unables  []unable
	Setup    []setting
	Repeat   string

	Policy string
	Style  template.CSS
	Script template.JS
	Data   template.JS
}

// section is one group on the page.
type section struct {
	Title   string
	Summary []htmlTable // one, or none without a headline
	Charts  []chart
	Further []htmlTable
	Steps   []stepResults
}

type htmlTable struct {
	Columns []column
	Rows    []htmlRow
	Steps   []result.Step
}

type htmlRow struct {
	contender
	Cells  []*analysis.Result
	Absent []string // why there is none, by cell
}

// stepResults are all results of a step, for the long tables.
type stepResults struct {
	Step    result.Step
	Results []*analysis.Result
}

type setting struct{ Key, Value string }

func writeHTML(w io.Writer, r *analysis.Report, _ Options) error {
	v := newView(r)
	p := page{
		view: v, Findings: bySeverity(r.Findings), Legend: v.legend(), Unables: v.unables(),
		Repeat: repeat(r),
		Style:  template.CSS(pageStyle), //nolint:gosec // our own file
		Script: template.JS(pageScript), //nolint:gosec // our own file
	}
	for _, key := range slices.Sorted(maps.Keys(r.Run.Environment)) {
		p.Setup = append(p.Setup, setting{key, r.Run.Environment[key]})
	}
	data := struct {
		Charts []chart `json:"charts"`
	}{[]chart{}}
	for i := range v.Groups {
		s := newSection(v, &v.Groups[i], fmt.Sprintf("chart-%d", i+1))
		p.Sections = append(p.Sections, s)
		data.Charts = append(data.Charts, s.Charts...)
	}
	// json.Marshal writes <, > and & as \u003c, \u003e and \u0026, so that
	// nothing in the data can end the script element.
	encoded, err := json.Marshal(data)
	if err != nil {
		return err
	}
	p.Data = template.JS(encoded) //nolint:gosec // escaped, see above
	// No address can be loaded from, whatever the data says; the one script
	// that runs is known by its hash. Charts set inline styles.
	hash := sha256.Sum256([]byte(pageScript))
	p.Policy = "default-src 'none'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) +
		"'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
	return pageTemplate.Execute(w, p)
}

func newSection(v *view, g *group, prefix string) section {
	s := section{Title: g.title(), Charts: v.charts(g, prefix)}
	head := headline(g, v.Steps)
	if len(head) > 0 {
		s.Summary = append(s.Summary, newTable(v, g, head))
	}
	for _, columns := range pack(further(g, v.Steps, head), columnsPerStep, func(column) int { return 1 }) {
		s.Further = append(s.Further, newTable(v, g, columns))
	}
	for _, step := range v.Steps {
		all := stepResults{Step: step}
		for i := range v.Results {
			if r := &v.Results[i]; r.Step == step.ID && r.Kernel == g.Kernel && r.Underlay == g.Underlay {
				all.Results = append(all.Results, r)
			}
		}
		if len(all.Results) > 0 {
			s.Steps = append(s.Steps, all)
		}
	}
	return s
}

func newTable(v *view, g *group, columns []column) htmlTable {
	t := htmlTable{Columns: columns, Steps: stepsOf(v.Steps, columns)}
	for _, c := range g.Contenders {
		row := htmlRow{contender: c}
		for _, col := range columns {
			row.Cells = append(row.Cells, g.figure(c.ID, col))
			row.Absent = append(row.Absent, absent(c, col))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// repeatable are the plan's settings that are flags of the same name.
var repeatable = []string{"nodes", "underlay", "mtu", "line-rate", "congestion-control", "cpus", "cni-conf", "cni-transport"}

// repeat is the command that makes the same run again, from the plan; "" if
// the report carries none.
func repeat(r *analysis.Report) string {
	if len(r.Plan.Contenders) == 0 {
		return ""
	}
	var ids []string
	for _, e := range r.Plan.Contenders {
		if !slices.Contains(ids, e.ID) {
			ids = append(ids, e.ID)
		}
	}
	words := []string{"cnibench", "run", "--arena", r.Run.Arena, "--suite", r.Plan.Suite, "--contenders", strings.Join(ids, ","),
		"--rounds", fmt.Sprint(r.Plan.Rounds)}
	if r.Plan.Duration > 0 {
		words = append(words, "--duration", exact(float64(r.Plan.Duration))+"s")
	}
	if r.Plan.Warmup > 0 {
		words = append(words, "--warmup", exact(float64(r.Plan.Warmup))+"s")
	}
	words = append(words, "--seed", fmt.Sprint(r.Plan.Seed))
	if r.Baseline != "" && r.Baseline != "host" { // the flag's default
		words = append(words, "--baseline", r.Baseline)
	}
	for _, flag := range repeatable {
		if value := r.Plan.Settings[flag]; value != "" {
			words = append(words, "--"+flag, value)
		}
	}
	for i, w := range words {
		words[i] = shellWord(w)
	}
	return strings.Join(words, " ")
}

// shellWord is s as one word of a shell's command line.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.,:/=+%", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
