package bench

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/result"
)

// commonMetrics returns the values, slice by slice, of every ranked metric that all used
// slices have.
func commonMetrics(list []slice, isUsed func(int) bool) map[string][]float64 {
	all, n := map[string][]float64{}, 0
	for i, s := range list {
		if !isUsed(i) {
			continue
		}
		n++
		for name, v := range s.Metrics {
			if m, _ := result.LookupMetric(name); m.Has(result.Ranked) {
				all[name] = append(all[name], v)
			}
		}
	}
	maps.DeleteFunc(all, func(_ string, values []float64) bool {
		return len(values) != n || slices.ContainsFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	})
	return all
}

// writeSlices writes every slice, disturbed ones too, as a line of slices.jsonl.
func (t *slicedRun) writeSlices() (err error) {
	f, err := t.raw.Create("slices.jsonl")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines := json.NewEncoder(f)
	for _, s := range t.slices {
		line := struct {
			Cycle   int                `json:"cycle"`
			Begin   time.Time          `json:"begin"`
			Elapsed float64            `json:"elapsed"`           // seconds
			Away    float64            `json:"away"`              // longest absence of a canary in the cycle, seconds
			Foreign *float64           `json:"foreign,omitempty"` // of the cycle, CPU-seconds per second
			Metrics map[string]float64 `json:"metrics"`
			Faults  []result.Reason    `json:"faults,omitempty"`
		}{s.cycle, s.windows[t.pair.Client.Node()].Begin, s.Elapsed.Seconds(), s.usage.absence.Seconds(), s.usage.foreignRate(), s.Metrics, s.Faults}
		if err := lines.Encode(line); err != nil {
			return err
		}
	}
	return nil
}
