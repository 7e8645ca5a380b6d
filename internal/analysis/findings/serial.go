package findings

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/analysis"
)

// autocorrelatedRounds finds groups in which contenders' own noise lasts from round to
// round (Evidence.Autocorrelation).
func autocorrelatedRounds(e *evidence) []analysis.Finding {
	var list []analysis.Finding
	for _, g := range e.Sets {
		s, tested := e.Autocorrelation[g]
		if !tested || !(s.P <= e.Opt.Alpha/float64(len(e.Sets))) {
			continue
		}
		list = append(list, analysis.Finding{Text: fmt.Sprintf(
			"%sa contender that did well in a round tended to do well in the next (correlation %.2f, p = %.2g): the intervals of ratios are %.2f times as wide, and differences must be as much larger for letters",
			e.GroupPrefix(g), s.Correlation, s.P, s.Inflation())})
	}
	return list
}
