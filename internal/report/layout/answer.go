package layout

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file makes the answer at the begin of a report: which contender is best, whether
// that is sure, and what to do next. It only counts and chooses words; figures and groups
// come from package analysis.

const (
	minPairs = 3 // a ratio from fewer pairs is not shown
	maxNamed = 4 // names in a sentence; more are counted
)

// Answer returns sentences: for each group a verdict on each answer column, then the
// quality of the run and the next step.
func (v *View) Answer() []string {
	var sentences []string
	for i := range v.Groups {
		g := &v.Groups[i]
		prefix := ""
		if len(v.Groups) > 1 {
			prefix = g.Title() + ": "
		}
		for _, c := range v.AnswerColumns(g) {
			if s := (answer{v}).verdict(g, c); s != "" {
				sentences = append(sentences, prefix+s)
			}
		}
	}
	if len(v.Groups) == 0 {
		return []string{"No valid sample: there is nothing to compare. The findings say why."}
	}
	sentences = append(v.alarms(), sentences...)
	sentences = append(sentences, v.precision())
	if next := v.next(); next != "" {
		sentences = append(sentences, next)
	}
	return sentences
}

// alarms returns a sentence for each finding that must not be overlooked, whatever the usual
// columns are: steps that collapsed, and full connection tracking tables.
func (v *View) alarms() []string {
	var list []string
	for _, f := range v.TopFindings() {
		if f.Code == "step_collapsed" || f.Code == "conntrack_full" {
			list = append(list, strings.TrimSuffix(FindingLine(&f), ".")+".")
		}
	}
	return list
}

// next returns the next step: that of an alarm, or else what more rounds would show.
func (v *View) next() string {
	for _, f := range v.TopFindings() {
		if f.Severity == analysis.Error && f.Next != "" && !v.Run.Unpaired {
			return "Next: " + f.Next
		}
	}
	if v.Wanted == nil {
		return ""
	}
	command := "cnibench run --suite " + v.Run.Suite
	if v.Run.Arena == "kube" || v.Run.Arena == "microvm" {
		command += " --arena " + v.Run.Arena
	}
	text := v.Wanted.Text()
	return fmt.Sprintf("Next: %s: %s --rounds %d", strings.ToUpper(text[:1])+text[1:], command, v.Wanted.Rounds)
}

// AnswerColumns returns the headline's columns for the answer: those of the aspects
// Traffic and Typical.
func (v *View) AnswerColumns(g *Group) []Column {
	var out []Column
	for _, c := range Headline(g, v.Steps) {
		row, _ := result.LookupMetric(c.Metric)
		if row.Aspect == result.Traffic || row.Aspect == result.Typical {
			out = append(out, c)
		}
	}
	return out
}

// answer has the methods that make the sentences about single columns.
type answer struct{ *View }

// verdict says which contender is best in a column, and how the others compare.
func (v answer) verdict(g *Group, c Column) string {
	about := fmt.Sprintf("%s (%s)", c.Head(), v.StepName(c.Step))
	if !v.Usable(g, c) {
		return about + ": " + v.Unusable(g, c) + "."
	}
	var figures []*analysis.Result
	for _, one := range g.Contenders {
		if f := g.Figure(one.ID, c); f != nil && f.Ranked {
			figures = append(figures, f)
		}
	}
	slices.SortStableFunc(figures, byRank)
	if !slices.ContainsFunc(figures, func(f *analysis.Result) bool { return f.Contender != v.Baseline }) {
		return "" // nothing here is ranked
	}
	best := lettered(figures, "a")
	if len(best) == 0 {
		return about + ": " + v.byMedians(g, c, figures)
	}
	var names, rest []string
	var others []*analysis.Result
	baseIsBest := false
	for _, f := range figures {
		switch isBest := slices.Contains(best, f); {
		case f.Contender == v.Baseline:
			baseIsBest = isBest
		case isBest:
			names = append(names, f.Contender)
		default:
			others = append(others, f)
		}
	}
	switch {
	case baseIsBest && len(names) == 0:
		rest = append(rest, fmt.Sprintf("%s: nothing reaches %s", about, v.Baseline))
	case baseIsBest:
		rest = append(rest, fmt.Sprintf("%s: %s cannot be told apart from %s", about, few(names), v.Baseline))
	case len(names) == 1:
		rest = append(rest, fmt.Sprintf("%s: %s is best%s", about, names[0], v.ratioText(c, best)))
	default:
		rest = append(rest, fmt.Sprintf("%s: %s are best%s; the rounds cannot tell them apart", about, few(names), v.ratioText(c, best)))
	}
	return strings.Join(append(rest, v.byFamily(c, others, names)...), ". ") + "."
}

