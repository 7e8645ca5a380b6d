// Package recommend orders the contenders of a run for given needs and
// weights. It reads the evidence of one run and the catalogue's capabilities.
// Next: recommend.go, then criteria.go.
package recommend

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// Wish is the question that a recommendation answers.
type Wish struct {
	analysis.Options
	Catalogue []analysis.Capability // the catalogue's capabilities, in its order
	Needs     []string              // names of Needs, in addition to analysis.AlwaysNeeded
	Weights   []analysis.Weight     // instead of the criteria's default weights
	Resamples int                   // 0 is 1000
}

const (
	defaultResamples = 1000

	// firmAlpha is the largest chance that one of equal contenders is called Firm, and
	// leaningAlpha that it is called Firm or Leaning.
	firmAlpha    = 0.05
	leaningAlpha = 0.20

	// asGood is the share of the best score from which a score counts as equally good: a
	// smaller difference is no reason to choose.
	asGood = 0.98
)

// Choose orders the contenders that meet every need by the weighted geometric mean of their
// ratios to the baseline, and tests how sure the first place is. The same run and wish give
// the same answer. It returns nil if the run has no figure for a score.
func Choose(rec *result.Record, wish Wish) *analysis.Recommendation {
	c := chooser{wish: wish, e: analysis.Collect(withoutHistograms(rec), wish.Complete(&rec.Run.Plan)), weights: weightsOf(wish.Weights)}
	c.needs = append(slices.Clone(wish.Needs), analysis.AlwaysNeeded()...)
	slices.Sort(c.needs)
	c.needs = slices.Compact(c.needs)
	c.capabilities = Capabilities(rec, wish.Catalogue)
	if slices.Contains(c.needs, "low-memory") {
		c.capabilities = append(c.capabilities, memoryCapabilities(c.e)...)
	}

	var lists []analysis.Recommendation
	for _, g := range c.e.Sets {
		if gauges := gauges(c.e, g, c.weights); len(gauges) > 0 {
			lists = append(lists, c.list(g, gauges))
		}
	}
	if len(lists) == 0 {
		return nil
	}
	slices.SortStableFunc(lists, func(a, b analysis.Recommendation) int { return cmp.Compare(len(b.Ranked), len(a.Ranked)) })
	first := lists[0]
	first.Others = lists[1:]
	c.addLosses(&first)
	return &first
}

// withoutHistograms returns the record without histograms. A recommendation needs only the
// figures of single rounds, and merging histograms would be most of its work.
func withoutHistograms(rec *result.Record) *result.Record {
	lean := *rec
	lean.Samples = slices.Clone(rec.Samples)
	for i := range lean.Samples {
		lean.Samples[i].Histograms = nil
	}
	return &lean
}

// weightsOf returns the weights of all criteria.
func weightsOf(asked []analysis.Weight) []analysis.Weight {
	var list []analysis.Weight
	for _, c := range Criteria() {
		w := analysis.Weight{Criterion: c.Name, Weight: c.Weight}
		for _, a := range asked {
			if a.Criterion == c.Name {
				w.Weight = a.Weight
			}
		}
		list = append(list, w)
	}
	return list
}

// chooser is a recommendation while it is made.
type chooser struct {
	wish         Wish
	e            *analysis.Evidence
	needs        []string
	weights      []analysis.Weight // of all criteria
	capabilities []analysis.Capability
	seen         map[string]bool // contenders that were judged in a group
	lost         []analysis.Loss // Recommendation.Lost
	unknown      []analysis.Loss // Recommendation.Unknown
}

