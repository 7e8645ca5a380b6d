// Package compare compares two runs and says what changed, with a gate for CI. It does not
// judge whether the runs may be compared, but lists the differences between their
// conditions. Next: compare.go.
package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/findings"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// Schema names the version of the JSON form of a Comparison.
const Schema = "cnibench/compare/1"

// Options choose what is compared and what fails the gate. The zero
// value compares the headline metrics of all steps and contenders, and has no
// gate.
type Options struct {
	analysis.Options
	Metrics    []string // empty: the main metric of each aspect; "all": all ranked metrics
	Steps      []string // empty: all
	Contenders []string // empty: all
	VsBaseline bool     // compare the ratios to each run's own baseline, paired by round
	// FailOn is the largest change for the worse that passes the gate, as a
	// share: 0.05 is 5 %. nil: no gate.
	FailOn *float64
	// Environment are the environment keys that can explain a difference of figures;
	// fingerprint.Differences knows them.
	Environment []string
	// RepeatsOld and RepeatsNew are repeated runs of either side. If there are any, the values of
	// a side are its runs' figures, not the values of single rounds, so that intervals
	// contain the differences between repeated runs.
	RepeatsOld, RepeatsNew []*result.Record
}

// Comparison is a comparison of two runs; its JSON is what
// `cnibench compare OLD NEW --format json` prints.
type Comparison struct {
	Schema     string `json:"schema"`
	Old        Run    `json:"old"`
	New        Run    `json:"new"`
	VsBaseline bool   `json:"vs_baseline"`
	// Confidence is the confidence of intervals. 1-Confidence is also the chance of any
	// false Sure, and of any false failure of the gate, if runs differ no more than the
	// rounds of one run do.
	Confidence float64  `json:"confidence"`
	FailOn     *float64 `json:"fail_on"` // null: no gate
	// Passed is also false if too few rounds made it impossible to fail; null: no gate.
	Passed *bool `json:"passed"`
	// Unable counts the changes that cannot fail the gate (without a gate: cannot be Sure),
	// because there are too few rounds. Enough is the number of rounds in each run
	// that would be enough.
	Unable      int          `json:"unable"`
	Enough      int          `json:"enough"`
	Faults      []RunFault   `json:"faults"`
	Differences []Difference `json:"differences"`
	Changes     []Change     `json:"changes"` // worst first
	Missing     []Missing    `json:"missing"`
	Notes       []string     `json:"notes"`
}

// Run says which run was compared.
type Run struct {
	ID       string    `json:"id"`
	Started  time.Time `json:"started"`
	Suite    string    `json:"suite"`
	Arena    string    `json:"arena"`
	Emulated bool      `json:"emulated"` // the CPU
	Rounds   int       `json:"rounds"`
	Baseline string    `json:"baseline"`
	Tool     string    `json:"tool"` // version
}

// RunFault is a part of a run that can't be read or was not measured. Figures may be
// missing, or come from fewer rounds than planned.
type RunFault struct {
	From   string `json:"from"` // old, new or both
	Text   string `json:"text"`
	Failed bool   `json:"failed"` // only the new run has the fault, which fails the gate
}

// Change is one metric of one contender at one step in both runs.
type Change struct {
	Contender string             `json:"contender"`
	Kernel    string             `json:"kernel"` // of the new run
	Underlay  string             `json:"underlay"`
	Step      string             `json:"step"`
	Path      string             `json:"path"`
	Metric    string             `json:"metric"`
	Unit      string             `json:"unit"` // "1" if ratios to the baseline are compared
	Better    string             `json:"better"`
	Old       Side               `json:"old"`
	New       Side               `json:"new"`
	Ratio     *float64           `json:"ratio"` // new divided by old, Hodges–Lehmann; null if it can't be formed, such as from zero
	CI        *analysis.Interval `json:"ci"`    // of the ratio; null: too few rounds
	P         *float64           `json:"p"`     // exact Mann–Whitney, two-sided
	PAdjusted *float64           `json:"p_adjusted"`
	Direction Direction          `json:"verdict"`
	// Sure says that Direction is significant after Holm's correction for all comparisons.
	Sure bool `json:"sure"`
	// Expected is where the figure of another old run would lie with the confidence
	// (stat.Predict); nil with fewer than three old runs.
	Expected *analysis.Interval `json:"expected,omitempty"`

	Failed bool `json:"failed"` // the change exceeds FailOn after that correction, which fails the gate

	shift stat.Shift
}

// Side is the figure of one run.
type Side struct {
	Median float64   `json:"median"` // as reports show it
	Values []float64 `json:"values"` // by round
}

