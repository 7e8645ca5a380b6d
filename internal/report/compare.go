package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/compare"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/report/terminal"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/unit"
)

// JUnit is the form of a comparison that CI systems show as tests.
const JUnit Format = "junit"

var compareWriters = []struct {
	format Format
	write  func(io.Writer, *compare.Comparison, Options) error
}{
	{Text, writeCompareText},
	{Markdown, writeCompareMarkdown},
	{JSON, writeCompareJSON},
	{JUnit, writeCompareJUnit},
	{Benchstat, writeCompareBenchstat},
}

// CompareFormats returns the names for WriteCompare, in the order of listings.
func CompareFormats() []string {
	names := make([]string, len(compareWriters))
	for i, f := range compareWriters {
		names[i] = string(f.format)
	}
	return names
}

// WriteCompare writes a comparison of two runs in the named format. Errors:
// *text.UnknownError for an unknown format, else those of w.
func WriteCompare(w io.Writer, format string, c *compare.Comparison, opt Options) error {
	for _, f := range compareWriters {
		if string(f.format) != format {
			continue
		}
		if err := f.write(w, c, opt); err != nil {
			return fmt.Errorf("comparison as %s: %w", format, err)
		}
		return nil
	}
	return text.Unknown("format", format, CompareFormats())
}

// writeCompareJSON writes the object that docs/schema/compare-1.schema.json describes.
func writeCompareJSON(w io.Writer, c *compare.Comparison, _ Options) error { return encodeJSON(w, c) }

// writeCompareBenchstat writes the values of both runs for
// `benchstat -col run FILE`.
func writeCompareBenchstat(w io.Writer, c *compare.Comparison, opt Options) error {
	for _, run := range []struct {
		name string
		compare.Run
		side func(compare.Change) compare.Side
	}{
		{"old", c.Old, func(c compare.Change) compare.Side { return c.Old }},
		{"new", c.New, func(c compare.Change) compare.Side { return c.New }},
	} {
		r := &analysis.Report{Run: analysis.RunInfo{ID: run.name + ":" + run.ID, Suite: run.Suite, Arena: run.Arena,
			Environment: result.Environment{result.EmulatedKey: strconv.FormatBool(run.Emulated)}}}
		for _, change := range c.Changes {
			r.Results = append(r.Results, analysis.Result{
				Contender: change.Contender, Kernel: change.Kernel, Underlay: change.Underlay, Step: change.Step, Path: change.Path,
				Metric: change.Metric, Unit: change.Unit, Better: change.Better, Values: run.side(change).Values,
			})
		}
		if err := writeBenchstat(w, r, opt); err != nil {
			return err
		}
	}
	return nil
}

// sign shows the direction of a change by a mark, a word and a colour.
type sign struct{ mark, word, style string }

func signOf(c *compare.Change, failOn *float64) sign {
	switch {
	case c.Failed:
		return sign{"✗", "FAILS", terminal.Red}
	case c.Direction == compare.Worse && c.Sure:
		return sign{"▼", "worse", terminal.Red}
	case c.Direction == compare.Worse:
		return sign{"▽", "worse?", terminal.Yellow}
	case c.Direction == compare.Better && c.Sure:
		return sign{"▲", "better", terminal.Green}
	case c.Direction == compare.Better:
		return sign{"△", "better?", ""}
	case c.Direction == compare.Same && within(c, failOn):
		return sign{"=", "same", terminal.Dim}
	case c.Direction == compare.Same:
		return sign{"~", "none shown", terminal.Dim}
	case doubtful(c, failOn):
		return sign{"·", "unknown", terminal.Yellow}
	}
	return sign{"·", "unknown", terminal.Dim}
}

// within says whether the whole interval lies inside the limit of the gate, in both
// directions.
func within(c *compare.Change, failOn *float64) bool {
	return failOn != nil && c.CI != nil && c.CI[0] > 1-*failOn && c.CI[1] < 1+*failOn
}

// notable is the change (as a logarithm) from which an unknown change is listed without a
// gate.
const notable = 0.05

// doubtful says whether a change of unknown direction has an estimate beyond the limit of
// the gate; without a gate, beyond notable in either direction.
func doubtful(c *compare.Change, failOn *float64) bool {
	switch {
	case c.Direction != compare.Unknown || c.Ratio == nil:
		return false
	case failOn == nil:
		return math.Abs(math.Log(*c.Ratio)) > notable
	case c.Better == "higher":
		return *c.Ratio < 1-*failOn
	}
	return *c.Ratio > 1+*failOn
}

// uninformative says whether nothing is known of a change that a reader must see.
func uninformative(c *compare.Change, failOn *float64) bool {
	return c.Direction == compare.Same || c.Direction == compare.Unknown && !doubtful(c, failOn)
}