// list ranks the contenders of one group.
func (c *chooser) list(g analysis.ComparableSet, gauges []gauge) analysis.Recommendation {
	r := analysis.Recommendation{
		Schema: analysis.RecommendSchema, Run: c.e.Run.ID, Baseline: c.e.Run.Baseline, Kernel: g.Kernel, Underlay: g.Underlay, Emulated: c.e.Run.Environment.Emulated(),
		Needs: c.needs, Weights: []analysis.Weight{}, Confidence: c.e.Opt.Confidence, Ranked: []analysis.Choice{}, Lost: []analysis.Loss{}, Unknown: []analysis.Loss{}, Notes: []string{},
		Alike: []string{}, Ignored: []string{},
	}
	for _, at := range c.uncertainFigures(g) {
		r.Notes = append(r.Notes, fmt.Sprintf("%s at %s left out: its intervals are too wide", at.Metric, at.Step))
	}
	present := map[int]bool{}
	for _, x := range gauges {
		present[x.criterion] = true
	}
	var criteria []int
	for i, criterion := range Criteria() {
		switch {
		case c.weights[i].Weight == 0:
		case present[i] || criterion.takes == nil:
			criteria = append(criteria, i)
			r.Weights = append(r.Weights, c.weights[i])
		default:
			if c.asked(criterion.Name) {
				r.Ignored = append(r.Ignored, criterion.Name)
			}
			r.Notes = append(r.Notes, fmt.Sprintf("%s does not count: the run has no figure of it; suites that have: %s", criterion.Name, criterion.Suite))
		}
	}
	candidates := c.candidates(g, gauges)
	r.Firmness = analysis.Nobody
	tooFew := ""
	if len(candidates) > 0 {
		tooFew = c.rank(g, &r, gauges, candidates, criteria, rand.New(rand.NewPCG(c.e.Run.Plan.Seed, uint64(len(g.Kernel)))))
	}
	if c.e.Unpaired() && len(r.Ranked) > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("the contenders were not measured beside %s: each ratio is that over all pairs of rounds", r.Baseline))
	}
	if r.Firmness == analysis.Untested {
		r.Notes = append(r.Notes, fmt.Sprintf("%s can't tell how firm the order is; %d can (--rounds)", tooFew, stat.NeedsForInterval(c.e.Opt.Confidence)))
	}
	for i := range r.Ranked {
		r.Ranked[i].Reasons = c.reasons(r.Ranked, i)
	}
	return r
}

// uncertainFigures returns the places of the group whose figures are too uncertain to count.
func (c *chooser) uncertainFigures(g analysis.ComparableSet) []analysis.FigureKey {
	var list []analysis.FigureKey
	for _, at := range c.e.Keys {
		if at.ComparableSet == g && (isLatency(c.e, at) || at.Row().Aspect == result.Tail) && at.Row().Clock == findRankedClock(c.e, at) && !usable(c.e, at) {
			list = append(list, at)
		}
	}
	return list
}

// asked says whether the user gave the criterion a weight.
func (c *chooser) asked(criterion string) bool {
	return slices.ContainsFunc(c.wish.Weights, func(w analysis.Weight) bool { return w.Criterion == criterion && w.Weight > 0 })
}

// meaningless returns the largest relative difference that rounds of one contender give by
// chance in a figure that counts; 0 where the rounds are enough for a test.
func (c *chooser) meaningless(g analysis.ComparableSet, gauges []gauge) float64 {
	minimum := 0.0
	for _, s := range c.e.Spreads() {
		if s.Kernel == g.Kernel && s.Underlay == g.Underlay && slices.ContainsFunc(gauges, func(x gauge) bool { return x.Step == s.Step && x.Metric == s.Metric }) {
			minimum = max(minimum, s.Different)
		}
	}
	return minimum
}

// selectAlike returns the first contender and those whose score is at least the share of its; empty if
// there are no others.
func selectAlike(ranked []analysis.Choice, share float64) []string {
	names := []string{}
	for _, c := range ranked {
		if c.Score >= share*ranked[0].Score {
			names = append(names, c.Contender)
		}
	}
	if len(names) < 2 {
		return []string{}
	}
	return names
}

