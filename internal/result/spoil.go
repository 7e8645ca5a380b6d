package result

import (
	"maps"
	"slices"
)

// Spoiled is a clock of a sample whose figures must not be used, although the
// sample's other figures hold.
type Spoiled struct {
	Clock   string             `json:"clock"`
	Reasons []Reason           `json:"reasons"`
	Metrics map[string]float64 `json:"metrics"` // what the clock showed
}

// SpoilGenerator takes the figures of the clocks that hold the load generator's own
// delay out of the sample's metrics and histograms, for a generator that was the limit:
// latency, service_time and connect_time. network_time ends in the kernel and stays.
// The figures are kept in s.Spoiled. A reader that does not know Spoiled misses the
// figures, and never takes them for good ones.
func (s *Sample) SpoilGenerator(reasons []Reason) {
	if len(reasons) == 0 {
		return
	}
	for _, c := range clocks {
		if !c.byGenerator {
			continue
		}
		spoiled := Spoiled{Clock: c.name, Reasons: reasons, Metrics: map[string]float64{}}
		for name, v := range s.Metrics {
			if m, known := LookupMetric(name); known && m.Clock == c.name {
				spoiled.Metrics[name] = v
			}
		}
		if len(spoiled.Metrics) == 0 {
			continue
		}
		s.Metrics, s.Histograms = maps.Clone(s.Metrics), maps.Clone(s.Histograms)
		maps.DeleteFunc(s.Metrics, func(name string, _ float64) bool { _, is := spoiled.Metrics[name]; return is })
		delete(s.Histograms, c.name)
		s.Spoiled = append(s.Spoiled, spoiled)
	}
}

// Holds says whether the sample's figures of a clock may be used. "" is for figures
// that are of no clock.
func (s *Sample) Holds(clock string) bool {
	return s.Verdict == Valid && !slices.ContainsFunc(s.Spoiled, func(sp Spoiled) bool { return sp.Clock == clock })
}