// compareLegend explains the signs.
func compareLegend(c *compare.Comparison) []string {
	percent := unit.FormatPercent(c.Confidence)
	figure := "figure"
	if c.VsBaseline {
		figure = "ratio to " + c.New.Baseline
	}
	lines := []string{
		fmt.Sprintf("Old and new are each run's %s; × is new by old, the median over all pairs of rounds, with its %s interval in brackets.", figure, percent),
		fmt.Sprintf("worse, better: significant after the correction for %s. worse?, better?: the interval shows a change, but with so many figures some intervals do so by chance. none shown: the interval contains no change, and perhaps also a large one. unknown: no interval, because of too few rounds or too few requests in a round.",
			unit.Plural(len(c.Changes), "comparison")),
	}
	what := "change"
	if c.FailOn != nil {
		limit := unit.FormatPercent(*c.FailOn)
		lines = append(lines, fmt.Sprintf("FAILS: the whole interval lies beyond %s for the worse, after that correction. same: all of it lies within %s.", limit, limit))
		what = "failure"
	}
	return append(lines, fmt.Sprintf("The chance of any false %s is at most %s if the two runs differ no more than rounds of one run do. Often they differ more: compare two runs of the same thing, and choose a limit above what that shows.",
		what, unit.FormatPercent(1-c.Confidence)))
}

// GateText returns the outcome of the gate in one sentence, "" without a gate.
func GateText(c *compare.Comparison) string {
	if c.Passed == nil {
		return ""
	}
	failed := analysis.Count(c.Changes, func(c compare.Change) bool { return c.Failed })
	gone := analysis.Count(c.Missing, func(m compare.Missing) bool { return m.Failed })
	broken := analysis.Count(c.Faults, func(f compare.RunFault) bool { return f.Failed })
	limit := "worse by more than " + unit.FormatPercent(*c.FailOn)
	if *c.Passed {
		return fmt.Sprintf("gate passed: none of %s is shown to be %s", unit.Plural(len(c.Changes), "figure"), limit)
	}
	var parts []string
	if failed > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s %s", failed, unit.Plural(len(c.Changes), "figure"), limit))
	}
	if gone > 0 {
		parts = append(parts, fmt.Sprintf("%d measured before and gone now", gone))
	}
	if broken > 0 {
		parts = append(parts, fmt.Sprintf("the new run is broken in %s", unit.Plural(broken, "place")))
	}
	if cannotFail(c) {
		parts = append(parts, cannotFailText(c))
	}
	return "gate failed: " + strings.Join(parts, "; ")
}

// cannotFail says whether there are too few rounds for any figure to fail the gate.
func cannotFail(c *compare.Comparison) bool { return c.Passed != nil && c.Unable == len(c.Changes) }

func cannotFailText(c *compare.Comparison) string {
	return fmt.Sprintf("too few rounds for any of %s to fail, however much worse; %d rounds in each run would do", unit.Plural(len(c.Changes), "figure"), c.Enough)
}

// ratio returns the ratio as "0.81× (0.80–0.83)", or words if there is no ratio.
func ratio(c *compare.Change) string {
	if c.Ratio == nil {
		if c.Old.Median == 0 && c.New.Median > 0 {
			return "from zero"
		}
		return unit.Missing
	}
	return layout.Comparison(&analysis.Comparison{Ratio: *c.Ratio, CI: c.CI})
}

// side returns one run's figure with its unit, or its ratio with ×.
func (p comparePlaces) side(c *compare.Change, s compare.Side) string {
	if p.vsBaseline {
		return unit.Ratio(s.Median) + "×"
	}
	return unit.Format(s.Median, c.Unit)
}

// comparePlaces names the places where figures were measured. Kernels and underlays are
// left out if all figures have the same.
type comparePlaces struct{ kernels, underlays, vsBaseline bool }

func placesOf(c *compare.Comparison) comparePlaces {
	differ := func(property func(compare.Change) string) bool {
		return slices.ContainsFunc(c.Changes, func(x compare.Change) bool { return property(x) != property(c.Changes[0]) })
	}
	return comparePlaces{
		kernels:    differ(func(c compare.Change) string { return c.Kernel }),
		underlays:  differ(func(c compare.Change) string { return c.Underlay }),
		vsBaseline: c.VsBaseline,
	}
}

func (p comparePlaces) contender(name, underlay, kernel string) string {
	if p.underlays && underlay != "" {
		name += " @" + underlay
	}
	if p.kernels && kernel != "" {
		name += " " + kernel
	}
	return name
}

// missingText says in a sentence which figure is missing.
func missingText(m compare.Missing, p comparePlaces) string {
	at := p.contender(m.Contender, m.Underlay, "") + " at " + m.Step
	if m.Metric != "" {
		at = layout.MetricLabel(m.Metric) + " of " + at
	}
	return at + ": " + m.Text
}

// faultText describes a fault of a run in a sentence.
func faultText(f compare.RunFault) string {
	if f.From == "both" {
		return "both runs: " + f.Text
	}
	return "the " + f.From + " run: " + f.Text
}

func runText(r *compare.Run) string {
	text := fmt.Sprintf("%s, suite %s, arena %s%s, %s", r.ID, r.Suite, r.Arena, layout.EmulatedNote(r.Emulated), unit.Plural(r.Rounds, "round"))
	if !r.Started.IsZero() {
		text += ", " + r.Started.UTC().Format("2006-01-02 15:04 MST")
	}
	return text
}

// differenceText returns a difference as "setting.mtu: 1500 → 9000".
func differenceText(d compare.Difference) string {
	known := func(s string) string {
		if s == "" {
			return "none"
		}
		return s
	}
	return fmt.Sprintf("%s: %s → %s", d.Key, known(d.Old), known(d.New))
}

// DifferenceTexts returns the differences as texts that are safe for a terminal.
func DifferenceTexts(list []compare.Difference) []string {
	out := make([]string, len(list))
	for i, d := range list {
		out[i] = text.SafeLine(differenceText(d))
	}
	return out
}