// rank sets the choices and the firmness of r. It returns which rounds are too few if the
// firmness is Untested.
func (c *chooser) rank(g analysis.ComparableSet, r *analysis.Recommendation, gauges []gauge, candidates []string, criteria []int, rng *rand.Rand) (tooFew string) {
	s := scoresOf(gauges, c.e.Run.Baseline, candidates, criteria, c.weights, c.e.Opt.Confidence, c.e.Autocorrelation[g].Inflation())
	ranked, order := s.rank(candidates, c.weights)
	r.Ranked, r.Resamples, r.Alike = ranked, cmp.Or(c.wish.Resamples, defaultResamples), selectAlike(ranked, asGood)
	if len(ranked) > 1 && !s.enough() {
		r.Alike = selectAlike(ranked, min(asGood, 1/(1+c.meaningless(g, gauges))))
	}
	switch {
	case len(ranked) == 1:
		r.Firmness = analysis.Alone
	case !s.enough():
		r.Firmness = analysis.Untested
	default:
		r.Firmness = firmness(s, order, len(r.Alike))
	}
	if r.Firmness != analysis.Untested {
		for i, won := range s.wins(rng, r.Resamples) {
			r.Ranked[slices.Index(order, i)].Wins = &won
		}
	}
	if len(ranked) > 1 && len(r.Weights) > 1 {
		share := otherWinner(rng, ranked)
		r.OtherWinner = &share
		if share > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("the order hangs on the weights: with each between half and twice what it is, another contender comes first in %.0f %% of the settings tried", 100*share))
		}
	}
	return s.tooFew()
}

// firmness returns how sure the first place is. The first contender is tested against every
// other, and the weakest test counts. So one of equal contenders is called Firm with a
// chance of at most firmAlpha, however many contenders there are. The result is Alike if
// the differences to all contenders that are as good (alike counts them, with the first)
// have intervals within asGood.
func firmness(s *scores, order []int, alike int) analysis.Firmness {
	weakest, same := 0.0, alike > 1
	for place, other := range order[1:] {
		shift, p := s.against(order[0], other)
		weakest = max(weakest, p)
		if place+1 < alike && !(shift.Low >= asGood-1e-12 && shift.High <= 1/asGood+1e-12) {
			same = false
		}
	}
	switch {
	case same:
		return analysis.Alike
	case weakest <= firmAlpha:
		return analysis.Firm
	case weakest <= leaningAlpha:
		return analysis.Leaning
	}
	return analysis.TossUp
}

// candidates returns the group's contenders that meet every need and have every figure of
// the gauges. It adds the others to c.lost or c.unknown.
func (c *chooser) candidates(g analysis.ComparableSet, gauges []gauge) []string {
	var list []string
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	for _, entry := range c.contendersIn(g) {
		if c.e.IsHost(entry) {
			continue
		}
		c.seen[entry] = true
		if !c.meets(entry) {
			continue
		}
		i := slices.IndexFunc(gauges, func(x gauge) bool { return len(x.merits[entry]) == 0 })
		if i >= 0 {
			c.unknown = append(c.unknown, analysis.Loss{Contender: entry, Need: "", Reason: fmt.Sprintf("no %s at %s beside the baseline's; the findings say why", gauges[i].Metric, gauges[i].Step), Source: "measured"})
			continue
		}
		list = append(list, entry)
	}
	return list
}

// contendersIn returns the contenders with samples in the group, in the plan's order.
func (c *chooser) contendersIn(g analysis.ComparableSet) []string {
	var list []string
	for i := range c.e.Samples {
		s := &c.e.Samples[i]
		if analysis.SetOf(s) == g && !slices.Contains(list, s.Contender) {
			list = append(list, s.Contender)
		}
	}
	slices.SortStableFunc(list, c.e.CompareContenders)
	return list
}

