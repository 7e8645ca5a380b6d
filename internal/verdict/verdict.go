// Package verdict judges one sample at the moment when it is sealed: is it
// possible, whole, and measured on a machine that was free to measure? Pure
// functions; it never compares samples with each other (analysis does), never
// changes one, and does not repeat the faults that a workload found itself.
// Next: rules.go.
package verdict

import (
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// Context is what the sample's values are held against. A zero field switches
// its rule off.
type Context struct {
	LineRate unit.BitRate // of the underlay; 0 is unlimited
	Ceiling  unit.BitRate // the goodput that headers leave of LineRate, see unit.Ceiling; 0 is unknown
	Required []string     // metrics that the workload always gives
	CPUs     int          // of client and server together
	Duration unit.Seconds // planned, of the measured window
}

// Judge gives the reasons why the sample must not be ranked, in the order of
// the rules; none means that it is valid as far as its own values tell.
func Judge(s *result.Sample, c Context) []result.Reason {
	var reasons []result.Reason
	for _, r := range rules {
		for _, text := range r.faults(s, c) {
			reasons = append(reasons, result.Reason{Code: r.code, Text: text})
		}
	}
	return reasons
}

// Codes lists the codes that Judge can give.
func Codes() []string {
	codes := make([]string, len(rules))
	for i, r := range rules {
		codes[i] = r.code
	}
	return codes
}
