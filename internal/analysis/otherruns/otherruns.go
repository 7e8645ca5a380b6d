// Package otherruns says what another run would give: at another hour, or on another machine.
// The interval of one run knows neither. Where a user has several runs, they tell; else the
// project's own runs do, which runs.json holds with their sources. Next: Predict.
package otherruns

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// Confidence is the level of the intervals. Ratios of a run move together, so that one odd run
// takes many of them: nine of ten of every run's ratios want more than 0.90.
const Confidence = 0.95

// Widest is how far the interval of a run's own ratio may reach for the ratio to count as
// known in that run, as a share.
const Widest = 0.30

// least is the fewest runs that predict another.
const least = 3

// Table are the project's own runs.
type Table struct {
	About    string            `json:"about"`
	Arena    string            `json:"arena"`
	Baseline string            `json:"baseline"`
	Settings map[string]string `json:"settings"` // of the plan, where a run has to agree
	Steps    []result.Step     `json:"steps"`    // with the parameters in which a run has to agree
	Runs     []Run             `json:"runs"`
}

// Run are a run's ratios to the baseline.
type Run struct {
	Started string `json:"started"` // UTC
	Machine string `json:"machine"`
	Beside  string `json:"beside"` // what else the machine did
	Source  string `json:"source"`
	Rounds  int    `json:"rounds,omitempty"`
	Lacks   string `json:"lacks,omitempty"` // which ratios of the source are left out, and why
	Ratios  Ratios `json:"ratios"`
}

// Ratios are a run's ratios by figure ("dts goodput") and contender.
type Ratios map[string]map[string]Ratio

// Ratio is a ratio to the baseline with its interval in the run, [ratio, low, high].
type Ratio [3]float64

// known says whether the run's own interval is narrow enough for the ratio to count.
func (r Ratio) known() bool { return r[0] > 0 && r[1] > 0 && stat.HalfWidth(r[1], r[2]) <= Widest }

//go:embed runs.json
var runsJSON []byte

// Project returns the project's own runs.
func Project() (*Table, error) {
	var t Table
	if err := json.Unmarshal(runsJSON, &t); err != nil {
		return nil, fmt.Errorf("runs.json: %w", err)
	}
	return &t, nil
}

// RatiosOf returns the ratios of a report that have an interval, of the figures that the first
// tables show and of single requests' CPU time.
func RatiosOf(r *analysis.Report) Ratios {
	all := Ratios{}
	for i := range r.Results {
		x := &r.Results[i]
		row, _ := result.LookupMetric(x.Metric)
		if !x.Ranked || x.VsBaseline == nil || x.VsBaseline.CI == nil || x.VsBaseline.Step != "" || !slices.Contains(aspects, row.Aspect) {
			continue
		}
		key := at(x.Step, x.Metric)
		if all[key] == nil {
			all[key] = map[string]Ratio{}
		}
		all[key][x.Contender] = Ratio{x.VsBaseline.Ratio, x.VsBaseline.CI[0], x.VsBaseline.CI[1]}
	}
	return all
}

// aspects are those of the figures whose ratios are predicted. Tails are not: one run knows
// them to a factor of two at best.
var aspects = []result.Aspect{result.Traffic, result.Typical, result.Cost}

// at is the key of a figure in Ratios.
func at(step, metric string) string { return step + " " + metric }

// Predict sets the AnotherRun of the results of r whose ratios are known: from r and the
// user's other runs of the same kind if these are two or more, else from r and the runs of
// the table that measured the same.
func Predict(r *analysis.Report, others []*analysis.Report, t *Table) {
	own := RatiosOf(r)
	var runs []Ratios
	source := analysis.OwnRuns
	for _, o := range others {
		runs = append(runs, RatiosOf(o))
	}
	if len(others)+1 < least {
		source = analysis.ProjectRuns
		for _, run := range t.without(r.Run.Started) {
			runs = append(runs, run.Ratios)
		}
	}
	for i := range r.Results {
		r.Results[i].AnotherRun = nil
	}
	run := &result.Run{Arena: r.Run.Arena, Baseline: r.Baseline, Plan: r.Plan, Environment: r.Run.Environment}
	for key, ratios := range own {
		step, metric, _ := strings.Cut(key, " ")
		if source == analysis.ProjectRuns && !t.covers(run, step) {
			continue
		}
		intervals, n := predict(key, ratios, runs)
		for i := range r.Results {
			x := &r.Results[i]
			if in, ok := intervals[x.Contender]; ok && x.Step == step && x.Metric == metric {
				x.AnotherRun = &analysis.AnotherRun{CI: in, Confidence: Confidence, Runs: n, Source: source}
				for k := range runs[:len(others)] {
					if ratio, measured := runs[k][key][x.Contender]; measured {
						x.AnotherRun.Ratios = append(x.AnotherRun.Ratios, ratio[0])
					}
				}
				if len(others) > 0 {
					x.AnotherRun.Ratios = slices.Insert(x.AnotherRun.Ratios, 0, x.VsBaseline.Ratio)
				}
			}
		}
	}
}

