package report

import (
	"io"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/text"
)

// writeJSON writes the object that docs/schema/report-1.schema.json describes.
func writeJSON(w io.Writer, r *analysis.Report, _ Options) error { return encodeJSON(w, r) }

func encodeJSON(w io.Writer, v any) error { return text.EncodeJSON(w, v) }
