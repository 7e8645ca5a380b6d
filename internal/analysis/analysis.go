// Package analysis turns the samples of a run into figures: medians with
// intervals, ratios to the baseline, groups. It also declares the types of all
// values that reports show. The packages below it make findings, costs,
// recommendations and comparisons from its Evidence. All functions are pure: they
// use no disk, no network and no clock. Next: evidence.go, then
// report/assemble.go, which puts a report together.
package analysis

import (
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/result"
)

// ReportSchema names the version of the JSON form of a Report.
const ReportSchema = "cnibench/report/1"

// Report is everything a report shows; its JSON is the contract of
// `cnibench report --format json`.
type Report struct {
	Schema      string               `json:"schema"`
	Run         RunInfo              `json:"run"`
	Baseline    string               `json:"baseline"`
	Results     []Result             `json:"results"`
	Findings    []Finding            `json:"findings"`
	Unsupported []result.Unsupported `json:"unsupported"`
	// Spreads say what rounds of one contender differ by, for main figures with too few
	// rounds for letters.
	Spreads    []Spread     `json:"spreads,omitempty"`
	Wanted     *Wanted      `json:"rounds_wanted,omitempty"` // nil: the run has them, or can't be repeated
	Efficiency []Efficiency `json:"efficiency,omitempty"`
	// Published are the figures of studies beside those of Results; nil if not asked for.
	Published []PublishedFigure `json:"published,omitempty"`
	// Agreements compare the order of contenders in this run with that in studies;
	// Differences say what else differs between this run and them.
	Agreements  []Agreement  `json:"agreements,omitempty"`
	Differences []Difference `json:"differences,omitempty"`

	// Study is the study that the run repeats; nil if there is none.
	Study *Study `json:"-"`

	// For the page and the text table, not in the JSON contract.
	Contenders []result.ContenderInfo `json:"-"`
	Steps      []result.Step          `json:"-"`
	Curves     []Curve                `json:"-"`
	Plan       result.Plan            `json:"-"` // as run, so that a page can say how to repeat it
	Tool       result.Tool            `json:"-"`
	Traces     []Trace                `json:"-"`

	Capabilities   []Capability    `json:"-"`
	Recommendation *Recommendation `json:"-"` // nil where nothing can be scored
	Advice         []Advice        `json:"-"` // by scenario, in the order of listings

	// Measured are the contenders, underlays and steps with samples, valid or not;
	// Round is 0.
	Measured map[result.Key]bool `json:"-"`
	// Marks are the verdicts of all samples but those of the set-up, in the order in
	// which they were sealed.
	Marks []Mark `json:"-"`
}

// Mark is the verdict of one sample.
type Mark struct {
	Contender, Step string
	Round           int
	Dropped         string // code of the first reason why it does not count; "" for a valid sample
	Partly          string // code of why a valid sample counts without its latency; "" if it counts whole
}

// RunInfo says which run this is.
type RunInfo struct {
	ID          string             `json:"id"`
	Arena       string             `json:"arena"`
	Started     time.Time          `json:"started"`
	Rounds      int                `json:"rounds"`
	Suite       string             `json:"suite"`
	Environment result.Environment `json:"environment"`
	// Unpaired says that ratios compare all rounds of a contender with all rounds of
	// the baseline, because rounds of the same number were not measured together.
	Unpaired bool `json:"unpaired,omitempty"`
	// MeasuredShare is the share of the time from the first set-up to the end of the run in
	// which a window that counts was measured; 0 is unknown.
	MeasuredShare float64 `json:"measured_share,omitempty"`
}

// Result is one metric of one contender at one step, over the rounds.
type Result struct {
	Contender string  `json:"contender"`
	Kernel    string  `json:"kernel"`
	Underlay  string  `json:"underlay"`
	Step      string  `json:"step"`
	Path      string  `json:"path"`
	Metric    string  `json:"metric"`
	Unit      string  `json:"unit"`
	Better    string  `json:"better"` // higher, lower
	N         int     `json:"n"`
	Of        int     `json:"of,omitempty"`    // rounds in which the step was taken, valid or not; N of them are in the figure
	Median    float64 `json:"median"`          // of the rounds; a latency percentile: of all rounds' requests together
	Count     int64   `json:"count,omitempty"` // requests behind such a percentile
	// RoundsBeyond is from how many rounds the requests beyond such a percentile come: 1
	// if they are all from one stall, N if every round has the same number.
	RoundsBeyond float64     `json:"rounds_beyond,omitempty"`
	CI           *Interval   `json:"ci"` // null: too few rounds for the confidence
	Confidence   float64     `json:"confidence"`
	Values       []float64   `json:"values"`                // of the valid samples that carry the metric, by round
	VsBaseline   *Comparison `json:"vs_baseline"`           // null for the baseline, or if it has no comparable figure
	AnotherRun   *AnotherRun `json:"another_run,omitempty"` // where the ratio would lie in another run; nil: not known
	Usual        *Usual      `json:"usual,omitempty"`       // what is usual for the ratio; nil: not known, or several contenders
	Ranked       bool        `json:"ranked"`                // contenders can be ranked by it: it is better high or low, and the contender causes it
	// Letters are letters, "a" the best: contenders that share a letter can't be told
	// apart. Empty if not ranked, or if the rounds are too few to tell any two apart.
	Letters []string `json:"groups"`
	Tier    int      `json:"tier"` // for readers that do not know groups; 0 where there are none

	// MDD is the smallest relative difference to the baseline that these rounds would
	// show, 0.05 for 5 %; for the baseline itself, the difference to another run with
	// the same noise. It is nil if the rounds are too few to show any. RoundsFor5 is how
	// many rounds would show 5 %; 0 is unknown. Both are estimates: docs/methods.md.
	MDD        *float64 `json:"mdd,omitempty"`
	RoundsFor5 int      `json:"rounds_for_5_percent,omitempty"`
	// Closest is the nearest contender that can't be told apart from this one; nil if
	// there is none, and for metrics that are no headline of their step.
	Closest *Closest `json:"closest,omitempty"`
	// Errors are the sources of the figure's error, the largest first; nil for metrics
	// that are no headline of their step.
	Errors []ErrorPart `json:"error_budget,omitempty"`
}

