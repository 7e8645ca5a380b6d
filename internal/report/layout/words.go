package layout

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// MetricLabel returns a metric's name for people: "Latency p99.9" for latency_p99_9.
func MetricLabel(name string) string {
	if m, _ := result.LookupMetric(name); m.Label != "" {
		return m.Label
	}
	words := strings.Split(name, "_")
	for i, w := range words {
		// p99_9 stands for p99.9: a name cannot contain a point.
		if i > 0 && w != "" && strings.Trim(w, "0123456789") == "" && strings.HasPrefix(words[i-1], "p") {
			return MetricLabel(strings.Join(words[:i], "_")) + "." + w
		}
	}
	if words[0] == "cpu" {
		words[0] = "CPU"
	} else if words[0] != "" {
		words[0] = strings.ToUpper(words[0][:1]) + words[0][1:]
	}
	return strings.Join(words, " ")
}

// Value returns the median with its unit.
func Value(r *analysis.Result) string { return unit.Format(r.Median, r.Unit) }

// Interval returns the interval as "16.1 Gbit/s – 17.0 Gbit/s", "" without an interval.
func Interval(r *analysis.Result) string {
	if r.CI == nil {
		return ""
	}
	return unit.Format(r.CI[0], r.Unit) + " – " + unit.Format(r.CI[1], r.Unit)
}

// Comparison returns the ratio and its interval as "0.57× (0.55–0.60)".
func Comparison(c *analysis.Comparison) string {
	if c == nil {
		return ""
	}
	if c.CI == nil {
		return unit.Ratio(c.Ratio) + "×"
	}
	return fmt.Sprintf("%s× (%s–%s)", unit.Ratio(c.Ratio), unit.Ratio(c.CI[0]), unit.Ratio(c.CI[1]))
}

// SideOfBaseline says on which side of the baseline the whole interval of the ratio lies:
// "better" or "worse". It is "" if the interval contains 1, or if the figure is not ranked.
func SideOfBaseline(r *analysis.Result) string {
	if r == nil || !r.Ranked || r.VsBaseline == nil || r.VsBaseline.CI == nil {
		return ""
	}
	low, high := r.VsBaseline.CI[0], r.VsBaseline.CI[1]
	switch higher := r.Better == "higher"; {
	case low > 1 && higher, high < 1 && !higher:
		return "better"
	case high < 1 && higher, low > 1 && !higher:
		return "worse"
	}
	return ""
}

// Letters returns the letters of a figure's groups, as "ab"; "" if it is not ranked.
func Letters(r *analysis.Result) string {
	if r == nil {
		return ""
	}
	return strings.Join(r.Letters, "")
}

// BareCluster returns a note about the baseline of a run with --install; "" for other runs.
func (v *View) BareCluster() string {
	if v.Plan.Settings["install"] != "true" || v.Baseline != "host" {
		return ""
	}
	return "Memory and CPU over host are over a cluster without a CNI: with --install, host is measured while none is installed."
}

// Confidence returns the level of the intervals of ratios, such as "98 %"; "" without any.
func (v *View) Confidence() string {
	level := 0.0
	for _, r := range v.Results {
		if r.VsBaseline != nil && r.VsBaseline.CI != nil {
			level = max(level, r.Confidence)
		}
	}
	if level == 0 {
		return ""
	}
	return unit.FormatPercent(level)
}

// Legend says how to read the tables.
func (v *View) Legend() []string {
	confidence, single, bounded, missing, pooled, pooledOnly, grouped, ungrouped := 0.0, true, false, false, false, false, false, 0
	type spot struct {
		Site
		step, metric string
	}
	standIn, ranked := "", map[spot]int{}
	for _, r := range v.Results {
		pooled = pooled || r.Count > 0
		grouped = grouped || len(r.Letters) > 0
		if r.VsBaseline != nil && r.VsBaseline.Step != "" && standIn == "" {
			standIn = r.Step + " to " + r.VsBaseline.Step
		}
		if r.Count > 0 && len(r.Values) < r.N {
			pooledOnly = true
			continue // more rounds would not give the ratio an interval
		}
		single = single && (confidence == 0 || confidence == r.Confidence)
		confidence = max(confidence, r.Confidence)
		bounded = bounded || r.VsBaseline != nil && r.VsBaseline.CI != nil
		missing = missing || r.VsBaseline != nil && r.VsBaseline.CI == nil
		if r.Ranked && len(r.Letters) == 0 {
			at := spot{Site{Kernel: r.Kernel, Underlay: r.Underlay}, r.Step, r.Metric}
			ranked[at]++
			ungrouped = max(ungrouped, ranked[at])
		}
	}
	percent := strconv.FormatFloat(confidence*100, 'f', -1, 64) + " %"
	if !single {
		percent = "up to " + percent
	}
	how := "paired by round"
	if v.Run.Unpaired {
		how = "the middle of the ratios of all its rounds to all of the baseline's, since rounds of one number were not measured beside each other"
	}
	text := fmt.Sprintf("Each figure is the median of the rounds; × is its ratio to %s, %s", v.Baseline, how)
	if bounded {
		text += fmt.Sprintf(", with the ratio's %s interval in brackets", percent)
	}
	lines := []string{text + "."}
	if standIn != "" {
		lines = append(lines, fmt.Sprintf("Where %s was not measured, the ratio is to its figure of the same load from pod to pod (%s).", v.Baseline, standIn))
	}
	if bare := v.BareCluster(); bare != "" {
		lines = append(lines, bare)
	}
	if pooled {
		lines = append(lines, "Latency percentiles, their intervals and their ratios come from all rounds' requests together; their groups come from the percentiles of single rounds.")
	}
	if pooledOnly {
		lines = append(lines, "A percentile for which single rounds have too few requests has no group.")
	}
	if grouped {
		lines = append(lines, "Letters are groups, a the best: contenders that share a letter can't be told apart. A figure without a letter is not ranked.",
			fmt.Sprintf("Letters compare contenders with each other; whether a contender differs from %s is said by its interval alone: it does if the interval does not contain 1.", v.Baseline))
	}
	if ungrouped > 0 {
		lines = append(lines, fmt.Sprintf("No groups: %s can't tell %s apart%s; rows are in the order of their medians.",
			v.RoundsTaken(), unit.Plural(ungrouped, "contender"), map[bool]string{true: " everywhere"}[grouped]))
	}
	if note := v.FewRounds(); note != "" {
		lines = append(lines, note)
	}
	if missing {
		lines = append(lines, fmt.Sprintf("A ratio without an interval has too few rounds for %s confidence%s.", percent, moreRounds(v.Report)))
	}
	for i := range v.Groups {
		g := &v.Groups[i]
		if head := Headline(g, v.Steps); len(head) > 0 {
			lines = append(lines, g.Certainty(head[:1])...)
		}
	}
	return lines
}

