package load

import (
	"errors"
	"math"

	"github.com/cnibench/cnibench/internal/unit"
)

// Merge returns one report of all slices of a session. Counts are added up, rates are
// weighted by time, and percentiles come from merged histograms, so every slice must
// have its histograms. A single slice is returned as it is.
func Merge(slices []*Report) (*Report, error) {
	if len(slices) == 0 {
		return nil, errors.New("load: no slices to merge")
	}
	if len(slices) == 1 {
		return slices[0], nil
	}
	sum := newResult()
	for _, slice := range slices {
		sum.follow(slice.result())
		histograms, err := slice.Decode()
		if err != nil {
			return nil, err
		}
		for clock, all := range sum.clocks() {
			h := histograms[clock]
			switch {
			case h == nil:
			case *all == nil:
				*all = h
			default:
				(*all).Merge(h)
			}
		}
	}
	sum.judge()
	merged := *slices[0]
	return &merged, merged.fill(&sum, true)
}

// result returns the Result that r was made from, without histograms and seconds.
func (r *Report) result() *Result {
	return &Result{
		Elapsed: unit.Seconds(r.Duration).Duration(), Interrupted: r.Interrupted, ResponseBytes: r.ResponseBytes,
		Planned: r.Planned, Sent: r.Sent, Requests: r.Requests, Missed: r.Missed, Reopened: r.Reopened,
		Completed: int64(math.Round(r.Rate * r.Duration)), Late: r.Late, Queued: r.Queued,
		Errors: r.Errors, ConnectionErrors: r.ConnectionErrors, Unstamped: r.Unstamped,
		Threads: r.Threads, GeneratorCPU: r.GeneratorCPU, GeneratorBusiest: r.GeneratorBusiest,
		GeneratorSpin: r.GeneratorSpin, GeneratorWait: r.GeneratorWait, Steal: r.Steal,
	}
}
