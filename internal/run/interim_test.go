package run

import (
	"path/filepath"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
)

// The report of a run under way is made once for each state of the run.
func TestSoFar(t *testing.T) {
	store, err := result.Create(filepath.Join(t.TempDir(), "run"), &result.Run{Schema: result.RunSchema})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	seal := func(round int) {
		t.Helper()
		s := &result.Sample{Schema: result.SampleSchema, Contender: "host", Step: "x", Round: round, Verdict: result.Valid, Metrics: map[string]float64{result.Goodput: 1e9}}
		if err := store.Seal(s); err != nil {
			t.Fatal(err)
		}
	}
	seal(1)
	s := &interim{Store: store}
	first, err := s.Report()
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := s.Report(); second != first {
		t.Error("read again though nothing was sealed")
	}
	seal(2)
	if third, err := s.Report(); err != nil || third == first {
		t.Errorf("the new sample is not in it: %v", err)
	}
}
