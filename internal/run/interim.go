package run

import (
	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/assemble"
	"github.com/cnibench/cnibench/internal/result"
)

// soFar is the report of a run under way, which is read and assembled once for all who
// want it between two samples.
type soFar struct {
	store *result.Store
	at    int // samples that were sealed then
	made  *analysis.Report
}

func (s *soFar) report() (*analysis.Report, error) {
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