// Direction says which way a figure changed.
type Direction string

// The directions. Better and Worse: the whole interval of the ratio lies on that side of 1.
// Same: the interval contains 1, so no change was found; that is no proof that there is
// none. Unknown: too few rounds for an interval.
const (
	Worse   Direction = "worse"
	Unknown Direction = "unknown"
	Same    Direction = "same"
	Better  Direction = "better"
)

// Missing is a figure that one run lacks.
type Missing struct {
	Contender string `json:"contender"`
	Underlay  string `json:"underlay"`
	Step      string `json:"step"`
	Metric    string `json:"metric"` // "": the step has none of the compared metrics
	From      string `json:"from"`   // old or new: the run without the figure
	Text      string `json:"text"`
	Failed    bool   `json:"failed"` // the new run planned the figure and lacks it, which fails the gate
}

// Runs compares two runs. Errors: *SelectionError.
func Runs(old, now *result.Record, opt Options) (*Comparison, error) {
	opt.Options = opt.Complete(&now.Run.Plan)
	p := newPairing(old, now, opt)
	if err := p.check(); err != nil {
		return nil, err
	}
	p.pair()
	if len(p.changes) == 0 {
		return nil, &SelectionError{Have: append([]string{offers(p.old, "old"), offers(p.now, "new")}, p.whyLeftOut...)}
	}
	p.judge()
	c := &Comparison{
		Schema: Schema, Old: describeRun(old), New: describeRun(now),
		VsBaseline: opt.VsBaseline, Confidence: opt.Confidence, FailOn: opt.FailOn,
		Changes: p.changes, Missing: p.missing,
	}
	c.Unable, c.Enough = p.weakness()
	c.Notes = p.notes(c.Unable, c.Enough)
	if p.repeated() {
		c.Notes = append(c.Notes, fmt.Sprintf("%d old and %d new runs: each counts once, with its figure, so that what differs between runs of one kind is part of the intervals; two sides of 4 runs give the first of 95 %%",
			1+len(opt.RepeatsOld), 1+len(opt.RepeatsNew)))
	}
	if expected, inside := c.countExpected(); expected > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d of %s lie where another old run's would be, by the spread of the old runs", inside, unit.Plural(expected, "new figure")))
	}
	c.Differences, c.Faults = []Difference{}, p.faults()
	c.Notes = append(c.Notes, p.disturbanceNotes()...)
	environment := append(slices.Clone(opt.Environment), result.EmulatedKey)
	var vague []string
	for _, e := range slices.Concat(p.runsOf("new"), p.repeatsOld) {
		differ, unknown := differences(p.old.Run, e.Run, p.old.Run.Tools(p.old.Samples), e.Run.Tools(e.Samples), environment)
		for _, d := range differ {
			if !slices.Contains(c.Differences, d) {
				c.Differences = append(c.Differences, d)
			}
		}
		for _, key := range unknown {
			if !slices.Contains(vague, key) {
				vague = append(vague, key)
			}
		}
	}
	if opt.FailOn != nil {
		passed := c.Unable < len(c.Changes) &&
			!slices.ContainsFunc(c.Changes, func(c Change) bool { return c.Failed }) &&
			!slices.ContainsFunc(c.Missing, func(m Missing) bool { return m.Failed }) &&
			!slices.ContainsFunc(c.Faults, func(f RunFault) bool { return f.Failed })
		c.Passed = &passed
	}
	if len(vague) > 0 {
		c.Notes = append(c.Notes, "only one of the runs records what these were, so that they may differ: "+strings.Join(vague, ", "))
	}
	slices.SortStableFunc(c.Changes, worstFirst)
	return c, nil
}

// countExpected counts the changes for which a further old run can be predicted, and those whose
// new figure lies in that interval.
func (c *Comparison) countExpected() (all, inside int) {
	for _, change := range c.Changes {
		if e := change.Expected; e != nil {
			all++
			if e[0] <= change.New.Median && change.New.Median <= e[1] {
				inside++
			}
		}
	}
	return all, inside
}

func describeRun(rec *result.Record) Run {
	r := analysis.WithRoundsTaken(&rec.Run, rec.Samples)
	return Run{
		ID: r.ID, Started: r.Started, Suite: r.Plan.Suite, Arena: r.Arena, Emulated: r.Environment.Emulated(), Rounds: r.Plan.Rounds, Baseline: r.Baseline, Tool: r.Tool.Version,
	}
}

