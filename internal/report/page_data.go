package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/unit"
)

// pageData is what the page's script draws, filters and exports;
// ui/src/model.ts has the same shape. Other fields refer to contenders, steps and groups by
// their places in the lists here. A contender's place is also its colour; the baseline's
// place is 0.
type pageData struct {
	Run        string      `json:"run"`
	Contenders []string    `json:"contenders"`
	Hues       []int       `json:"hues"`    // of the contenders' families; 0 is the baseline's
	Ciphers    []int       `json:"ciphers"` // 0 plain, 1 WireGuard, 2 others
	Steps      []string    `json:"steps"`
	Groups     []string    `json:"groups"`
	Charts     []chart     `json:"charts"`
	Metrics    []string    `json:"metrics"`
	Results    []resultRow `json:"results"`
	Decision   *decision   `json:"decision,omitempty"`
	// Of two runs over each other: whether a contender is of the second, and the place of the
	// same contender of the first, or else its own.
	Second []bool `json:"second,omitempty"`
	Same   []int  `json:"same,omitempty"`
}

// resultRow is one result in words, written as an array.
type resultRow struct {
	Group, Step, Contender, Metric int // places
	Rounds                         int
	Requests                       string
	Value, Interval, Versus, P     string
	Letters, Standing              string
}

func (r resultRow) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{
		r.Group, r.Step, r.Contender, r.Metric, r.Rounds,
		r.Requests, r.Value, r.Interval, r.Versus, r.P, r.Letters, r.Standing,
	})
}

func (v *sheet) pageData() pageData {
	colors := v.colors()
	d := pageData{
		Run: text.SafeLine(v.Run.ID), Contenders: make([]string, len(colors)), Steps: []string{}, Groups: []string{}, Charts: []chart{}, Metrics: []string{}, Results: []resultRow{},
	}
	d.Hues, d.Ciphers = v.hues(colors)
	for id, place := range colors {
		d.Contenders[place] = text.SafeLine(id)
	}
	for i := range v.Groups {
		g := &v.Groups[i]
		d.Groups = append(d.Groups, text.SafeLine(g.Title()))
	}
	steps, metrics := map[string]int{}, map[string]int{}
	for i, s := range v.Steps {
		steps[s.ID] = i
		d.Steps = append(d.Steps, text.SafeLine(s.ID))
	}
	for i := range v.Results {
		r := &v.Results[i]
		if _, known := metrics[r.Metric]; !known {
			metrics[r.Metric] = len(d.Metrics)
			d.Metrics = append(d.Metrics, text.SafeLine(layout.MetricLabel(r.Metric)))
		}
		row := resultRow{
			Group: v.GroupPlace(layout.Site{Kernel: r.Kernel, Underlay: r.Underlay}), Step: steps[r.Step], Contender: colors[r.Contender], Metric: metrics[r.Metric],
			Rounds: r.N, Value: layout.Value(r), Interval: layout.Interval(r), Versus: layout.Comparison(r.VsBaseline), Letters: layout.Letters(r), Standing: layout.SideOfBaseline(r),
		}
		if r.Count > 0 {
			row.Requests = unit.Format(float64(r.Count), "count")
		}
		if r.VsBaseline != nil && r.VsBaseline.P != nil {
			row.P = fmt.Sprintf("%.3g", *r.VsBaseline.P)
		}
		d.Results = append(d.Results, row)
	}
	return d
}

// colors gives every contender its place in the palette, the same in all
// charts.
func (v *sheet) colors() map[string]int {
	colors := map[string]int{v.Baseline: 0}
	for i := range v.Groups {
		for _, c := range v.Groups[i].Contenders {
			if _, has := colors[c.ID]; !has {
				colors[c.ID] = len(colors)
			}
		}
	}
	return colors
}

func (v *sheet) stepPlace(id string) int {
	return slices.IndexFunc(v.Steps, func(s result.Step) bool { return s.ID == id })
}

// places are the group, steps and contender that a chart shows, by which filters hide it.
type places struct {
	Group     int
	Steps     []int
	Contender int // from 1; 0: several contenders
	steps     []string
}

func ofSteps(steps ...string) places { return places{steps: steps} }

// stepPlaces returns the places of the chart's steps.
func (v *sheet) stepPlaces(p places) []int {
	var out []int
	for _, id := range p.steps {
		if place := v.stepPlace(id); place >= 0 && !slices.Contains(out, place) {
			out = append(out, place)
		}
	}
	return out
}

// StepList returns the places of the steps for an attribute.
func (p places) StepList() string { return strings.Trim(fmt.Sprint(p.Steps), "[]") }

// ContenderList returns the place of the contender for an attribute; "" for several.
func (p places) ContenderList() string {
	if p.Contender == 0 {
		return ""
	}
	return strconv.Itoa(p.Contender - 1)
}

// ContenderPlace returns a contender's place for an attribute; "" for all contenders.
func (p page) ContenderPlace(id string) string { return attribute(p.Data.Contenders, id) }

// StepPlace returns a step's place for an attribute; "" for all steps.
func (p page) StepPlace(id string) string { return attribute(p.Data.Steps, id) }

func attribute(names []string, id string) string {
	if i := slices.Index(names, text.SafeLine(id)); id != "" && i >= 0 {
		return strconv.Itoa(i)
	}
	return ""
}

// machine says in a few words where a run was made: its CPU and kernel.
func machine(env result.Environment) string {
	var parts []string
	for _, key := range []string{"cpu.model", "kernel.release"} {
		switch value := env[key]; {
		case value == "":
		case key == "kernel.release" && len(strings.Fields(value)) > 1:
			parts = append(parts, "several kernels") // Method lists them
		case key == "kernel.release":
			parts = append(parts, "kernel "+value)
		default:
			parts = append(parts, value)
		}
	}
	return strings.Join(parts, " · ")
}

// PublishedWords says how to read the published figures.
func (p page) PublishedWords() string {
	if len(p.Published) == 0 {
		return layout.PublishedNone
	}
	return layout.PublishedAbout
}

// Count says how many findings there are of each severity: "1 error, 2
// warnings, 3 notes".
func (p page) Count() string {
	var parts []string
	for _, s := range []struct{ severity, word string }{{"error", "error"}, {"warn", "warning"}, {"info", "note"}} {
		if n := analysis.Count(p.Findings, func(f analysis.Finding) bool { return f.Severity == s.severity }); n > 0 {
			parts = append(parts, unit.Plural(n, s.word))
		}
	}
	return strings.Join(parts, ", ")
}
