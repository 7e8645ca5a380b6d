// Package compare sets two runs beside each other and says what changed, with
// a gate for CI. It does not judge whether the runs may be compared; it lists
// what speaks against that. Next: compare.go.
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
)

// Schema names the version of the JSON form of a Comparison.
const Schema = "cnibench/compare/1"

// Options choose what is compared and what fails the gate. The zero
// value compares the headline metrics of all steps and contenders, and has no
// gate.
type Options struct {
	analysis.Options
	Metrics    []string // empty: the headline ones; "all": all that are merits
	Steps      []string // empty: all
	Contenders []string // empty: all
	VsBaseline bool     // compare the ratios to each run's own baseline, paired by round
	// FailOn is the largest change for the worse that the gate lets pass, as a
	// share: 0.05 is 5 %. nil: no gate.
	FailOn *float64
	// Environment names the keys of the environments that differ in what
	// matters; which do, fingerprint.Differences knows.
	Environment []string
	// Parts are compared each with its own kind, under one correction for all.
	Parts []PartPair
	// MoreOld and MoreNew are repeated runs of either side. With any, a run counts once, with
	// its figure, and no longer each of its rounds: what differs between runs of one
	// kind is then part of every interval. Parts are left aside.
	MoreOld, MoreNew []*result.Record
}

// Comparison is a comparison of two runs; its JSON is what
// `cnibench compare OLD NEW --format json` prints.
type Comparison struct {
	Schema     string `json:"schema"`
	Old        Run    `json:"old"`
	New        Run    `json:"new"`
	VsBaseline bool   `json:"vs_baseline"`
	// Confidence is that of intervals. 1 less it is the chance of any false
	// "sure" and of any false failure, if the runs differ no more than rounds of
	// one run do.
	Confidence float64  `json:"confidence"`
	FailOn     *float64 `json:"fail_on"` // null: no gate
	// Passed is false, too, for a gate that nothing could have failed; null: no gate.
	Passed *bool `json:"passed"`
	// Unable counts the changes whose rounds are too few to fail the gate, or to
	// hold after the correction without one, whatever their values; Enough is how
	// many rounds in each run would do.
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
	Rounds   int       `json:"rounds"`
	Baseline string    `json:"baseline"`
	Tool     string    `json:"tool"` // version

	Parts []Part `json:"parts,omitempty"` // that were compared
}

// RunFault is something of a run that can't be read or was never taken, so that
// figures of it can be missing or stand on fewer rounds than were planned.
type RunFault struct {
	From   string `json:"from"` // old, new or both
	Text   string `json:"text"`
	Failed bool   `json:"failed"` // of the new run alone: this fails the gate
}

// Change is one metric of one contender at one step in both runs.
type Change struct {
	Part      string             `json:"part,omitempty"` // of both runs, as of a Result
	Contender string             `json:"contender"`
	Kernel    string             `json:"kernel"` // of the new run
	Underlay  string             `json:"underlay"`
	Step      string             `json:"step"`
	Path      string             `json:"path"`
	Metric    string             `json:"metric"`
	Unit      string             `json:"unit"` // "1" where ratios to the baseline are compared
	Better    string             `json:"better"`
	Old       Side               `json:"old"`
	New       Side               `json:"new"`
	Ratio     *float64           `json:"ratio"` // new by old, Hodges–Lehmann; null where it can't be formed, as from zero
	CI        *analysis.Interval `json:"ci"`    // of the ratio; null: too few rounds
	P         *float64           `json:"p"`     // exact Mann–Whitney, two-sided
	PAdjusted *float64           `json:"p_adjusted"`
	Direction Direction          `json:"verdict"`
	// Sure says that the verdict holds after Holm's correction for all
	// comparisons that were made.
	Sure   bool `json:"sure"`
	Failed bool `json:"failed"` // beyond the limit, after that correction: this fails the gate

	shift stat.Shift
}

// Side is the figure of one run.
type Side struct {
	Median float64   `json:"median"` // as reports show it
	Values []float64 `json:"values"` // by round
}

// Direction says which way a figure changed.
type Direction string

// The directions. Better and Worse: the whole interval lies on that side of no
// change. Same: it holds no change, which shows none and is no proof that there
// is none. Unknown: too few rounds for an interval.
const (
	Worse   Direction = "worse"
	Unknown Direction = "unknown"
	Same    Direction = "same"
	Better  Direction = "better"
)

// Missing is a figure that one run lacks.
type Missing struct {
	Part      string `json:"part,omitempty"` // as of a Result
	Contender string `json:"contender"`
	Underlay  string `json:"underlay"`
	Step      string `json:"step"`
	Metric    string `json:"metric"` // "": the step has none of those compared
	From      string `json:"from"`   // old or new: the run without it
	Text      string `json:"text"`
	Failed    bool   `json:"failed"` // planned, measured before and gone: this fails the gate
}