// judge gives every change its ratio, interval, p and verdict.
func (p *pairing) judge() {
	alpha := 1 - p.opt.Confidence
	var tested []*Change
	var differ, exceed []float64
	for i := range p.changes {
		c := &p.changes[i]
		old, now := c.Old.Values, c.New.Values
		c.Direction = Unknown
		if negative(old) || negative(now) {
			continue
		}
		c.shift = stat.RatioShift(old, now, p.opt.Confidence)
		c.Ratio = finite(c.shift.Ratio)
		if len(old) == 0 || len(now) == 0 {
			// A percentile for which only all rounds together have enough requests.
			c.Ratio = finite(c.New.Median / c.Old.Median)
			continue
		}
		if p.repeated() {
			if expected := stat.Predict(old, p.opt.Confidence); expected.Bounded() {
				c.Expected = &analysis.Interval{expected.Low, expected.High}
			}
		}
		if finite(c.shift.Low) != nil && finite(c.shift.High) != nil {
			c.CI = &analysis.Interval{c.shift.Low, c.shift.High}
		}
		c.Direction = directionOf(c.shift, c.Better)
		pv := p.now.RankTests.P(old, now)
		c.P = &pv
		tested, differ = append(tested, c), append(differ, pv)
		if p.opt.FailOn != nil {
			exceed = append(exceed, exceeds(old, now, c.limit(*p.opt.FailOn), c.Better))
		}
	}
	for i, adjusted := range stat.Holm(differ) {
		tested[i].PAdjusted = &adjusted
		tested[i].Sure = adjusted <= alpha && tested[i].Direction != Same && tested[i].Direction != Unknown
	}
	for i, adjusted := range stat.Holm(exceed) {
		tested[i].Failed = adjusted <= alpha && tested[i].beyond(*p.opt.FailOn)
	}
}

func negative(values []float64) bool {
	return slices.ContainsFunc(values, func(v float64) bool { return v < 0 })
}

// finite returns v for JSON, or nil if v is no finite number.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// directionOf says what a shift with its interval means.
func directionOf(s stat.Shift, better string) Direction {
	switch increased := s.Low > 1; {
	case !s.Bounded():
		return Unknown
	case !increased && s.High >= 1:
		return Same
	case increased == (better == "higher"):
		return Better
	}
	return Worse
}

// limit returns the ratio beyond which a change for the worse exceeds failOn.
func (c *Change) limit(failOn float64) float64 {
	if c.Better == "higher" {
		return 1 - failOn
	}
	return 1 + failOn
}

// beyond says whether the whole interval lies on the bad side of the limit.
func (c *Change) beyond(failOn float64) bool {
	switch {
	case !c.shift.Bounded():
		return false
	case c.Better == "higher":
		return c.shift.High < c.limit(failOn)
	}
	return c.shift.Low > c.limit(failOn)
}

// worstFirst orders changes: those that fail the gate, then worse, unknown, same, better;
// within each, the largest change for the worse first.
func worstFirst(a, b Change) int {
	class := func(c *Change) int {
		sure := 0
		if c.Sure {
			sure = 1
		}
		switch {
		case c.Failed:
			return 0
		case c.Direction == Worse:
			return 2 - sure
		case c.Direction == Unknown:
			return 3
		case c.Direction == Same:
			return 4
		}
		return 5 + sure
	}
	return cmp.Or(cmp.Compare(class(&a), class(&b)), cmp.Compare(b.badness(), a.badness()))
}

// badness returns the size of the change as a logarithm, above 0 for a change for the worse.
func (c *Change) badness() float64 {
	b := math.Log(c.shift.Ratio)
	if c.Ratio != nil {
		b = math.Log(*c.Ratio)
	}
	if math.IsNaN(b) {
		return 0
	}
	if c.Better == "higher" {
		return -b
	}
	return b
}

// notes returns the notes that a reader of the comparison must know.
func (p *pairing) notes(unable, enough int) []string {
	notes := append([]string{}, p.whyLeftOut...)
	if a, b := p.old.Run.Tool, p.now.Run.Tool; a != b {
		notes = append(notes, fmt.Sprintf("the runs were made by different versions of cnibench: %s and %s", a.Version, b.Version))
	}
	if unable > 0 {
		what := "can't be told after the correction for all of them"
		if p.opt.FailOn != nil {
			what = "can't fail the gate, however much worse"
		}
		notes = append(notes, fmt.Sprintf("too few rounds: %d of %s %s; %d rounds in each run would do, or fewer comparisons (--metric, --step, --contenders)",
			unable, unit.Plural(len(p.changes), "figure"), what, enough))
	}
	for _, c := range p.changes {
		if c.Contender == p.now.Run.Baseline && c.Sure {
			notes = append(notes, fmt.Sprintf("the baseline %s itself changed (%s at %s): machine, kernel or load are not what they were; --vs-baseline compares the ratios to it, which that moves less", c.Contender, c.Metric, c.Step))
			break
		}
	}
	return notes
}

