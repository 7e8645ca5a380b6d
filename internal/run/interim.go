package run

import (
	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/assemble"
	"github.com/cnibench/cnibench/internal/result"
)

// interimReport assembles the report of a run under way, once for each number of sealed
// samples.
type interimReport struct {
	store *result.Store
	at    int // sealed samples when made was assembled
	made  *analysis.Report
}

func (s *interimReport) report() (*analysis.Report, error) {
	sealed := len(s.store.Sealed())
	if s.made != nil && sealed == s.at {
		return s.made, nil
	}
	rec, err := result.Load(s.store.Dir())
	if err != nil {
		return nil, err
	}
	s.at, s.made = sealed, assemble.Report(rec, analysis.Options{})
	return s.made, nil
}
