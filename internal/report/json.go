package report

import (
	"io"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/text"
)

// writeJSON writes the object that docs/schema/report-1.schema.json describes: the report, and
// the sentences that the terminal and the page begin with.
func writeJSON(w io.Writer, r *analysis.Report, _ Options) error {
	v := layout.New(r)
	return encodeJSON(w, struct {
		*analysis.Report
		Answer []string `json:"answer"`
		Choice []string `json:"choice,omitempty"`
	}{r, v.Answer(), v.AdviceLines()})
}

func encodeJSON(w io.Writer, v any) error { return text.EncodeJSON(w, v) }
