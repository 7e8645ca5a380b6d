package compare

import (
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/analysis/findings"
)

func TestDisturbancesAreFindings(t *testing.T) {
	for _, code := range disturbances {
		if !slices.ContainsFunc(findings.Kinds(), func(k findings.Kind) bool { return k.Code == code }) {
			t.Errorf("%s is no finding", code)
		}
	}
}
