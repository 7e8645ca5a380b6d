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

// Confidence is the level of the intervals: nine of ten ratios of another run.
const Confidence = 0.90

// Widest is how far the interval of a run's own ratio may reach for the ratio to count as
// known in that run, as a share.
const Widest = 0.30

// minimum is the fewest machines, or hours of one machine, that predict another.
const minimum = 3

// Table are the project's own runs.
type Table struct {
	About    string            `json:"about"`
	Arena    string            `json:"arena"`
	Baseline string            `json:"baseline"`
	Settings map[string]string `json:"settings"` // of the plan, where a run has to agree
	Steps    []result.Step     `json:"steps"`    // with the parameters in which a run has to agree
	// Transports are the ways in which the packets of contenders travel between nodes.
	Transports map[string]string `json:"transports"`
	Products   Products          `json:"products"`
	Runs       []Run             `json:"runs"`
}

// Products are ratios of products, not of their lab forms, to their nodes' network.
type Products struct {
	Source string                        `json:"source"`
	Ratios map[string]map[string]float64 `json:"ratios"` // by figure and contender
}

// Run are a run's ratios to the baseline.
type Run struct {
	Started string `json:"started"` // UTC
	Machine string `json:"machine"` // runs with the same text count as one machine
	Beside  string `json:"beside"`  // what else the machine did
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
// user's other runs of the same kind if these tell of another machine or hour, else from all of
// these and the runs of the table that measured the same.
func Predict(r *analysis.Report, others []*analysis.Report, t *Table) {
	own := []Run{runOf(r)}
	for _, o := range others {
		own = append(own, runOf(o))
	}
	runs, source := byHour(own), analysis.OwnRuns
	if n := machines(own); n >= minimum {
		runs = own // of several machines, hours of one are no draws
	} else if n > 1 || machines(runs) < minimum {
		runs, source = slices.Concat(own, t.without(r.Run.Started)), analysis.ProjectRuns
	}
	for i := range r.Results {
		r.Results[i].AnotherRun = nil
	}
	run := &result.Run{Arena: r.Run.Arena, Baseline: r.Baseline, Plan: r.Plan, Environment: r.Run.Environment}
	for key := range own[0].Ratios {
		step, metric, _ := strings.Cut(key, " ")
		if source == analysis.ProjectRuns && !t.covers(run, step) {
			continue
		}
		intervals, behind := predict(key, runs[0], runs[1:])
		behind.Source = source
		if source == analysis.OwnRuns {
			behind.Machines = machines(own) // not the hours of one
		}
		for i := range r.Results {
			x := &r.Results[i]
			in, ok := intervals[x.Contender]
			if !ok || x.Step != step || x.Metric != metric {
				continue
			}
			another := behind
			another.CI = in
			for _, one := range own {
				if ratio, measured := one.Ratios[key][x.Contender]; measured && len(own) > 1 {
					another.Ratios = append(another.Ratios, ratio[0])
				}
			}
			x.AnotherRun = &another
		}
	}
}

// runOf returns a report's run as those of the table are.
func runOf(r *analysis.Report) Run {
	env := r.Run.Environment
	var machine []string
	for _, key := range []string{"cpu.model", "cpu.signature", "cpu.online", "memory.total", "kernel.release"} {
		machine = append(machine, env[key])
	}
	return Run{Started: r.Run.Started.UTC().Format(minute), Machine: strings.Join(machine, ", "), Ratios: RatiosOf(r)}
}

// machines returns of how many machines runs are. Two that have the same hardware and kernel
// count as one, since nothing tells them apart.
func machines(runs []Run) int {
	seen := map[string]bool{}
	for _, run := range runs {
		seen[run.Machine] = true
	}
	return len(seen)
}

// hour is how long after another run of the same machine a run must begin to tell of another
// hour.
const hour = 15 * time.Minute

// byHour returns runs of one machine with the hour in place of the machine, so that runs right
// after one another count once.
func byHour(runs []Run) []Run {
	order := slices.Clone(runs)
	slices.SortStableFunc(order, func(a, b Run) int { return strings.Compare(a.Started, b.Started) })
	begin, of := time.Time{}, map[string]string{}
	for _, run := range order {
		started, _ := time.Parse(minute, run.Started)
		if started.Sub(begin) >= hour {
			begin = started
		}
		of[run.Started] = begin.Format(minute)
	}
	hours := slices.Clone(runs)
	for i := range hours {
		hours[i].Machine = of[hours[i].Started]
	}
	return hours
}

// predict returns the interval of each contender of own whose ratio is known, and what stands
// behind the intervals.
func predict(key string, own Run, runs []Run) (map[string]analysis.Interval, analysis.AnotherRun) {
	var names, levels []string
	var rows [][][]float64 // by name, and by machine
	behind := analysis.AnotherRun{Confidence: Confidence}
	known := 0 // contenders of own
	for i, run := range append([]Run{own}, runs...) {
		used := false
		for _, name := range analysis.SortedKeys(run.Ratios[key]) {
			ratio := run.Ratios[key][name]
			if !ratio.known() {
				continue
			}
			if !slices.Contains(levels, run.Machine) {
				levels = append(levels, run.Machine)
			}
			if !slices.Contains(names, name) { // another contender tells how much runs differ, too
				names, rows = append(names, name), append(rows, nil)
			}
			row, level := slices.Index(names, name), slices.Index(levels, run.Machine)
			for len(rows[row]) <= level {
				rows[row] = append(rows[row], nil)
			}
			rows[row][level], used = append(rows[row][level], ratio[0]), true
		}
		if i == 0 {
			known = len(names)
		}
		if used {
			behind.Runs++
		}
	}
	behind.Machines = len(levels)
	list := map[string]analysis.Interval{}
	for i, s := range stat.PredictRatios(rows, Confidence)[:known] {
		if s.Bounded() {
			list[names[i]] = analysis.Interval{s.Low, s.High}
		}
	}
	return list, behind
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
	return t.hasStep(r.Plan.Steps, id)
}

// hasStep says whether the step of a plan is the one of the table.
func (t *Table) hasStep(plan []result.Step, id string) bool {
	isStep := func(s result.Step) bool { return s.ID == id }
	i, k := slices.IndexFunc(t.Steps, isStep), slices.IndexFunc(plan, isStep)
	if i < 0 || k < 0 || plan[k].Workload != t.Steps[i].Workload {
		return false
	}
	for name, value := range t.Steps[i].Params {
		if fmt.Sprint(plan[k].Params[name]) != fmt.Sprint(value) {
			return false
		}
	}
	return true
}

// SetUsual sets the Usual of the results of a run with one contender, which is compared with
// no other: what the table's lab forms and products with its transport had.
func SetUsual(r *analysis.Report, t *Table) {
	for i := range r.Results {
		r.Results[i].Usual = nil
	}
	if len(r.Contenders) > 2 || r.Run.Environment.Emulated() || r.Run.Arena == "imported" {
		return // the baseline is one of the two
	}
	for i := range r.Results {
		x := &r.Results[i]
		transport := r.Run.Environment["kube.cni.transport"]
		if k := slices.IndexFunc(r.Contenders, func(c result.ContenderInfo) bool { return c.ID == x.Contender }); k >= 0 && transport == "" {
			if parts := strings.Split(r.Contenders[k].Datapath, " × "); len(parts) > 1 {
				transport = parts[1]
			}
		}
		if x.Contender != r.Baseline && x.VsBaseline != nil && t.hasStep(r.Plan.Steps, x.Step) {
			x.Usual = t.Usual(transport, at(x.Step, x.Metric))
		}
	}
}

// Usual returns the least and the greatest known ratio of the table's lab forms and products with
// a transport; nil if there are none.
func (t *Table) Usual(transport, key string) *analysis.Usual {
	u := &analysis.Usual{Transport: transport}
	add := func(name string, ratio float64) {
		if t.Transports[name] != transport {
			return
		}
		if u.Ratios == (analysis.Interval{}) {
			u.Ratios = analysis.Interval{ratio, ratio}
		}
		u.Ratios = analysis.Interval{min(u.Ratios[0], ratio), max(u.Ratios[1], ratio)}
	}
	for _, run := range t.Runs {
		for name, ratio := range run.Ratios[key] {
			if ratio.known() {
				add(name, ratio[0])
			}
		}
	}
	for name, ratio := range t.Products.Ratios[key] {
		add(name, ratio)
	}
	if u.Ratios == (analysis.Interval{}) {
		return nil
	}
	return u
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
			many := fmt.Sprint(better)
			if better == 0 {
				many = "none"
			}
			parts = append(parts, fmt.Sprintf("%s%s in %s of %s", figure.words, than, many, unit.Plural(all, "run")))
			than = ""
		}
	}
	return strings.Join(parts, ", ")
}
