package result

import (
	"github.com/cnibench/cnibench/internal/unit"
)

// JudgeContext is what the values of a sample are held against. A zero field switches
// its rule off.
type JudgeContext struct {
	LineRate unit.BitRate // of the underlay; 0 is unlimited
	Ceiling  unit.BitRate // the goodput that headers leave of LineRate, see unit.Ceiling; 0 is unknown
	Required []string     // metrics that the workload always gives
	CPUs     int          // of client and server together
	Duration unit.Seconds // planned, of the measured window
}

// Judge returns the reasons why the sample must not be ranked, in the order of the
// rules; none means that it is valid as far as its own values tell. It compares no
// samples with each other, which the analysis does, and does not repeat the faults that
// a workload found itself.
func Judge(s *Sample, c JudgeContext) []Reason {
	var reasons []Reason
	for _, r := range verdictRules {
		for _, text := range r.faults(s, c) {
			reasons = append(reasons, Reason{Code: r.code, Text: text})
		}
	}
	return reasons
}

// JudgedCodes lists the codes that Judge can give.
func JudgedCodes() []string {
	codes := make([]string, len(verdictRules))
	for i, r := range verdictRules {
		codes[i] = r.code
	}
	return codes
}
