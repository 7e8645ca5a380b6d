package cli

import (
	"github.com/cnibench/cnibench/internal/analysis/findings"
	"github.com/cnibench/cnibench/internal/run"
)

// listFindings are what a report can warn of.
func listFindings(*run.Catalogue) ([][]string, any, error) {
	type value struct {
		ID       string   `json:"id"`
		Severity string   `json:"severity"`
		Title    string   `json:"title"`
		Means    string   `json:"means"`
		Next     string   `json:"next"`
		Was      []string `json:"earlier_codes,omitempty"`
	}
	var rows [][]string
	var values []value
	for _, k := range findings.Kinds() {
		values = append(values, value{k.Code, k.Severity, k.Title, k.Help, k.Next, k.Was})
		rows = append(rows, []string{k.Code, k.Severity, k.Title})
	}
	return rows, values, nil
}