// byMedians says which contender has the best median, if there are too few rounds for
// groups.
func (v answer) byMedians(g *Group, c Column, figures []*analysis.Result) string {
	others := slices.DeleteFunc(slices.Clone(figures), func(f *analysis.Result) bool { return f.Contender == v.Baseline })
	taken, are := v.Taken(g, c), "are"
	if taken == 1 {
		are = "is"
	}
	s := fmt.Sprintf("not sure: %s %s too few to tell anyone apart. By the medians %s is first (%s)", unit.Plural(taken, "round"), are, others[0].Contender, Value(others[0]))
	return strings.Join(append([]string{s}, v.byFamily(c, others, nil)...), ". ") + "."
}

// byFamily returns the ratios of the others by family (see family), the best family first:
// "Routes 0.62–0.74 of host". A family of which contenders were named before is called
// "Other routes".
func (v answer) byFamily(c Column, others []*analysis.Result, named []string) []string {
	var order []string
	before := map[string]bool{}
	for _, contender := range named {
		before[v.family(contender)] = true
	}
	ratios := map[string][]float64{}
	for _, f := range others {
		if f.VsBaseline == nil {
			continue
		}
		family := v.family(f.Contender)
		if ratios[family] == nil {
			order = append(order, family)
		}
		ratios[family] = append(ratios[family], f.VsBaseline.Ratio)
	}
	var out []string
	for i, family := range order {
		s := family + " " + ratioSpan(ratios[family])
		if before[family] {
			s = "Other " + strings.Replace(s, "Routes", "routes", 1)
		}
		if i == 0 {
			s += v.ofBaseline(c)
		}
		out = append(out, s)
	}
	return out
}

// ratioText returns the ratios of the best contenders to the baseline in brackets; "" if
// they have none.
func (v answer) ratioText(c Column, best []*analysis.Result) string {
	var ratios []float64
	for _, f := range best {
		if f.VsBaseline != nil {
			ratios = append(ratios, f.VsBaseline.Ratio)
		}
	}
	if len(ratios) == 0 {
		return ""
	}
	return " (" + ratioSpan(ratios) + v.ofBaseline(c) + ")"
}

// ofBaseline returns the words after a ratio: "of host", or "times host's" if lower is
// better.
func (v answer) ofBaseline(c Column) string {
	if c.Better == result.Lower {
		return " times " + v.Baseline + "'s"
	}
	return " of " + v.Baseline
}

func ratioSpan(ratios []float64) string {
	low, high := unit.Ratio(slices.Min(ratios)), unit.Ratio(slices.Max(ratios))
	if low == high {
		return low
	}
	return low + "–" + high
}

// transports are the words for the ways in which pods' packets travel between nodes.
var transports = map[string]string{
	"routes": "Routes", "vpc-routes": "Routes", "vxlan": "VXLAN", "geneve": "Geneve", "ipip": "IPIP", "stt": "STT", "vlan": "VLAN",
	"tun-udp": "UDP tunnel", "wireguard": "WireGuard", "ipsec": "IPsec", "vpp": "VPP", "none": "No overlay", "mpls": "MPLS",
}

