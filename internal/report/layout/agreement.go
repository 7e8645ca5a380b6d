package layout

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/unit"
)

const (
	agreementTitle = "How far the orders agree"
	agreementAbout = "Tau is Kendall's rank correlation of our ratios and the study's: 1 is the same order of contenders, 0 none in common, -1 the opposite. In brackets: its 95 % interval, which is wide for few contenders. Its own runs: the tau of the study's runs among themselves; nobody can be expected to agree with a study more than it does with itself. Elsewhere: contenders whose places, ours and theirs, are far apart; 1 is the best."
)

// Agreed holds the agreements and differences of a report as two tables.
type Agreed struct {
	Title, About      string
	Head, Differences []string   // heads of the tables
	Rows, Differ      [][]string // rows of the tables
}

// Agreements returns the tables of the report. Rows are nil if there are no agreements.
func Agreements(r *analysis.Report) Agreed {
	out := Agreed{
		Title: agreementTitle, About: agreementAbout, Rows: agreementRows(r),
		Head:        []string{"figure", "study", "tau", "its own runs", "contenders", "elsewhere (ours, theirs)"},
		Differences: []string{"differs", "study", "ours", "theirs"},
	}
	for _, d := range r.Differences {
		out.Differ = append(out.Differ, []string{d.What, d.Study, d.Ours, d.Theirs})
	}
	return out
}

func agreementRows(r *analysis.Report) [][]string {
	var rows [][]string
	for _, a := range r.Agreements {
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
		rows = append(rows, []string{nameFigure(r, &a), a.Study, tau(&a), among(&a), n, where})
	}
	return rows
}

// nameFigure names the figure of an agreement.
func nameFigure(r *analysis.Report, a *analysis.Agreement) string {
	figure := a.Step + " " + MetricLabel(a.Metric)
	for _, other := range r.Agreements {
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

// among returns the range of the tau of the study's own runs.
func among(a *analysis.Agreement) string {
	if len(a.Among) == 0 {
		return "not published"
	}
	return fmt.Sprintf("%.2f to %.2f", a.Among[0], a.Among[len(a.Among)-1])
}

// Against returns the figures behind an agreement.
func Against(r *analysis.Report, a *analysis.Agreement) []analysis.PublishedFigure {
	var out []analysis.PublishedFigure
	seen := map[string]bool{}
	for _, f := range r.Published {
		if f.Study == a.Study && f.Table == a.Table && f.Step == a.Step && f.Metric == a.Metric && f.Kernel == a.Kernel && !f.LineLimited && !seen[f.Contender] {
			seen[f.Contender] = true
			out = append(out, f)
		}
	}
	return out
}

// AgreementName returns the title of the agreement's chart.
func AgreementName(r *analysis.Report, a *analysis.Agreement) string {
	return nameFigure(r, a) + " beside " + a.Study + ": tau " + tau(a) + " of " + unit.Plural(a.N, "contender")
}
