package layout

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file makes the answer at the begin of a report: which contender is best, whether
// that is sure, and what to do next. It only counts and chooses words; figures and letters
// come from package analysis. A Group is the contenders of one kernel and underlay, and not
// those that share a letter.

const (
	minPairs = 3 // a ratio from fewer pairs is not shown
	maxNamed = 5 // parts of a list in a sentence; "and 5 more" is one of them
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
		if s := (answer{v}).alone(g); s != "" {
			sentences = append(sentences, prefix+s)
			continue
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
	if !v.Run.Unpaired {
		sentences = append(sentences, v.precision())
	}
	if next := v.next(); next != "" {
		sentences = append(sentences, next)
	}
	return sentences
}

// FirstScreen returns the sentences with which a report begins, in the order in which a reader
// asks: what must not be overlooked, what to choose, and the figures.
func (v *View) FirstScreen() []string {
	answer, advice := v.Answer(), v.AdviceLines()
	if !v.Chosen() {
		return append(answer, advice...)
	}
	behind := min(len(v.alarms()), len(answer)) // an answer without groups has no alarms
	return slices.Insert(answer, behind, advice...)
}

// Title returns the report's verdict in a line: whom the choice names, or else which contender
// has the best figure.
func (v *View) Title() string {
	if v.Chosen() {
		rec := v.Recommendation
		return bestBy(rec) + OrList(text.Shorten(nameCandidates(rec), maxNamed))
	}
	for i := range v.Groups {
		for _, c := range v.AnswerColumns(&v.Groups[i]) {
			if s := (answer{v}).verdict(&v.Groups[i], c); s != "" {
				first, _, _ := strings.Cut(s, ". ")
				return strings.Replace(strings.TrimSuffix(first, "."), ": fastest:", ", fastest:", 1) // two colons are one too many
			}
		}
	}
	return "Suite " + v.Run.Suite + " against " + v.Baseline
}

// Chosen says whether the rounds give a choice between contenders.
func (v *View) Chosen() bool {
	rec := v.Recommendation
	return rec != nil && len(rec.Ranked) > 0 && rec.Firmness != analysis.Alone && rec.Firmness != analysis.Untested
}

// alarms returns a sentence for each finding that must not be overlooked, although the answer's
// columns may not show it: steps that collapsed, and full connection tracking tables.
func (v *View) alarms() []string {
	var list []string
	for _, f := range v.TopFindings() {
		if f.Code == "step_collapsed" || f.Code == "conntrack_full" {
			list = append(list, strings.TrimSuffix(FindingLine(&f), ".")+".")
		}
	}
	return list
}

// next returns the next step: that of the gravest error that has one (not in an unpaired run), or
// else what more rounds would show.
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
	others := slices.DeleteFunc(slices.Clone(figures), v.isHost)
	if len(others) == 1 {
		s, _ := v.single(g, c, others[0])
		return about + ": " + s + "."
	}
	best := selectLetter(others, "a")
	if len(best) == 0 {
		return about + ": " + v.byMedians(g, c, figures)
	}
	var names, equal, worse, sentences []string // names, equal and worse are of the best
	var behind []*analysis.Result
	for _, f := range others {
		if !slices.Contains(best, f) {
			behind = append(behind, f)
			continue
		}
		names = append(names, f.Contender)
		switch {
		case f.VsBaseline != nil && f.VsBaseline.CI != nil && SideOfBaseline(f) == "":
			equal = append(equal, f.Contender)
		case SideOfBaseline(f) == "worse":
			worse = append(worse, f.Contender)
		}
	}
	switch {
	case len(names) == 1:
		sentences = append(sentences, fmt.Sprintf("%s: %s is best%s", about, names[0]+v.bare(names[0]), v.ratioText(c, best)))
	default:
		sentences = append(sentences, fmt.Sprintf("%s: %s are best%s; the rounds cannot tell them apart", about, few(names), v.ratioText(c, best)))
	}
	switch {
	case len(equal) == len(names):
		sentences = append(sentences, "No difference from "+v.Baseline+" was found")
	case len(equal) > 0:
		sentences = append(sentences, fmt.Sprintf("No difference of %s from %s was found", few(equal), v.Baseline))
	case len(worse) == len(names):
		sentences = append(sentences, "Nothing reaches "+v.Baseline)
	}
	if products := v.bestProducts(behind); len(names) == 1 && v.bare(names[0]) != "" && len(products) > 0 {
		var best []string
		for _, f := range products {
			best = append(best, f.Contender)
		}
		verb := "is"
		if len(best) > 1 {
			verb = "are"
		}
		sentences = append(sentences, fmt.Sprintf("Of the products %s %s best%s", few(best), verb, v.ratioText(c, products)))
	}
	return strings.Join(append(sentences, v.byFamily(c, behind, names)...), ". ") + "."
}