// meets says whether the contender meets all needs. If it does not, meets adds the first
// need that it fails to c.lost, or else the first need of which nothing is known to
// c.unknown.
func (c *chooser) meets(contender string) bool {
	var unknown *analysis.Loss
	for _, name := range c.needs {
		i := slices.IndexFunc(c.capabilities, func(x analysis.Capability) bool { return x.Contender == contender && x.Name == name })
		if i < 0 {
			need := Needs()[slices.Index(NeedNames(), name)]
			if !need.assumed && unknown == nil {
				unknown = &analysis.Loss{Contender: contender, Need: name, Reason: c.explainUnproven(need, contender), Source: "catalogue"}
			}
			continue
		}
		if has := c.capabilities[i]; has.Value == "no" {
			loss := analysis.Loss{Contender: contender, Need: name, Reason: "not so, by the catalogue", Source: has.Source}
			switch name {
			case analysis.Active:
				loss.Reason = "no longer maintained, by the catalogue"
			case analysis.Whole:
				loss.Reason = "a bare datapath of the kernel, no product for clusters"
			}
			switch has.Source {
			case "measured":
				loss.Reason = has.Detail
			case "check":
				loss.Reason = "a check found " + has.Detail
			}
			if !slices.Contains(c.lost, loss) {
				c.lost = append(c.lost, loss)
			}
			return false
		}
	}
	if unknown != nil && !slices.Contains(c.unknown, *unknown) {
		c.unknown = append(c.unknown, *unknown)
	}
	return unknown == nil
}

// notInRun is the reason why a contender that meets all needs has no score.
const notInRun = "not in this run"

// explainUnproven says why it is not known whether a contender meets a need, and what would help.
func (c *chooser) explainUnproven(need Need, contender string) string {
	switch {
	case need.Name == "low-memory" && analysis.SharesMemory(c.e.Run.Arena):
		return "the lab runs none of the product's own agents; measure an idle step on a cluster"
	case need.Name == "low-memory" && !c.seen[contender]:
		return notInRun
	case need.Name == "low-memory":
		return "the run has no idle step; suite throughput has"
	case need.check != "":
		return "not known; `cnibench check " + need.check + "` finds out"
	}
	return "the catalogue does not say"
}

// addLosses sets r.Lost and r.Unknown, for the contenders of the run and of the catalogue.
func (c *chooser) addLosses(r *analysis.Recommendation) {
	for _, x := range c.capabilities {
		if x.Contender == c.e.Run.Baseline || c.seen[x.Contender] {
			continue
		}
		meets := c.meets(x.Contender)
		c.seen[x.Contender] = true
		if !meets {
			continue
		}
		reason := notInRun
		for _, u := range c.e.Run.Unsupported {
			if u.Contender == x.Contender {
				reason = u.Reason
			}
		}
		c.unknown = append(c.unknown, analysis.Loss{Contender: x.Contender, Need: "", Reason: reason, Source: "measured"})
	}
	r.Lost, r.Unknown = append(r.Lost, c.lost...), append(r.Unknown, c.unknown...)
}

// reasons says in which criteria a choice is as good as any, in which it is worse than
// another, and how it meets the needs.
func (c *chooser) reasons(ranked []analysis.Choice, i int) []string {
	list, best := []string{}, []string(nil)
	for k, term := range ranked[i].Terms {
		leader := slices.MaxFunc(ranked, func(a, b analysis.Choice) int { return cmp.Compare(a.Terms[k].Ratio, b.Terms[k].Ratio) })
		top := leader.Terms[k].Ratio
		if term.Ratio >= asGood*top {
			best = append(best, term.Criterion)
			continue
		}
		list = append(list, fmt.Sprintf("%s %s× against %s× of %s", term.Criterion, unit.Ratio(term.Ratio), unit.Ratio(top), leader.Contender))
	}
	if len(best) > 0 && len(ranked) > 1 {
		list = slices.Insert(list, 0, "as good as any in "+analysis.AndList(best))
	}
	var has []string
	for _, x := range c.capabilities {
		if x.Contender == ranked[i].Contender && !slices.Contains(analysis.AlwaysNeeded(), x.Name) && slices.Contains(c.needs, x.Name) {
			word := x.Name
			if x.Value != "yes" {
				word += " by " + x.Value
			}
			has = append(has, word+" ("+x.Source+")")
		}
	}
	if len(has) > 0 {
		list = append(list, "has "+analysis.AndList(has))
	}
	return list
}
