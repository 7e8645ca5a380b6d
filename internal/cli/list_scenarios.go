package cli

import (
	"cmp"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis/recommend"
	"github.com/cnibench/cnibench/internal/run"
)

// listScenarios are the usual cases of `cnibench recommend --scenario`.
func listScenarios(*run.Catalogue) ([][]string, any, error) {
	all, err := recommend.Scenarios()
	var rows [][]string
	for _, s := range all {
		rows = append(rows, []string{s.Name, cmp.Or(strings.Join(s.Needs, ","), "none"), s.WeightsText(), s.Summary})
	}
	return rows, all, err
}
