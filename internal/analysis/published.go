package analysis

// Agreement says how similar the order of contenders is in this run and in a study's
// table, for one metric.
type Agreement struct {
	Study  string `json:"study"`
	Table  string `json:"table"`
	Step   string `json:"step"`
	Metric string `json:"metric"`
	Kernel string `json:"kernel"` // of this run
	N      int    `json:"n"`      // contenders that both have, without those that the study's link limited
	// LineLimited is how many contenders the study's link limited: their order says nothing.
	LineLimited int `json:"line_limited,omitempty"`
	// Tau is Kendall's tau-b of the ratios: 1 for the same order, 0 for none in common,
	// -1 for the opposite. CI is its interval at 95 %; nil with fewer than five.
	Tau float64   `json:"tau"`
	CI  *Interval `json:"ci"`
	// Among is the tau of each two of the study's own runs, over the same contenders, the
	// least first; empty where it published no runs. No other measurement can be expected to
	// agree with the study more than its runs do with each other.
	Among    []float64 `json:"among,omitempty"`
	Outliers []Outlier `json:"outliers,omitempty"`
}

// Outlier is a contender whose places in the two orders differ much.
type Outlier struct {
	Contender  string  `json:"contender"`
	Ours       float64 `json:"ours"` // Ours and Theirs are ratios to the baseline of each
	Theirs     float64 `json:"theirs"`
	OurPlace   float64 `json:"our_place"` // 1 is the best
	TheirPlace float64 `json:"their_place"`
}

// Difference is a difference in conditions between this run and a study that can explain
// different figures.
type Difference struct {
	Study  string `json:"study"`
	What   string `json:"what"`
	Ours   string `json:"ours"`
	Theirs string `json:"theirs"`
}

// PublishedFigure is a figure of a publication beside this run's figure of the same
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
	Table     string     `json:"table"` // name of the study's table
	Name      string     `json:"name"`  // the study's name for the contender
	Read      string     `json:"read"`  // how the figure was read: table, text, chart label, pixels, computed
	// LineLimited says that the study's link limited the figure or its
	// baseline, so that the ratio says little about the contender.
	LineLimited bool `json:"line_limited,omitempty"`
	// Runs are the figures of the study's runs, in its unit, NaN where one has none; Ratio is
	// of their median.
	Runs []float64 `json:"-"`
}