// FigureKey returns the key of the result's figure.
func (r *Result) FigureKey() FigureKey {
	return FigureKey{ComparableSet{r.Kernel, r.Underlay}, r.Step, r.Metric}
}

// Interval is [low, high].
type Interval [2]float64

// Comparison is a ratio to the baseline with its interval and its p value, by Hodges and
// Lehmann's estimator and the rank test that belongs to it. It comes from the ratios within
// rounds or, if rounds are not paired, from all rounds of both.
type Comparison struct {
	Ratio float64   `json:"ratio"`
	CI    *Interval `json:"ci"`
	P     *float64  `json:"p"`
	Pairs int       `json:"pairs,omitempty"` // rounds behind the ratio; 0: written by a version that did not count them
	// Step is the baseline's step if it differs from the contender's: the same load from
	// pod to pod, for a path that the baseline does not have.
	Step string `json:"baseline_step,omitempty"`
}

// AnotherRun is the interval in which the ratio to the baseline would lie in another run, at
// another hour or on another machine; package otherruns makes it.
type AnotherRun struct {
	CI         Interval `json:"ci"`
	Confidence float64  `json:"confidence"`
	Runs       int      `json:"runs"` // behind the interval, this one among them
	// Machines is of how many machines the runs are; 1: the interval is for another hour of
	// this machine, and says nothing of another machine.
	Machines int    `json:"machines"`
	Source   string `json:"source"` // OwnRuns or ProjectRuns
	// Ratios are those of the user's own runs, in their order; nil with the project's.
	Ratios []float64 `json:"ratios,omitempty"`
}

// Usual is what other contenders have whose packets travel in the same way; package otherruns
// makes it for a run with one contender.
type Usual struct {
	Transport string   `json:"transport"`
	Ratios    Interval `json:"ratios"` // to the baseline, the least and the greatest
}

// The sources of AnotherRun.
const (
	OwnRuns     = "own"     // the user's own runs
	ProjectRuns = "project" // this run and those of the project
)

// Finding is something a reader must know: all that was found of one kind.
type Finding struct {
	Severity  string `json:"severity"` // info, warn, error
	Code      string `json:"code"`
	Title     string `json:"title,omitempty"` // the kind in words, without figures
	Contender string `json:"contender"`       // "" if several or none are concerned
	Step      string `json:"step"`            // as Contender
	Round     int    `json:"round"`           // 0: the whole run, or several
	Text      string `json:"text"`            // of at most three places
	Next      string `json:"next"`            // a command
	Excluded  bool   `json:"excluded"`        // the samples are not ranked
	Count     int    `json:"count,omitempty"` // in how many places it was found; 0: written by a version that made a finding of each
	// Places are the contenders and steps concerned, each pair once; none if the finding is
	// about the run.
	Places []FindingPlace `json:"places,omitempty"`

	Note bool `json:"-"` // the finding is a workload's note on how it measured
	// Weight is the size of the difference that the finding explains, as a logarithm of a
	// ratio; 0: it follows from the figures of Contender and Step.
	Weight float64 `json:"-"`
	// Consequence says that other findings may say why it is so.
	Consequence bool `json:"-"`
}

// FindingPlace is a contender at a step; either may be "" for all.
type FindingPlace struct {
	Contender string `json:"contender,omitempty"`
	Step      string `json:"step,omitempty"`
}

// Where returns the contender, step and round of a finding in words.
func (f *Finding) Where() string {
	var parts []string
	for _, s := range []string{f.Contender, f.Step} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if f.Round > 0 {
		parts = append(parts, "round "+strconv.Itoa(f.Round))
	}
	return strings.Join(parts, ", ")
}

// Curve is the latency of one contender at one step over all valid rounds:
// percentiles of the merged histogram that have ten values beyond them.
type Curve struct {
	Contender, Kernel, Underlay, Step string
	Clock                             string // latency, service_time, send_lag
	Count                             int64
	Points                            []CurvePoint
}

// CurvePoint is a percentile (0–100) and its value in seconds.
type CurvePoint struct {
	Percentile, Seconds float64
}

// The severities of a finding.
const (
	Info  = "info"  // good to know when reading the figures
	Warn  = "warn"  // figures that can mislead
	Error = "error" // figures that are missing or left out
)