// bestBy returns "Best by capacity and latency together: ": one score, and not each by itself.
func bestBy(rec *analysis.Recommendation) string {
	names := NameCriteria(rec)
	if strings.Contains(names, " and ") {
		names += " together"
	}
	return "Best by " + names + ": "
}

// bestProducts returns the best of the figures, best first, that are of products for clusters.
func (v answer) bestProducts(figures []*analysis.Result) []*analysis.Result {
	products := slices.DeleteFunc(slices.Clone(figures), func(f *analysis.Result) bool { return v.bare(f.Contender) != "" })
	if len(products) == 0 || len(products[0].Letters) == 0 {
		return nil
	}
	return selectLetter(products, products[0].Letters[0])
}

// bare returns what follows the name of a contender that is no product for clusters; "" for a
// product.
func (v answer) bare(contender string) string {
	if slices.ContainsFunc(v.Contenders, func(c result.ContenderInfo) bool { return c.ID == contender && c.Product == "kernel" }) {
		return ", a bare datapath and no product,"
	}
	return ""
}

// isHost says whether the figure is of the host network, which nobody can choose. Another
// baseline, as an imported run may name, is a pod network.
func (v answer) isHost(f *analysis.Result) bool {
	return f.Contender == v.Baseline && v.Baseline == "host"
}

// byMedians describes a column whose rounds are too few for letters: the contenders whose medians
// are not further from the best than chance explains (Spread.Different), or the best median
// alone if that is unknown or too much. It wants two or more contenders beside the host network.
func (v answer) byMedians(g *Group, c Column, figures []*analysis.Result) string {
	others := slices.DeleteFunc(slices.Clone(figures), v.isHost)
	taken := v.CountRounds(g, c)
	spread := v.spreadOf(g, c)
	if spread == nil || spread.Different > maxDifferent {
		return strings.Join(append([]string{fmt.Sprintf("%s can't tell contenders apart; %s has the best median (%s)", unit.Plural(taken, "round"), others[0].Contender, Value(others[0]))}, v.byFamily(c, others, nil)...), ". ") + "."
	}
	near := func(list []*analysis.Result) (names []string, first *analysis.Result) { // those like the first, by rank
		for _, f := range list {
			if math.Abs(math.Log(f.Median/list[0].Median)) <= math.Log1p(spread.Different) {
				names = append(names, f.Contender)
			}
		}
		return names, list[0]
	}
	word := "Best"
	if c.Metric == result.Goodput || c.Metric == result.Rate {
		word = "Fastest"
	}
	names, first := near(others)
	s := fmt.Sprintf("%s: %s (%s%s)", strings.ToLower(word), few(names), Value(first), v.shareOf(first, c))
	encrypted := slices.DeleteFunc(slices.Clone(others), func(f *analysis.Result) bool {
		kind := v.Capability(f.Contender, "encryption")
		return kind == "" || kind == "no"
	})
	if len(encrypted) > 0 && len(encrypted) < len(others) {
		names, firstEncrypted := near(encrypted)
		s += fmt.Sprintf(". %s encrypted: %s (%s%s)", word, few(names), Value(firstEncrypted), v.shareOf(firstEncrypted, c))
		if cost := 1 - firstEncrypted.Median/first.Median; c.Better == result.Higher && cost > 0 {
			s += fmt.Sprintf("; encryption costs %.0f %%", 100*cost)
		}
	}
	if spread.Different < 0.0005 {
		return s + fmt.Sprintf(". %s each, which are alike.", unit.Plural(taken, "round"))
	}
	return s + fmt.Sprintf(". %s each: runs of one configuration differ by %.0f %%, differences under %s mean nothing.", unit.Plural(taken, "round"), 100*spread.Within, wholePercent(spread.Different))
}

