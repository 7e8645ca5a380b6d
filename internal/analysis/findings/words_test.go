package findings

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every rule has its words in findings.yaml, and every kind there has its rule.
func TestRulesHaveWords(t *testing.T) {
	var codes []string
	for _, k := range Kinds() {
		codes = append(codes, k.Code)
	}
	slices.Sort(codes)
	want := slices.Sorted(maps.Keys(rules))
	if diff := cmp.Diff(slices.Sorted(slices.Values(append(want, partUnreadable))), codes); diff != "" {
		t.Errorf("(-rules +findings.yaml)\n%s", diff)
	}
}