// family returns how a contender's packets travel between nodes: its encryption, or else
// its transport.
func (v answer) family(contender string) string {
	if kind := v.Capability(contender, "encryption"); kind != "" && kind != "no" && kind != "yes" {
		if words := transports[kind]; words != "" {
			return words
		}
		return kind
	}
	for _, info := range v.Contenders {
		if info.ID != contender {
			continue
		}
		parts := strings.Split(info.Datapath, " × ")
		if len(parts) == 1 && parts[0] != "" {
			return parts[0]
		}
		if len(parts) > 1 {
			if words := transports[parts[1]]; words != "" {
				return words
			}
			return parts[1]
		}
	}
	return "Others"
}

// Capability returns a contender's value for a need; "" if nothing is known.
func (v *View) Capability(contender, need string) string {
	for _, c := range v.Capabilities {
		if c.Contender == contender && c.Name == need {
			return c.Value
		}
	}
	return ""
}

// lettered returns the figures that are in the group with the letter.
func lettered(figures []*analysis.Result, letter string) []*analysis.Result {
	return slices.DeleteFunc(slices.Clone(figures), func(f *analysis.Result) bool { return !slices.Contains(f.Groups, letter) })
}

// few names at most maxNamed, and counts the others: "a, b, c, d and 5 more".
func few(names []string) string {
	if len(names) <= maxNamed+1 {
		return analysis.AndList(names)
	}
	return strings.Join(names[:maxNamed], ", ") + fmt.Sprintf(" and %d more", len(names)-maxNamed)
}

// Rounds returns the number of planned rounds of the part.
func (v *View) Rounds(part string) int {
	if part == "" {
		return v.Run.Rounds
	}
	return Origin(v.Report, part).Plan.Rounds
}

// Taken returns the number of rounds that the run took for a column: fewer than planned if
// the run was stopped or still goes on.
func (v *View) Taken(g *Group, c Column) int {
	n := 0
	for _, one := range g.Contenders {
		if f := g.Figure(one.ID, c); f != nil {
			n = max(n, f.Of)
		}
	}
	return cmp.Or(n, v.Rounds(g.Part)) // a report of an older version has no Of
}

// RoundsTaken returns "7 rounds", or "1 of 7 rounds" if the run was stopped or still goes on.
func (v *View) RoundsTaken() string {
	taken, words := 0, unit.Plural(v.Run.Rounds, "round")
	for i := range v.Results {
		if r := &v.Results[i]; r.Part == "" {
			taken = max(taken, r.Of)
		}
	}
	if taken > 0 && taken < v.Run.Rounds {
		return fmt.Sprintf("%d of %s", taken, words)
	}
	return words
}

// Usable says whether some contender has enough rounds for a ratio in the column. If the
// run itself has too few, every figure is usable.
func (v *View) Usable(g *Group, c Column) bool {
	all := v.Taken(g, c)
	for _, one := range g.Contenders {
		if f := g.Figure(one.ID, c); f != nil && (all < minPairs || !one.Baseline && f.N >= minPairs) {
			return true
		}
	}
	return false
}

// Unusable says why a column has no figures to show.
func (v *View) Unusable(g *Group, c Column) string {
	taken := v.Taken(g, c)
	low, high := taken, 0
	for _, one := range g.Contenders {
		n := 0
		if f := g.Figure(one.ID, c); f != nil {
			n = f.N
		}
		low, high = min(low, n), max(high, n)
	}
	valid := fmt.Sprint(low)
	if high > low {
		valid = fmt.Sprintf("%d to %d", low, high)
	}
	return fmt.Sprintf("not usable here, %s of %s valid", valid, unit.Plural(taken, "round"))
}

// StepName returns a step in words, such as "TCP, 1 stream", or its id.
func (v *View) StepName(id string) string {
	for _, s := range v.Steps {
		if s.ID == id && Describe(s) != "" {
			return strings.TrimSuffix(strings.TrimPrefix(Describe(s), "pod to pod, "), ", pod to pod")
		}
	}
	return id
}

