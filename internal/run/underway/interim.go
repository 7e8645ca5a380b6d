// Package underway reads a run that goes on: the report of what is sealed so far, and what
// the terminal shows of it. It changes nothing of the run. Next: preview.go.
package underway

import (
	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/assemble"
	"github.com/cnibench/cnibench/internal/result"
)

// Interim assembles the report of a run under way, once for each number of sealed
// samples.
type Interim struct {
	Store *result.Store
	at    int // sealed samples when made was assembled
	made  *analysis.Report
}

// Report returns the report of the samples that are sealed.
func (s *Interim) Report() (*analysis.Report, error) {
	sealed := len(s.Store.Sealed())
	if s.made != nil && sealed == s.at {
		return s.made, nil
	}
	rec, err := result.Load(s.Store.Dir())
	if err != nil {
		return nil, err
	}
	s.at, s.made = sealed, assemble.Report(rec, analysis.Options{})
	return s.made, nil
}