// moreRounds returns the advice to measure more rounds; "" for an unpaired run, which
// others measured.
func moreRounds(r *analysis.Report) string {
	if r.Run.Unpaired {
		return ""
	}
	return ": run more with --rounds"
}

// EmulatedNote returns a note for a kernel that ran on an emulated CPU, else "".
func EmulatedNote(emulated bool) string {
	if emulated {
		return " on an emulated CPU"
	}
	return ""
}

// Title returns the group's kernel and underlay.
func (g *Group) Title() string {
	var parts []string
	if g.Kernel != "" {
		parts = append(parts, "kernel "+g.Kernel+EmulatedNote(g.Emulated))
	}
	if g.Underlay != "" {
		parts = append(parts, "underlay "+g.Underlay)
	}
	return strings.Join(parts, ", ")
}

var severities = []string{"error", "warn", "info"}

// BySeverity returns the findings, the gravest first.
func BySeverity(findings []analysis.Finding) []analysis.Finding {
	out := slices.Clone(findings)
	slices.SortStableFunc(out, func(a, b analysis.Finding) int {
		return slices.Index(severities, a.Severity) - slices.Index(severities, b.Severity)
	})
	return out
}

// splitNotes separates the workloads' notes from the other findings.
func splitNotes(findings []analysis.Finding) (others, notes []analysis.Finding) {
	for _, f := range findings {
		if f.Note {
			notes = append(notes, f)
		} else {
			others = append(others, f)
		}
	}
	return others, notes
}

// TopFindings returns the findings but the workloads' notes, the gravest first. A missing
// sample is left out if another finding says why it is missing.
func (v *View) TopFindings() []analysis.Finding {
	list, _ := splitNotes(v.Findings)
	return BySeverity(list)
}

// FindingLine returns a finding in one line: what was found, where, and what to do.
func FindingLine(f *analysis.Finding) string {
	words := f.Text
	if f.Count <= 1 && f.Where() != "" {
		words = f.Where() + ": " + words
	}
	if f.Title != "" && f.Count <= 1 && !f.Note {
		words = f.Title + ": " + words
	}
	return words
}

// Unable is a group of contenders that cannot run for the same reason.
type Unable struct {
	Contenders     []string
	Reason, Remedy string
}

// Unables groups the unsupported contenders by reason and remedy.
func (v *View) Unables() []Unable {
	var out []Unable
	for _, u := range v.Unsupported {
		i := slices.IndexFunc(out, func(o Unable) bool { return o.Reason == u.Reason && o.Remedy == u.Remedy })
		if i < 0 {
			out = append(out, Unable{Reason: u.Reason, Remedy: u.Remedy})
			i = len(out) - 1
		}
		name := u.Contender
		if u.Step != "" {
			name += " at " + u.Step
		}
		out[i].Contenders = append(out[i].Contenders, name)
	}
	return out
}

// IsFinite says whether v is neither NaN nor infinite.
func IsFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// FiniteInterval says whether both ends are finite, or there is no interval.
func FiniteInterval(i *analysis.Interval) bool {
	return i == nil || IsFinite(i[0]) && IsFinite(i[1])
}

// Exact returns the shortest decimal that reads back as the same number.
func Exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Estimate returns the median and its interval in words.
func Estimate(e *analysis.Estimate, unitName string) string {
	if e == nil || !IsFinite(e.Median) {
		return unit.Missing
	}
	words := unit.Format(e.Median, unitName)
	if e.CI != nil && FiniteInterval(e.CI) {
		words += " (" + unit.Format(e.CI[0], unitName) + " – " + unit.Format(e.CI[1], unitName) + ")"
	}
	return words
}
