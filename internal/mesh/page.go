package mesh

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/stat"
)

// maxPageNodes is how many nodes a heat map shows: the blamed ones first.
const maxPageNodes = 100

// heatMap is one figure on one network, nodes by nodes.
type heatMap struct {
	Title string
	Names []string
	Rows  []heatRow
}

type heatRow struct {
	Name  string
	Cells []heatCell
}

// heatCell is one direction. Class is the cell's colour: good, usual, or one of three steps away
// from the median to the worse side; none where nothing was measured.
type heatCell struct {
	Class, Text, Title string
}

// WritePage writes the report as one HTML page without scripts: the answer, the places with
// their next command, and a heat map for each figure, the pods' network beside the nodes' own.
// Names of nodes are text wherever they come from.
func (r *Report) WritePage(w io.Writer) error {
	order := r.pageOrder()
	var maps []heatMap
	for _, m := range []Metric{Goodput, RTT, Loss, MTU} {
		for _, path := range []string{Pod, Host} {
			if h, ok := r.heat(m, path, order); ok {
				maps = append(maps, h)
			}
		}
	}
	return pageTemplate.Execute(w, struct {
		*Report
		Good   string
		Maps   []heatMap
		Hidden int
	}{r, r.Good(), maps, len(r.Nodes) - len(order)})
}

// pageOrder returns the names of the nodes that the page shows: the blamed ones, then the others
// by zone.
func (r *Report) pageOrder() []string {
	blamed := func(n Node) bool {
		return slices.ContainsFunc(r.Slow, func(p Place) bool { return p.Kind != Border && (p.From == n.Name || p.To == n.Name) })
	}
	list := slices.Clone(r.Nodes)
	slices.SortStableFunc(list, func(a, b Node) int {
		if x, y := blamed(a), blamed(b); x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Zone, b.Zone)
	})
	var out []string
	for _, n := range list[:min(len(list), maxPageNodes)] {
		out = append(out, n.Name)
	}
	return out
}

var titles = map[Metric]string{Goodput: "Goodput", RTT: "Round trips (median)", Loss: "Loss", MTU: "Largest packet"}

// heat returns the heat map of a figure; false if it was not measured.
func (r *Report) heat(m Metric, path string, order []string) (heatMap, bool) {
	network := "pod network"
	if path == Host {
		network = "nodes’ own network"
	}
	index := map[string]int{}
	h := heatMap{Title: titles[m] + ", " + network, Names: order}
	for i, name := range order {
		index[name] = i
		h.Rows = append(h.Rows, heatRow{Name: name, Cells: make([]heatCell, len(order))})
	}
	var all []float64
	for _, p := range r.Pairs {
		if v := p.value(m); p.Path == path && v != nil {
			all = append(all, *v)
		}
	}
	if len(all) == 0 {
		return h, false
	}
	middle := stat.Median(all)
	for _, p := range r.Pairs {
		v := p.value(m)
		i, ok := index[p.From]
		j, there := index[p.To]
		if p.Path != path || v == nil || !ok || !there {
			continue
		}
		h.Rows[i].Cells[j] = heatCell{shade(m, *v, middle), short(m, *v), fmt.Sprintf("%s to %s: %s", p.From, p.To, Format(m, *v))}
	}
	return h, true
}

// shade returns the class of a value beside the median.
func shade(m Metric, v, middle float64) string {
	worse := 0.0
	switch {
	case m == Loss:
		worse = (v - middle) / 0.01
	case m == MTU:
		worse = (middle - v) / 50
	case v <= 0:
		worse = 3
	default:
		worse = (badness(m, v) - badness(m, middle)) / limit(m)
	}
	switch {
	case worse < -1:
		return "good"
	case worse < 1 && m != Loss && m != MTU, worse <= 0.05:
		return "usual"
	}
	return fmt.Sprintf("bad%d", int(math.Min(3, math.Max(1, worse))))
}

// short returns the figure for a narrow cell.
func short(m Metric, v float64) string {
	switch m {
	case Goodput:
		return fmt.Sprintf("%.2g", v/1e9)
	case RTT:
		return fmt.Sprintf("%.0f", v*1e6)
	case Loss:
		return fmt.Sprintf("%.2g", v*100)
	}
	return fmt.Sprintf("%.0f", v)
}

var pageTemplate = template.Must(template.New("mesh").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{.Verdict}}</title>
<style>
:root{color-scheme:light dark;--ink:#1b1f24;--back:#fff;--line:#d0d7de;--usual:#eef1f4;--good:#cfe8d5;--bad1:#fde3b3;--bad2:#f7b267;--bad3:#e5734f}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--back:#0d1117;--line:#30363d;--usual:#1c2128;--good:#1f4d2e;--bad1:#5c4510;--bad2:#7d4a12;--bad3:#97371b}}
body{font:16px/1.5 system-ui,sans-serif;margin:1rem auto;max-width:76rem;padding:0 1rem;color:var(--ink);background:var(--back)}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}code{overflow-wrap:anywhere}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.8rem}
td,th{border:1px solid var(--line);padding:.2rem .35rem;text-align:right;white-space:nowrap}th{font-weight:600;text-align:left}
thead th{writing-mode:vertical-rl;transform:rotate(180deg);text-align:left}
.usual{background:var(--usual)}.good{background:var(--good)}.bad1{background:var(--bad1)}.bad2{background:var(--bad2)}.bad3{background:var(--bad3);font-weight:700}
td:focus{outline:2px solid}
</style></head><body>
<h1>{{.Verdict}}</h1>
<p>{{len .Nodes}} nodes. {{.Suspects}} places looked slow at first; the second pass judged {{.Judged}}. At most one sound cluster in 20 has a wrong name here.</p>
{{if .Slow}}<ul>{{$good := .Good}}{{range .Slow}}<li>{{.Text}}{{with .Next $good}}<br>Next: <code>{{.}}</code>{{end}}</li>{{end}}</ul>{{end}}
{{if .Shared}}<p>What slow nodes have in common:</p><ul>{{range .Shared}}<li>{{.Label}}={{.Value}}: {{index .Slow 0}} of {{index .Slow 1}} slow nodes, {{index .Sound 0}} of {{index .Sound 1}} others</li>{{end}}</ul>{{end}}
{{if .Late}}<p>These probers were late themselves, so their round trips and losses are not judged: {{range .Late}}{{.}} {{end}}</p>{{end}}
<p>Rows send, columns receive. Goodput is in Gbit/s, round trips in µs, loss in per cent, packets in bytes. Colours say how far a figure is from the median to the worse side.</p>
{{if .Hidden}}<p>The maps show {{len (index .Maps 0).Names}} nodes; {{.Hidden}} that nobody blames are left out. The JSON has all.</p>{{end}}
{{range .Maps}}<section><h2>{{.Title}}</h2><div class="scroll" tabindex="0" role="region" aria-label="{{.Title}}"><table>
<thead><tr><td></td>{{range .Names}}<th scope="col">{{.}}</th>{{end}}</tr></thead>
<tbody>{{range .Rows}}<tr><th scope="row">{{.Name}}</th>{{range .Cells}}<td{{with .Class}} class="{{.}}"{{end}}{{with .Title}} tabindex="0" title="{{.}}"{{end}}>{{.Text}}</td>{{end}}</tr>{{end}}</tbody>
</table></div></section>
{{end}}</body></html>
`))
