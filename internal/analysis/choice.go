package analysis

// Recommendation is an ordered choice of contenders for given needs.
type Recommendation struct {
	Needs   []string `json:"needs"`
	Weights []Weight `json:"weights"`
	Ranked  []Choice `json:"ranked"`  // best first
	Lost    []Loss   `json:"lost"`    // what a need ruled out
	Unknown []Loss   `json:"unknown"` // what can't be scored, for want of figures
	// Resamples is how many times rounds were drawn anew to see how firm the order is.
	Resamples int `json:"resamples"`
}

// Weight is how much a criterion counts.
type Weight struct {
	Criterion string  `json:"criterion"`
	Weight    float64 `json:"weight"`
}

// Choice is a contender that meets every need.
type Choice struct {
	Contender string    `json:"contender"`
	Score     float64   `json:"score"` // weighted geometric mean of the ratios to the baseline, higher is better
	CI        *Interval `json:"ci"`    // of the score, by resampling
	Wins      float64   `json:"wins"`  // share of the resamples in which it came first, 0 to 1
	Terms     []Term    `json:"terms"`
	Reasons   []string  `json:"reasons"`
}

// Term is what one criterion gave to a choice.
type Term struct {
	Criterion string    `json:"criterion"`
	Weight    float64   `json:"weight"`
	Ratio     float64   `json:"ratio"` // to the baseline, turned so that above 1 is better
	CI        *Interval `json:"ci"`
}

// Loss is why a contender is out.
type Loss struct {
	Contender string `json:"contender"`
	Need      string `json:"need"`
	Reason    string `json:"reason"`
	Source    string `json:"source"` // catalogue, check or measured
}

// Capability is one thing that a contender can or can't do.
type Capability struct {
	Contender string `json:"contender"`
	Name      string `json:"name"`   // a need's name: policy, encryption, …
	Value     string `json:"value"`  // yes, no, or a word such as wireguard
	Source    string `json:"source"` // catalogue or check
}
