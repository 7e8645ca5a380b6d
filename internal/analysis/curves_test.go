package analysis

import (
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
)

func TestCurvePercentilesHoldTheNamedOnes(t *testing.T) {
	list := curvePercentiles()
	if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
		t.Errorf("not ascending: %v", list)
	}
	for _, p := range result.Percentiles {
		if !slices.Contains(list, p.Value) {
			t.Errorf("p%v is not on the curve", p.Value)
		}
	}
}