// disturbanceNotes returns a note for each run during which the machine was not at rest.
func (p *pairing) disturbanceNotes() (notes []string) {
	for _, from := range []string{"old", "new"} {
		for i, e := range p.runsOf(from) {
			if codes := listDisturbances(e); len(codes) > 0 {
				notes = append(notes, fmt.Sprintf("the machine was not at rest in %s (%s; its report tells more): what it did there can look like a change", p.runName(from, i), analysis.AndList(codes)))
			}
		}
	}
	return notes
}

// faults returns the faults of all runs. A fault of a new run that an old run has in
// the same words is no change for the worse, and does not fail the gate.
func (p *pairing) faults() []RunFault {
	list := []RunFault{}
	texts := func(from string) (plain, named []string) { // named: with the run's number, if runs are repeated
		runs := p.runsOf(from)
		for i, e := range runs {
			for _, text := range faultTexts(e) {
				plain = append(plain, text)
				if p.repeated() {
					text = fmt.Sprintf("run %d of %d: %s", i+1, len(runs), text)
				}
				named = append(named, text)
			}
		}
		return plain, named
	}
	old, oldNamed := texts("old")
	now, nowNamed := texts("new")
	for i, text := range old {
		from := "old"
		if !p.repeated() && slices.Contains(now, text) {
			from = "both"
		}
		list = append(list, RunFault{From: from, Text: oldNamed[i]})
	}
	for i, text := range now {
		known := slices.Contains(old, text)
		if !known || p.repeated() {
			list = append(list, RunFault{From: "new", Text: nowNamed[i], Failed: !known && p.opt.FailOn != nil})
		}
	}
	return list
}

// tornPrefix begins the faults of half-written samples. They were measured again, so
// nothing of the run is lost.
const tornPrefix = "samples.torn"

// faultTexts returns what of a run can't be read, was faulty in the imported files, or was
// not measured.
func faultTexts(e *analysis.Evidence) []string {
	var texts []string
	for _, f := range findings.Each(e, "unreadable_file", "incomplete_run") {
		if f.Severity != analysis.Info && !strings.HasPrefix(f.Text, tornPrefix) {
			texts = append(texts, f.Text)
		}
	}
	return texts
}

// disturbances are the codes of findings that say that the machine, and not the contender,
// may have caused a change.
var disturbances = []string{"clock_step", "unsteady_rounds", "machine_busy"}

// listDisturbances returns the codes of the disturbances that the run has.
func listDisturbances(e *analysis.Evidence) []string {
	var codes []string
	for _, f := range findings.Each(e, disturbances...) {
		if f.Severity != analysis.Info && !slices.Contains(codes, f.Code) {
			codes = append(codes, f.Code)
		}
	}
	return codes
}

// weakness returns Comparison.Unable and Comparison.Enough.
func (p *pairing) weakness() (unable, enough int) {
	minimum, alpha := stat.MinMannWhitney, 1-p.opt.Confidence
	if p.opt.FailOn != nil {
		minimum = minExceeds
	}
	tests := max(1, analysis.Count(p.changes, func(c Change) bool { return c.P != nil }))
	isEnough := func(m, n int) bool {
		return stat.Outermost(m, n, alpha) > 0 && minimum(m, n)*float64(tests) <= alpha
	}
	unable = analysis.Count(p.changes, func(c Change) bool { return !isEnough(len(c.Old.Values), len(c.New.Values)) })
	for enough = 2; !isEnough(enough, enough); {
		enough++
	}
	return unable, enough
}

// exceeds returns the one-sided p of the hypothesis that the new values do not exceed the
// limit. If lower is better, the hypothesis is that they are at most limit times the old
// values; if higher is better, that they are at least limit times the old values.
func exceeds(old, now []float64, limit float64, better string) float64 {
	scaled := make([]float64, len(old))
	for i, v := range old {
		scaled[i] = v * limit
	}
	r := stat.RatioShift(scaled, now, 0).Ratio
	if math.IsNaN(r) || better == "higher" && r >= 1 || better != "higher" && r <= 1 {
		return 1
	}
	// Half of the two-sided p. With ties the other tail can be empty, so the p must not
	// fall below that of a single order of the values.
	return max(stat.MannWhitney(scaled, now), stat.MinMannWhitney(len(old), len(now))) / 2
}

// minExceeds returns the smallest p that exceeds can give.
func minExceeds(old, now int) float64 { return stat.MinMannWhitney(old, now) / 2 }