// unusable is the smallest difference that a figure would miss from which the figure is not
// usable.
const unusable = 0.30

// precision says, for each of the headline's figures and for the tail, which differences
// the run would miss.
func (v *View) precision() string {
	var parts []string
	if n, all := dropped(v); n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d samples dropped", n, all))
	}
	for i := range v.Groups {
		g := &v.Groups[i]
		columns := Headline(g, v.Steps)
		for _, c := range Headline(g, v.Steps) {
			if row, _ := result.LookupMetric(c.Metric); row.Aspect == result.Typical { // the tail is not in the headline if it is not usable
				if tail := g.columns(c.Step, result.OfAspect(result.Tail)...); len(tail) > 0 && !slices.Contains(columns, tail[0]) {
					columns = append(columns, tail[0])
				}
			}
		}
		prefix := ""
		if len(v.Groups) > 1 {
			prefix = g.Title() + ", "
		}
		for _, c := range columns {
			if text := g.precisionOf(c); text != "" {
				parts = append(parts, prefix+c.Head()+": "+text)
			}
		}
	}
	if len(parts) == 0 {
		return "Precision: too few rounds to know it."
	}
	return "Precision: " + strings.Join(parts, "; ") + "."
}

// precisionOf says which differences of a typical contender to the baseline a column would
// miss in one of five runs; "" if the rounds are too few to know.
func (g *Group) precisionOf(c Column) string {
	var shown []float64
	for _, one := range g.Contenders {
		if f := g.Figure(one.ID, c); f != nil && f.Ranked && f.MDD != nil && f.VsBaseline != nil {
			shown = append(shown, *f.MDD)
		}
	}
	if len(shown) == 0 {
		return ""
	}
	slices.Sort(shown)
	if middle := shown[len(shown)/2]; middle < unusable {
		return "differences under " + wholePercent(middle) + " would be missed"
	}
	return "not usable here"
}

// wholePercent returns a share as a per cent rounded up, such as "11 %".
func wholePercent(share float64) string { return fmt.Sprintf("%.0f %%", math.Ceil(100*share-1e-9)) }

// dropped returns the number of invalid samples, and of all samples.
func dropped(v *View) (dropped, all int) {
	for _, m := range v.Marks {
		if m.Dropped != "" {
			dropped++
		}
	}
	return dropped, len(v.Marks)
}

// AdviceLines returns a line each for the choice without needs, with policy, and with
// encryption; nil if nothing could be scored.
func (v *View) AdviceLines() []string {
	rec := v.Recommendation
	if rec == nil {
		return nil
	}
	if len(rec.Ranked) == 0 {
		return []string{"No choice yet: " + FirmnessText(rec) + "."}
	}
	lines := []string{"Best by " + Weighed(rec) + ": " + FirmnessText(rec) + "."}
	for _, need := range []struct{ name, words string }{{"policy", "With NetworkPolicy"}, {"encryption", "Encrypted"}} {
		lacks := func(contender string) bool {
			has := v.Capability(contender, need.name)
			return has == "" || has == "no"
		}
		i := slices.IndexFunc(rec.Ranked, func(c analysis.Choice) bool { return !lacks(c.Contender) })
		switch {
		case i < 0:
			lines = append(lines, need.words+": no contender of this run has it.")
		case i == 0:
			alike := slices.DeleteFunc(slices.Clone(rec.Alike), lacks)
			if len(alike) == 0 {
				alike = []string{rec.Ranked[0].Contender}
			}
			lines = append(lines, need.words+": "+analysis.AndList(alike)+", too.")
		default:
			c := rec.Ranked[i]
			lines = append(lines, fmt.Sprintf("%s: %s, with a score of %s where %s has %s and %s has 1.", need.words, c.Contender,
				unit.Ratio(c.Score), rec.Ranked[0].Contender, unit.Ratio(rec.Ranked[0].Score), rec.Baseline))
		}
	}
	return lines
}
