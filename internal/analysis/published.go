package analysis

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