// shareOf returns ", 71 % of host", or ", 1.25 times host's" if lower is better; "" without a
// ratio.
func (v answer) shareOf(f *analysis.Result, c Column) string {
	if f.VsBaseline == nil {
		return ""
	}
	if c.Better == result.Lower {
		return ", " + unit.Ratio(f.VsBaseline.Ratio) + v.ofBaseline(c)
	}
	return fmt.Sprintf(", %.0f %%%s", 100*f.VsBaseline.Ratio, v.ofBaseline(c))
}

// spreadOf returns what runs of one configuration differ by in a column; nil if unknown.
func (v *View) spreadOf(g *Group, c Column) *analysis.Spread {
	for i := range v.Spreads {
		if s := &v.Spreads[i]; s.Step == c.Step && s.Metric == c.Metric && s.Kernel == g.Kernel && s.Underlay == g.Underlay {
			return s
		}
	}
	return nil
}

// byFamily returns the ratios of the others by family (see family), the best family first:
// "Routes 0.62–0.74 of host". A family of which contenders were named before is called
// "Other routes". A family without any ratio is left out.
func (v answer) byFamily(c Column, others []*analysis.Result, namedBefore []string) []string {
	var order []string // of the families with ratios
	before := map[string]bool{}
	for _, contender := range namedBefore {
		before[v.family(contender)] = true
	}
	ratios, without := map[string][]float64{}, map[string][]string{} // without: contenders that have none
	for _, f := range others {
		family := v.family(f.Contender)
		if f.VsBaseline == nil {
			without[family] = append(without[family], f.Contender)
			continue
		}
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
		if names := without[family]; len(names) > 0 {
			s += fmt.Sprintf(" (without %s: too few rounds for a ratio)", few(names))
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

// transports are the words for the ways in which pods' packets travel between nodes, by the
// catalogue's transports and kinds of encryption.
var transports = map[string]string{
	"routes": "Routes", "vpc-routes": "Routes", "vxlan": "VXLAN", "geneve": "Geneve", "ipip": "IPIP", "stt": "STT", "vlan": "VLAN",
	"tun-udp": "UDP tunnel", "wireguard": "WireGuard", "ipsec": "IPsec", "vpp": "VPP", "none": "No overlay", "mpls": "MPLS",
}

// family returns how a contender's packets travel between nodes: its encryption if the kind is
// known, or else its transport, the second part of "ptp × vxlan". A datapath of one part is
// taken as it is.
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

// selectLetter returns the figures that are in the group with the letter.
func selectLetter(figures []*analysis.Result, letter string) []*analysis.Result {
	return slices.DeleteFunc(slices.Clone(figures), func(f *analysis.Result) bool { return !slices.Contains(f.Letters, letter) })
}

// few joins at most maxNamed names, and counts the others: "a, b, c, d and 5 more".
func few(names []string) string { return analysis.AndList(text.Shorten(names, maxNamed)) }

// CountRounds returns the number of rounds that the run took for a column: fewer than planned if
// the run was stopped or still goes on.
func (v *View) CountRounds(g *Group, c Column) int {
	n := 0
	for _, one := range g.Contenders {
		if f := g.Figure(one.ID, c); f != nil {
			n = max(n, f.Of)
		}
	}
	return cmp.Or(n, v.Run.Rounds) // a report of an older version has no Of
}

// RoundsTaken returns "7 rounds", or "1 of 7 rounds" if the run was stopped or still goes on.
func (v *View) RoundsTaken() string {
	taken, words := 0, unit.Plural(v.Run.Rounds, "round")
	for i := range v.Results {
		taken = max(taken, v.Results[i].Of)
	}
	if taken > 0 && taken < v.Run.Rounds {
		return fmt.Sprintf("%d of %s", taken, words)
	}
	return words
}

// Usable says whether some contender has enough rounds for a ratio in the column. If the
// run itself has too few, any figure will do: there are no ratios to be missed.
func (v *View) Usable(g *Group, c Column) bool {
	all := v.CountRounds(g, c)
	for _, one := range g.Contenders {
		if f := g.Figure(one.ID, c); f != nil && (all < minPairs || !one.Baseline && f.N >= minPairs) {
			return true
		}
	}
	return false
}

// Unusable says why a column has no figures to show.
func (v *View) Unusable(g *Group, c Column) string {
	taken := v.CountRounds(g, c)
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
			return withRate(s, strings.TrimSuffix(strings.TrimPrefix(Describe(s), "pod to pod, "), ", pod to pod"))
		}
	}
	return id
}

// unusable is a share: a figure that would miss a difference as large as this is called not
// usable.
const unusable = 0.30

// precision says, for each of the headline's figures and for the tail, which differences
// the run would miss.
func (v *View) precision() string {
	var parts []string
	if n, all := countDropped(v); n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d samples dropped", n, all))
	}
	for i := range v.Groups {
		g := &v.Groups[i]
		columns := Headline(g, v.Steps)
		for _, c := range Headline(g, v.Steps) { // adds the tail where the headline lacks it, since it is not usable
			if row, _ := result.LookupMetric(c.Metric); row.Aspect == result.Typical {
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

// maxDifferent is the largest Spread.Different with which medians are compared. With a larger one
// a contender would need more than twice the figure of another to differ from it.
const maxDifferent = 1

// wholePercent returns a share as a per cent rounded up, such as "11 %". What it takes away keeps
// 0.07, which times 100 is a little above 7, from becoming 8 %.
func wholePercent(share float64) string { return fmt.Sprintf("%.0f %%", math.Ceil(100*share-1e-9)) }

// shareOfRate matches what a suite says of a rate that a run has found.
var shareOfRate = regexp.MustCompile(`\d+ % of the highest sustained rate`)

// withRate returns the words of a step with the rate that the run took in place of the share
// that the suite asks for.
func withRate(s result.Step, words string) string {
	rate, known := s.Params[result.RateParam].(float64)
	if n, isInt := s.Params[result.RateParam].(int); isInt {
		rate, known = float64(n), true
	}
	if !known || rate <= 0 {
		return words
	}
	return shareOfRate.ReplaceAllString(words, fmt.Sprintf("%.0f requests/s, the same for all", rate))
}

// countDropped returns the number of invalid samples, and of all samples.
func countDropped(v *View) (invalid, all int) {
	for _, m := range v.Marks {
		if m.Dropped != "" {
			invalid++
		}
	}
	return invalid, len(v.Marks)
}

// AdviceLines returns the choice and what limits it, then a line each for the choice with policy
// and with encryption. It is nil without a recommendation, and with a single contender unless
// needs of the user left only that. Of rounds too few for a test it has the memory alone.
func (v *View) AdviceLines() []string {
	rec := v.Recommendation
	if rec == nil {
		return nil
	}
	if len(rec.Ranked) == 0 {
		return []string{"No choice yet: " + FirmnessText(rec) + "."}
	}
	switch rec.Firmness {
	case analysis.Alone:
		if len(rec.Needs) <= len(analysis.AlwaysNeeded()) {
			return nil // one contender is no choice, unless the user's needs made it one
		}
	case analysis.Untested:
		return v.minMemory() // the answer says what so few rounds can tell
	}
	lines := []string{bestBy(rec) + FirmnessText(rec) + "."}
	for _, note := range rec.Notes {
		if strings.Contains(note, "left out") {
			metric, rest, _ := strings.Cut(note, " ")
			lines = append(lines, MetricLabel(metric)+" "+rest+".")
		}
	}
	if rec.Elsewhere != "" {
		lines = append(lines, rec.Elsewhere)
	}
	for _, name := range nameCandidates(rec)[:min(len(nameCandidates(rec)), maxNamed)] {
		lines = append(lines, v.heldLine(name)...)
	}
	for _, need := range []struct{ scenario, need, words, remedy string }{
		{"policies", "policy", "With NetworkPolicy", ""},
		{"encryption", "encryption", "Encrypted", ": add cilium-wg or calico-wg (--contenders; with --arena microvm where the kernel lacks WireGuard)"},
	} {
		at := slices.IndexFunc(v.Advice, func(a analysis.Advice) bool { return a.Scenario == need.scenario && a.Measured() })
		switch {
		case at < 0 || !v.someKnown(need.need):
			continue // nobody looked
		case len(v.Advice[at].Recommendation.Ranked) == 0:
			lines = append(lines, need.words+": not measured; no contender of this run has it"+need.remedy+".")
		case slices.Equal(nameCandidates(v.Advice[at].Recommendation), nameCandidates(rec)):
			lines = append(lines, need.words+": "+analysis.AndList(nameCandidates(rec))+", too.")
		case need.need == "encryption":
			lines = append(lines, need.words+": "+FirmnessText(v.Advice[at].Recommendation)+v.costOf(v.Advice[at].Recommendation.Ranked[0].Contender, rec.Ranked[0].Contender)+".")
		default:
			lines = append(lines, need.words+": "+FirmnessText(v.Advice[at].Recommendation)+".")
		}
	}
	return lines
}

// costOf says what share of the first choice's goodput the first encrypted contender lacks; "" if
// it lacks none, or nothing was measured.
func (v *View) costOf(encrypted, first string) string {
	for i := range v.Groups {
		g := &v.Groups[i]
		for _, c := range v.AnswerColumns(g) {
			e, f := g.Figure(encrypted, c), g.Figure(first, c)
			if c.Metric == result.Goodput && e != nil && f != nil && 0 < e.Median && e.Median < f.Median {
				return fmt.Sprintf("; encryption costs %.0f %% of the goodput (%s of %s)", 100*(1-e.Median/f.Median), outOf(Value(e), Value(f)), first)
			}
		}
	}
	return ""
}

// someKnown reports whether anything is known about the need for any ranked contender of the
// recommendation.
func (v *View) someKnown(need string) bool {
	return slices.ContainsFunc(v.Recommendation.Ranked, func(c analysis.Choice) bool { return v.Capability(c.Contender, need) != "" })
}

// HeldNote explains the mark of a contender that is not Held.
const HeldNote = "A lab form that nobody has compared with the product yet."

// Held says whether a contender needs no mark: it is no lab form that nobody has compared with
// its product. A form of the kernel's own datapath has no product to be compared with.
func (v *View) Held(contender string) bool {
	return !slices.ContainsFunc(v.Contenders, func(c result.ContenderInfo) bool { return c.ID == contender && c.Held == "no" && c.Product != "kernel" })
}

// heldLine returns the line for a contender that is not Held; nil for any other.
func (v *View) heldLine(contender string) []string {
	if v.Held(contender) {
		return nil
	}
	return []string{contender + ": a lab form that nobody has compared with the product yet."}
}

// minMemory returns a line with up to three contenders whose idle nodes use the least memory, at
// the first step that measured it; nil if fewer than two were measured.
func (v *View) minMemory() []string {
	for i := range v.Groups {
		g := &v.Groups[i]
		for _, s := range v.Steps {
			c, has := g.Has(s.ID, result.MemoryOverhead)
			if !has {
				continue
			}
			var list []*analysis.Result
			for _, one := range g.Contenders {
				if f := g.Figure(one.ID, c); f != nil && !one.Baseline && f.Median > 0 {
					list = append(list, f)
				}
			}
			slices.SortStableFunc(list, func(a, b *analysis.Result) int { return cmp.Compare(a.Median, b.Median) })
			if len(list) < 2 {
				continue
			}
			var names []string
			for _, f := range list[:min(len(list), 3)] {
				names = append(names, f.Contender+" "+Value(f))
			}
			return []string{"Least memory over " + v.Baseline + ", idle: " + strings.Join(names, ", ") + "."}
		}
	}
	return nil
}
