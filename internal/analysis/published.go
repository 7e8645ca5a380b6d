package analysis

// Agreement is how far the order of contenders in this run and in a study's table are
// the same, for one figure.
type Agreement struct {
	Study  string `json:"study"`
	Table  string `json:"table"`
	Step   string `json:"step"`
	Metric string `json:"metric"`
	Kernel string `json:"kernel"` // of ours
	N      int    `json:"n"`      // contenders that both have, but those that the study's link limited
	// LineLimited is how many of these there are: their order says nothing.
	LineLimited int `json:"line_limited,omitempty"`
	// Tau is Kendall's tau-b of the ratios: 1 for the same order, 0 for none in common,
	// -1 for the opposite. CI is its interval at 95 %; nil with fewer than five.
	Tau      float64   `json:"tau"`
	CI       *Interval `json:"ci"`
	Outliers []Outlier `json:"outliers,omitempty"`
}

// Outlier is a contender whose places in the two orders are far apart.
type Outlier struct {
	Contender  string  `json:"contender"`
	Ours       float64 `json:"ours"` // ratios to the baselines
	Theirs     float64 `json:"theirs"`
	OurPlace   float64 `json:"our_place"` // from the best, 1
	TheirPlace float64 `json:"their_place"`
}

// Difference is something that differs between this run and a study, and can explain why
// figures do.
type Difference struct {
	Study  string `json:"study"`
	What   string `json:"what"`
	Ours   string `json:"ours"`
	Theirs string `json:"theirs"`
}

// PublishedFigure is a figure of a publication beside one's own of the same
// contender, kind of step and metric, each as a ratio to its own baseline.
type PublishedFigure struct {
	Contender string     `json:"contender"`
	Kernel    string     `json:"kernel"`
	Underlay  string     `json:"underlay"`
	Step      string     `json:"step"`
	Metric    string     `json:"metric"`
	Better    string     `json:"better"`
	Ours      Comparison `json:"ours"`
	Ratio     float64    `json:"ratio"` // the study's
	Study     string     `json:"study"`
	Table     string     `json:"table"` // which of the study's
	Name      string     `json:"name"`  // the study's for the contender
	Read      string     `json:"read"`  // how the figure was read: table, text, chart label, pixels, computed
	// LineLimited says that the study's link limited the figure or its
	// baseline, so that the ratio tells little of the contender.
	LineLimited bool `json:"line_limited,omitempty"`
}