// Compare sets two runs beside each other. It does not judge whether they may
// be compared: it lists the differences that speak against it. Errors:
// *SelectionError.
func Runs(old, now *result.Record, opt Options) (*Comparison, error) {
	opt.Options = opt.Complete(&now.Run.Plan)
	pairs, faults := opt.pairings(old, now)
	if err := check(opt, pairs); err != nil {
		return nil, err
	}
	p := pairs[0] // takes what all have, to be judged together
	p.pair()
	for _, part := range pairs[1:] {
		part.pair()
		p.changes = append(p.changes, analysis.Changed(part.changes, func(c *Change) { c.Part = part.part })...)
		p.missing = append(p.missing, analysis.Changed(part.missing, func(m *Missing) { m.Part = part.part })...)
	}
	if len(p.changes) == 0 {
		return nil, &SelectionError{Have: append([]string{offers(p.old, "old"), offers(p.now, "new")}, p.whyLeftOut...)}
	}
	p.judge()
	c := &Comparison{
		Schema: Schema, Old: comparedRun(old), New: comparedRun(now),
		VsBaseline: opt.VsBaseline, Confidence: opt.Confidence, FailOn: opt.FailOn,
		Changes: p.changes, Missing: p.missing,
	}
	c.Unable, c.Enough = p.weakness()
	c.Notes = p.notes(c.Unable, c.Enough)
	if p.repeated() {
		c.Notes = append(c.Notes, fmt.Sprintf("%d old and %d new runs: each counts once, with its figure, so that what differs between runs of one kind is part of the intervals; two sides of 4 runs give the first of 95 %%",
			1+len(opt.MoreOld), 1+len(opt.MoreNew)))
	}
	c.Differences, c.Faults = []Difference{}, []RunFault{}
	var vague []string
	for _, one := range pairs {
		for _, more := range slices.Concat(opt.MoreOld, opt.MoreNew) {
			differ, _ := differences(one.old.Run, &more.Run, one.old.Run.Tools(one.old.Samples), more.Run.Tools(more.Samples), one.environment)
			for _, d := range differ {
				if !slices.ContainsFunc(c.Differences, func(o Difference) bool { return o.Key == d.Key }) {
					c.Differences = append(c.Differences, d)
				}
			}
		}
		differ, unknown := differences(one.old.Run, one.now.Run, one.old.Run.Tools(one.old.Samples), one.now.Run.Tools(one.now.Samples), one.environment)
		c.Differences = append(c.Differences, analysis.Changed(differ, func(d *Difference) { d.Key = one.in(".", d.Key) })...)
		for _, key := range unknown {
			vague = append(vague, one.in(".", key))
		}
		c.Faults = append(c.Faults, analysis.Changed(one.faults(), func(f *RunFault) { f.Text = one.in(": ", f.Text) })...)
		c.Notes = append(c.Notes, one.unrest()...)
		if one.part != "" {
			c.Old.Parts = append(c.Old.Parts, comparedPart(one.part, one.old.Run))
			c.New.Parts = append(c.New.Parts, comparedPart(one.part, one.now.Run))
		}
	}
	c.Faults = append(c.Faults, faults...)
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

func comparedRun(rec *result.Record) Run {
	r := analysis.Ended(&rec.Run, rec.Samples)
	return Run{
		ID: r.ID, Started: r.Started, Suite: r.Plan.Suite, Arena: r.Arena, Rounds: r.Plan.Rounds, Baseline: r.Baseline, Tool: r.Tool.Version,
	}
}

// judge gives every change its ratio, interval, p and verdict.
func (p *pairing) judge() {
	alpha := 1 - p.opt.Confidence
	var tested []*Change
	var differ, exceed []float64
	for i := range p.changes {
		c := &p.changes[i]
		was, now := c.Old.Values, c.New.Values
		c.Direction = Unknown
		if negative(was) || negative(now) {
			continue
		}
		c.shift = stat.RatioShift(was, now, p.opt.Confidence)
		c.Ratio = finite(c.shift.Ratio)
		if len(was) == 0 || len(now) == 0 {
			// Of a percentile that only all rounds together carry.
			c.Ratio = finite(c.New.Median / c.Old.Median)
			continue
		}
		if finite(c.shift.Low) != nil && finite(c.shift.High) != nil {
			c.CI = &analysis.Interval{c.shift.Low, c.shift.High}
		}
		c.Direction = directionOf(c.shift, c.Better)
		pv := p.now.RankTests.P(was, now)
		c.P = &pv
		tested, differ = append(tested, c), append(differ, pv)
		if p.opt.FailOn != nil {
			exceed = append(exceed, exceeds(was, now, c.limit(*p.opt.FailOn), c.Better))
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

// finite is v for JSON, nil where it is no finite number.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// directionOf says what a shift with its interval means.
func directionOf(s stat.Shift, better string) Direction {
	switch more := s.Low > 1; {
	case !s.Bounded():
		return Unknown
	case !more && s.High >= 1:
		return Same
	case more == (better == "higher"):
		return Better
	}
	return Worse
}

// limit is the ratio at which a change for the worse passes failOn.
func (c *Change) limit(failOn float64) float64 {
	if c.Better == "higher" {
		return 1 - failOn
	}
	return 1 + failOn
}

// beyond says that the whole interval lies on the bad side of the limit.
func (c *Change) beyond(failOn float64) bool {
	switch {
	case !c.shift.Bounded():
		return false
	case c.Better == "higher":
		return c.shift.High < c.limit(failOn)
	}
	return c.shift.Low > c.limit(failOn)
}

// worstFirst orders what fails the gate before what is worse, then unknown,
// same, better; within, the largest change for the worse first.
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

// badness is above 0 for a change for the worse.
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

// notes are what a reader of the comparison must know.
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
			unable, analysis.Plural(len(p.changes), "figure"), what, enough))
	}
	for _, c := range p.changes {
		if c.Contender == p.now.Run.Baseline && c.Sure {
			notes = append(notes, fmt.Sprintf("the baseline %s itself changed (%s at %s): machine, kernel or load are not what they were; --vs-baseline compares the ratios to it, which that moves less", c.Contender, c.Metric, c.Step))
			break
		}
	}
	return notes
}

