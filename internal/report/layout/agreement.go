package layout

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/unit"
)

// What is said of the agreements.
const (
	AgreementTitle = "How far the orders agree"
	AgreementAbout = "Tau is Kendall's, of our ratios and the study's: 1 is the same order of contenders, 0 none in common, -1 the opposite; its interval at 95 % is of so few contenders. Elsewhere: places from the best, ours and theirs, that are far apart."
)

// AgreementHead is the head of AgreementRows.
var AgreementHead = []string{"figure", "study", "tau", "contenders", "elsewhere (ours, theirs)"}

// AgreementRows are the agreements in words.
func (v *View) AgreementRows() [][]string {
	var rows [][]string
	for _, a := range v.Agreements {
		n := strconv.Itoa(a.N)
		if a.LineLimited > 0 {
			n += fmt.Sprintf(", %d at the study's line rate left out", a.LineLimited)
		}
		var far []string
		for _, o := range a.Outliers {
			far = append(far, fmt.Sprintf("%s (%s, %s)", o.Contender, Exact(o.OurPlace), Exact(o.TheirPlace)))
		}
		where := strings.Join(far, ", ")
		if where == "" {
			where = "nobody"
		}
		rows = append(rows, []string{agreed(v, &a), a.Study, tau(&a), n, where})
	}
	return rows
}

// agreed is the figure that an agreement is of.
func agreed(v *View, a *analysis.Agreement) string {
	figure := a.Step + " " + MetricLabel(a.Metric)
	for _, other := range v.Agreements {
		if other.Study == a.Study && other.Step == a.Step && other.Metric == a.Metric && other.Kernel != a.Kernel {
			return figure + ", kernel " + a.Kernel
		}
	}
	return figure
}

func tau(a *analysis.Agreement) string {
	text := strconv.FormatFloat(a.Tau, 'f', 2, 64)
	if a.CI != nil {
		text += fmt.Sprintf(" (%.2f to %.2f)", a.CI[0], a.CI[1])
	}
	return text
}

// DifferenceHead is the head of DifferenceRows.
var DifferenceHead = []string{"differs", "study", "ours", "theirs"}

// DifferenceRows are what differs between this run and the studies.
func (v *View) DifferenceRows() [][]string {
	var rows [][]string
	for _, d := range v.Differences {
		rows = append(rows, []string{d.What, d.Study, d.Ours, d.Theirs})
	}
	return rows
}

// Against is one agreement's figures, as a drawing needs them.
func (v *View) Against(a *analysis.Agreement) []analysis.PublishedFigure {
	var out []analysis.PublishedFigure
	seen := map[string]bool{}
	for _, f := range v.Published {
		if f.Study == a.Study && f.Table == a.Table && f.Step == a.Step && f.Metric == a.Metric && f.Kernel == a.Kernel && !f.LineLimited && !seen[f.Contender] {
			seen[f.Contender] = true
			out = append(out, f)
		}
	}
	return out
}

// AgreementName is the drawing's title.
func (v *View) AgreementName(a *analysis.Agreement) string {
	return agreed(v, a) + " beside " + a.Study + ": tau " + tau(a) + " of " + unit.Plural(a.N, "contender")
}
