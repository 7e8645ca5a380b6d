package analysis

import "slices"

// This file declares the types of a recommendation; package recommend makes it.

// RecommendSchema names the version of the JSON form of a Recommendation.
const RecommendSchema = "cnibench/recommend/1"

// Recommendation is an ordered choice of contenders for given needs, among
// those that were measured under one kernel and underlay.
type Recommendation struct {
	Schema   string   `json:"schema"`
	Run      string   `json:"run"`
	Baseline string   `json:"baseline"`
	Kernel   string   `json:"kernel"`
	Emulated bool     `json:"emulated,omitempty"` // the kernel's CPU
	Underlay string   `json:"underlay"`
	Needs    []string `json:"needs"`
	Weights  []Weight `json:"weights"`
	Ranked   []Choice `json:"ranked"`  // best first
	Lost     []Loss   `json:"lost"`    // contenders that a need ruled out
	Unknown  []Loss   `json:"unknown"` // contenders without the figures for a score
	// Resamples is how often rounds were resampled to count Wins.
	Resamples  int      `json:"resamples"`
	Confidence float64  `json:"confidence"` // of the intervals
	Firmness   Firmness `json:"firmness"`   // of the first place
	// OtherWinner is how often another contender comes first when every weight is changed at
	// random to between half and twice its value, 0 to 1; nil if there is nothing to weigh.
	OtherWinner *float64 `json:"other_winner,omitempty"`
	// Alike are the first contender and those with a score within 2 % of it; empty if
	// there are no others.
	Alike []string `json:"alike"`
	// Ignored are the criteria with a weight and without a figure.
	Ignored []string `json:"ignored"`
	Notes   []string `json:"notes"`
	// Elsewhere says whether other runs would choose alike; "" if nothing is known of that.
	Elsewhere string `json:"elsewhere,omitempty"`
	// Others are recommendations for contenders on other kernels or underlays, which
	// can't be ranked with these. Their Lost and Unknown are empty: this
	// Recommendation's lists name all contenders.
	Others []Recommendation `json:"apart,omitempty"`
}

// Advice is the choice for a usual case, a scenario.
type Advice struct {
	Scenario, Summary string
	Run               string          // flags of `cnibench run` that measure the scenario's criteria
	Chief             []string        // the criteria with the greatest weight
	Recommendation    *Recommendation // by the scenario's needs and weights; nil if nothing can be scored
}

// Measured says whether the run has a figure for at least one of the chief criteria. If it
// has none, the recommendation says nothing about the scenario.
func (a *Advice) Measured() bool {
	return a.Recommendation != nil && slices.ContainsFunc(append([]Recommendation{*a.Recommendation}, a.Recommendation.Others...), func(list Recommendation) bool {
		return slices.ContainsFunc(a.Chief, func(c string) bool { return !slices.Contains(list.Ignored, c) })
	})
}

// Firmness says how sure the first place is.
type Firmness string

// The firmnesses.
const (
	Alike    Firmness = "alike"    // the intervals of the differences between the first contender and others lie within 2 %
	Firm     Firmness = "firm"     // better than every other contender, p at most 5 %
	Leaning  Firmness = "leaning"  // better than every other contender, p at most 20 %
	TossUp   Firmness = "toss-up"  // these rounds do not show that the first contender is better than every other
	Untested Firmness = "untested" // there are too few rounds for a test
	Alone    Firmness = "alone"    // the needs leave a single contender
	Nobody   Firmness = "nobody"   // the needs leave no contender
)

// Weight is how much a criterion counts.
type Weight struct {
	Criterion string  `json:"criterion"`
	Weight    float64 `json:"weight"`
}

// Choice is a contender that meets every need.
type Choice struct {
	Contender string    `json:"contender"`
	Score     float64   `json:"score"` // middle, over rounds, of the weighted geometric mean of the ratios to the baseline; higher is better
	CI        *Interval `json:"ci"`    // of the score, by the exact rank test
	// Wins is the share of the resamples in which the contender came first, 0 to 1;
	// contenders within 2 % of the best share the win. Null if Firmness is untested.
	Wins    *float64 `json:"wins"`
	Terms   []Term   `json:"terms"`
	Reasons []string `json:"reasons"`
}

// Term is one criterion's part in the score of a choice.
type Term struct {
	Criterion string    `json:"criterion"`
	Weight    float64   `json:"weight"`
	Ratio     float64   `json:"ratio"` // to the baseline, turned so that above 1 is better
	CI        *Interval `json:"ci"`
}

// Loss says why a contender was ruled out.
type Loss struct {
	Contender string `json:"contender"`
	Need      string `json:"need"`
	Reason    string `json:"reason"`
	Source    string `json:"source"` // catalogue, check or measured
}

// Capability is one thing that a contender can or can't do.
type Capability struct {
	Contender string `json:"contender"`
	Name      string `json:"name"`             // a need's name: policy, encryption, …
	Value     string `json:"value"`            // yes, no, or a word such as wireguard
	Source    string `json:"source"`           // catalogue, check or measured
	Detail    string `json:"detail,omitempty"` // what a check found
}

// The needs that are always asked for.
const (
	Active = "active" // is maintained
	Whole  = "whole"  // is a product for clusters, no bare datapath of the kernel
)

// AlwaysNeeded are the needs that nobody has to ask for.
func AlwaysNeeded() []string { return []string{Active, Whole} }
