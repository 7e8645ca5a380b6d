package result

import (
	"maps"
	"slices"
)

// DroppedClock is a clock of a sample whose figures must not be used, although the
// sample's other figures are valid.
type DroppedClock struct {
	Clock   string             `json:"clock"`
	Reasons []Reason           `json:"reasons"`
	Metrics map[string]float64 `json:"metrics"` // what the clock showed
}

// DropGeneratorClocks moves the figures of latency, service_time and connect_time from the
// sample's metrics to s.DroppedClocks, and removes their histograms. It is for a load generator
// that was the limit: these clocks contain its own delay. network_time ends in the kernel
// and stays. A program that does not know DroppedClock finds no figures instead of wrong ones.
func (s *Sample) DropGeneratorClocks(reasons []Reason) {
	if len(reasons) == 0 {
		return
	}
	for _, c := range clocks {
		if !c.byGenerator {
			continue
		}
		dropped := DroppedClock{Clock: c.name, Reasons: reasons, Metrics: map[string]float64{}}
		for name, v := range s.Metrics {
			if m, known := LookupMetric(name); known && m.Clock == c.name {
				dropped.Metrics[name] = v
			}
		}
		if len(dropped.Metrics) == 0 {
			continue
		}
		s.Metrics, s.Histograms = maps.Clone(s.Metrics), maps.Clone(s.Histograms)
		maps.DeleteFunc(s.Metrics, func(name string, _ float64) bool { _, spoilt := dropped.Metrics[name]; return spoilt })
		delete(s.Histograms, c.name)
		s.DroppedClocks = append(s.DroppedClocks, dropped)
	}
}

// Holds says whether the sample's figures of a clock may be used. The clock "" stands for
// figures without a clock.
func (s *Sample) Holds(clock string) bool {
	return s.Verdict == Valid && !slices.ContainsFunc(s.DroppedClocks, func(sp DroppedClock) bool { return sp.Clock == clock })
}