// unrest says where the machine was not at rest.
func (p *pairing) unrest() (notes []string) {
	for _, side := range []struct {
		name string
		e    *analysis.Evidence
	}{{"old", p.old}, {"new", p.now}} {
		if codes := disturbed(side.e); len(codes) > 0 {
			notes = append(notes, p.in(": ", fmt.Sprintf("the machine was not at rest in the %s run (%s; its report tells more): what it did there can look like a change", side.name, analysis.AndList(codes))))
		}
	}
	return notes
}

// faults are what is broken in the runs. What the old run lacks in the same
// words was no better before: it is told and fails nothing.
func (p *pairing) faults() []RunFault {
	list := []RunFault{}
	was, now := broken(p.old), broken(p.now)
	for _, text := range was {
		from := "old"
		if slices.Contains(now, text) {
			from = "both"
		}
		list = append(list, RunFault{From: from, Text: text})
	}
	for _, text := range now {
		if !slices.Contains(was, text) {
			list = append(list, RunFault{From: "new", Text: text, Failed: p.opt.FailOn != nil})
		}
	}
	return list
}

// resumed begins the faults of half-written samples that were measured again:
// nothing of the run is lost.
const resumed = "samples.torn"

// broken says what of a run can't be read, was faulty where it came from, or
// was never taken.
func broken(e *analysis.Evidence) []string {
	var texts []string
	for _, f := range findings.Of(e, "corrupt_samples", "incomplete_run") {
		if f.Severity != analysis.Info && !strings.HasPrefix(f.Text, resumed) {
			texts = append(texts, f.Text)
		}
	}
	return texts
}

// disturbances are the findings that say of a run's figures that the machine
// made them, as far as the contender is concerned.
var disturbances = []string{"clock_step", "drift", "unstable_baseline", "bimodal_rounds", "steal_present", "busy_machine"}

// disturbed are the codes of those that the run has.
func disturbed(e *analysis.Evidence) []string {
	var codes []string
	for _, f := range findings.Of(e, disturbances...) {
		if !slices.Contains(codes, f.Code) {
			codes = append(codes, f.Code)
		}
	}
	return codes
}

// weakness counts the changes whose rounds are too few to hold after the
// correction, or to fail the gate, and says how many in each run would do.
func (p *pairing) weakness() (unable, enough int) {
	least, alpha := stat.LeastMannWhitney, 1-p.opt.Confidence
	if p.opt.FailOn != nil {
		least = leastExceeds
	}
	tests := max(1, analysis.Count(p.changes, func(c Change) bool { return c.P != nil }))
	can := func(m, n int) bool {
		return stat.Outermost(m, n, alpha) > 0 && least(m, n)*float64(tests) <= alpha
	}
	unable = analysis.Count(p.changes, func(c Change) bool { return !can(len(c.Old.Values), len(c.New.Values)) })
	for enough = 2; !can(enough, enough); {
		enough++
	}
	return unable, enough
}

// exceeds is the one-sided p of the hypothesis that the new values are at most
// limit times the old ones (worse is "more", so lower is better), or at least
// that where worse is less.
func exceeds(was, now []float64, limit float64, better string) float64 {
	scaled := make([]float64, len(was))
	for i, v := range was {
		scaled[i] = v * limit
	}
	r := stat.RatioShift(scaled, now, 0).Ratio
	if math.IsNaN(r) || better == "higher" && r >= 1 || better != "higher" && r <= 1 {
		return 1
	}
	// Half of both tails; with ties the other tail can be empty, and no order
	// is rarer than one of all.
	return max(stat.MannWhitney(scaled, now), stat.LeastMannWhitney(len(was), len(now))) / 2
}

// leastExceeds is the smallest p that exceeds can give.
func leastExceeds(was, now int) float64 { return stat.LeastMannWhitney(was, now) / 2 }
