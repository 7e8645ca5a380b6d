package report

import (
	"encoding/json"
	"io"

	"github.com/cnibench/cnibench/internal/analysis"
)

// writeJSON writes the object that docs/schema/report-1.schema.json describes.
func writeJSON(w io.Writer, r *analysis.Report, _ Options) error { return encodeJSON(w, r) }

func encodeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
