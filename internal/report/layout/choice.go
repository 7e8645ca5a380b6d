package layout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/unit"
)

// This file puts a recommendation into words.

// FirmnessText returns the outcome in one sentence.
func FirmnessText(r *analysis.Recommendation) string {
	if len(r.Ranked) == 0 {
		return "none of the measured contenders meets every need and has every figure"
	}
	first := r.Ranked[0]
	switch r.Firmness {
	case analysis.Alike:
		return analysis.AndList(r.Alike) + ": as good as each other"
	case analysis.Firm:
		if i := slices.IndexFunc(first.Terms, func(t analysis.Term) bool { return t.CI == nil }); i >= 0 {
			return fmt.Sprintf("%s, but its %s has too few rounds for an interval", first.Contender, first.Terms[i].Criterion)
		}
		return first.Contender + ", and firmly"
	case analysis.Leaning:
		return fmt.Sprintf("leaning to %s, %s follows", first.Contender, r.Ranked[1].Contender)
	case analysis.TossUp:
		return OrList(nameCandidates(r)) + ": these rounds cannot tell. Take the one you know"
	case analysis.Alone:
		if len(r.Needs) <= len(analysis.AlwaysNeeded()) {
			return "nothing to choose: " + first.Contender + " alone was measured"
		}
		return first.Contender + ", the only measured product that meets every need"
	}
	if len(r.Alike) > 1 {
		return OrList(r.Alike) + ": these rounds are too few to tell"
	}
	return first.Contender + ", but the rounds are too few to be sure"
}

// nameCandidates returns the contenders between which a recommendation leaves the choice: the first
// alone if it is sure.
func nameCandidates(r *analysis.Recommendation) []string {
	switch {
	case len(r.Ranked) == 0:
		return nil
	case len(r.Alike) > 1 && r.Firmness != analysis.Firm:
		return r.Alike
	case len(r.Ranked) > 1 && (r.Firmness == analysis.TossUp || r.Firmness == analysis.Leaning):
		return []string{r.Ranked[0].Contender, r.Ranked[1].Contender}
	}
	return []string{r.Ranked[0].Contender}
}

// OrList joins words with commas and a last "or".
func OrList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// needWords are short texts of needs for the decision picture. Other needs are called by
// their names.
var needWords = map[string]string{
	"policy":          "policies on ingress",
	"egress-policy":   "policies on egress",
	"l7":              "layer-7 policies",
	"key-rotation":    "new keys while it runs",
	"kube-proxy-free": "Services without kube-proxy",
	"ipv6":            "IPv6",
	"observability":   "a view of what flows",
	"jumbo-auto":      "automatic MTU",
	"low-memory":      "little memory",
}

// NeedWords returns the need in words.
func NeedWords(name string) string { return cmp.Or(needWords[name], name) }

// NameCriteria returns the criteria of the choice: "capacity and memory".
func NameCriteria(r *analysis.Recommendation) string {
	var names []string
	for _, w := range r.Weights {
		if !slices.Contains(r.Ignored, w.Criterion) {
			names = append(names, w.Criterion)
		}
	}
	return analysis.AndList(names)
}

// ListTitle says where the contenders of a list were measured.
func ListTitle(r *analysis.Recommendation) string {
	return (&Group{Site: Site{Kernel: r.Kernel, Underlay: r.Underlay}, Emulated: r.Emulated}).Title()
}

// RecommendLegend says how to read the list.
func RecommendLegend(r *analysis.Recommendation) []string {
	var weights []string
	for _, w := range r.Weights {
		weights = append(weights, fmt.Sprintf("%s=%g", w.Criterion, w.Weight))
	}
	lines := []string{
		fmt.Sprintf("Each figure is the ratio to %s, turned so that more is better; the score is their geometric mean, weighted %s.", r.Baseline, strings.Join(weights, ", ")),
	}
	if r.Firmness != analysis.Untested {
		lines = append(lines, fmt.Sprintf("In brackets the interval of %s confidence.", unit.FormatPercent(r.Confidence)))
	}
	return append(lines, "The score knows only these rounds: on another machine the choice may be another one.")
}

// NameNeeds returns the needs without those that are always asked for.
func NameNeeds(r *analysis.Recommendation) string {
	needs := slices.DeleteFunc(slices.Clone(r.Needs), func(n string) bool { return slices.Contains(analysis.AlwaysNeeded(), n) })
	if len(needs) == 0 {
		return "nothing (choose with --need)"
	}
	return strings.Join(needs, ", ")
}

// AdviceText returns the advice for a scenario in a sentence: the choice, or what to run.
func AdviceText(a *analysis.Advice) string {
	r := a.Recommendation
	switch {
	case !a.Measured():
		return "no figures of " + analysis.AndList(a.Chief) + " in this run; to measure them: cnibench run " + a.Run
	case len(r.Ranked) == 0 && len(r.Others) == 0:
		return FirmnessText(r) + "; add contenders that do: cnibench list contenders names them"
	case len(r.Ignored) > 0:
		return FirmnessText(r) + "; without " + analysis.AndList(r.Ignored) + ", of which the run has no figures"
	}
	return FirmnessText(r)
}

// Losses is a group of contenders that were ruled out by the same need, or for the same
// reason.
type Losses struct {
	Need       string
	Reason     string // "" if each contender has its own, which follows its name
	Contenders []string
}

// GroupLosses groups losses by need and source. Losses by the catalogue or without a need
// are also grouped by reason.
func GroupLosses(list []analysis.Loss) []Losses {
	var order []analysis.Loss // the first of each group
	groups := map[int][]analysis.Loss{}
	for _, l := range list {
		i := slices.IndexFunc(order, func(o analysis.Loss) bool {
			return o.Need == l.Need && o.Source == l.Source && (l.Source != "catalogue" && l.Need != "" || o.Reason == l.Reason)
		})
		if i < 0 {
			order = append(order, l)
			i = len(order) - 1
		}
		groups[i] = append(groups[i], l)
	}
	var out []Losses
	for i, first := range order {
		g := Losses{Need: first.Need, Reason: first.Reason}
		if slices.ContainsFunc(groups[i], func(l analysis.Loss) bool { return l.Reason != first.Reason }) {
			g.Reason = ""
		}
		for _, l := range groups[i] {
			name := l.Contender
			if g.Reason == "" {
				name += " (" + l.Reason + ")"
			}
			g.Contenders = append(g.Contenders, name)
		}
		out = append(out, g)
	}
	return out
}

// Head returns the need and the reason.
func (l Losses) Head() string {
	switch {
	case l.Need == "":
		return l.Reason
	case l.Reason == "":
		return l.Need
	}
	return l.Need + ": " + l.Reason
}

// WithInterval returns a ratio with its interval in words.
func WithInterval(ratio float64, ci *analysis.Interval) string {
	return Comparison(&analysis.Comparison{Ratio: ratio, CI: ci})
}