// predict returns the interval of each contender of own whose ratio is known, and the number
// of runs behind them, the own one among them.
func predict(key string, own map[string]Ratio, runs []Ratios) (map[string]analysis.Interval, int) {
	var names []string
	var rows [][]float64
	for _, name := range analysis.SortedKeys(own) {
		if own[name].known() {
			names, rows = append(names, name), append(rows, []float64{own[name][0]})
		}
	}
	counted := 1
	known := len(names)
	for _, run := range runs {
		used := false
		for _, name := range analysis.SortedKeys(run[key]) {
			if !run[key][name].known() {
				continue
			}
			i := slices.Index(names, name)
			if i < 0 { // another contender tells how much runs differ, too
				i = len(names)
				names, rows = append(names, name), append(rows, nil)
			}
			rows[i], used = append(rows[i], run[key][name][0]), true
		}
		if used {
			counted++
		}
	}
	list := map[string]analysis.Interval{}
	for i, s := range stat.PredictRatios(rows, Confidence)[:known] {
		if s.Bounded() {
			list[names[i]] = analysis.Interval{s.Low, s.High}
		}
	}
	return list, counted
}

// Unlike says in what two runs differ so that one does not tell what the other would give; ""
// if they are of one kind.
func Unlike(a, b *analysis.Report) string {
	if a.Run.ID == b.Run.ID && a.Run.Started.Equal(b.Run.Started) {
		return "only the names" // the same run twice
	}
	for _, x := range []struct{ what, a, b string }{
		{"the arenas", a.Run.Arena, b.Run.Arena}, {"the suites", a.Run.Suite, b.Run.Suite}, {"the baselines", a.Baseline, b.Baseline},
		{"the emulation of the CPU", a.Run.Environment[result.EmulatedKey], b.Run.Environment[result.EmulatedKey]},
		{"the steps", stepsOf(a), stepsOf(b)}, {"--offload", a.Plan.Settings["offload"], b.Plan.Settings["offload"]},
	} {
		if x.a != x.b {
			return x.what
		}
	}
	return ""
}

// stepsOf names the steps of a run.
func stepsOf(r *analysis.Report) string {
	var ids []string
	for _, s := range r.Plan.Steps {
		ids = append(ids, s.ID)
	}
	return strings.Join(ids, ",")
}

// Choice says, of the recommendation of a run, whether other runs would choose alike: those of
// the user, or those of the table.
func Choice(r *analysis.Recommendation, run *result.Run, others []*analysis.Recommendation, t *Table) string {
	if r == nil || len(r.Ranked) < 2 {
		return ""
	}
	first := r.Ranked[0].Contender
	if len(others) > 0 {
		firsts := map[string]int{first: 1}
		for _, o := range others {
			if o != nil && len(o.Ranked) > 0 {
				firsts[o.Ranked[0].Contender]++
			}
		}
		var parts []string
		for _, name := range analysis.SortedKeys(firsts) {
			parts = append(parts, fmt.Sprintf("%s in %d", name, firsts[name]))
		}
		return fmt.Sprintf("Elsewhere: first in these %d runs: %s.", len(others)+1, strings.Join(parts, ", "))
	}
	if order := t.Order(run, first, r.Ranked[1].Contender); order != "" {
		return fmt.Sprintf("Elsewhere: in the project's runs on other machines and at other hours %s had %s.", first, order)
	}
	return ""
}

// without returns the runs of the table but for the one that began then: no run tells of itself.
func (t *Table) without(started time.Time) []Run {
	return slices.DeleteFunc(slices.Clone(t.Runs), func(r Run) bool { return r.Started == started.UTC().Format(minute) })
}

// minute is the form of Run.Started.
const minute = "2006-01-02T15:04Z"

// covers says whether the run measured a step as the runs of the table did.
func (t *Table) covers(r *result.Run, id string) bool {
	if r.Arena != t.Arena || r.Baseline != t.Baseline || r.Environment.Emulated() {
		return false
	}
	for key, value := range t.Settings {
		if r.Plan.Settings[key] != value {
			return false
		}
	}
	isStep := func(s result.Step) bool { return s.ID == id }
	i, k := slices.IndexFunc(t.Steps, isStep), slices.IndexFunc(r.Plan.Steps, isStep)
	if i < 0 || k < 0 || r.Plan.Steps[k].Workload != t.Steps[i].Workload {
		return false
	}
	for name, value := range t.Steps[i].Params {
		if fmt.Sprint(r.Plan.Steps[k].Params[name]) != fmt.Sprint(value) {
			return false
		}
	}
	return true
}

// Order says of each figure of the table in how many of its runs the first of two contenders
// was the better one: "more goodput than b in 7 of 7 runs, a shorter median network time in 1
// of 4". It is "" if no run has both, or if r measured something else.
func (t *Table) Order(r *result.Run, first, second string) string {
	var parts []string
	than := " than " + second
	for _, figure := range []struct {
		step, metric, words string
	}{{"dts", result.Goodput, "more goodput"}, {"http-350-30pct", result.NetworkTimeP50, "a shorter median network time"}} {
		if !t.covers(r, figure.step) {
			continue
		}
		row, _ := result.LookupMetric(figure.metric)
		better, all := 0, 0
		for _, run := range t.without(r.Started) {
			ratios := run.Ratios[at(figure.step, figure.metric)]
			a, b := ratios[first], ratios[second]
			if !a.known() || !b.known() {
				continue
			}
			if all++; a[0] != b[0] && a[0] > b[0] == (row.Better == result.Higher) {
				better++
			}
		}
		if all > 0 {
			parts = append(parts, fmt.Sprintf("%s%s in %d of %s", figure.words, than, better, unit.Plural(all, "run")))
			than = ""
		}
	}
	return strings.Join(parts, ", ")
}
