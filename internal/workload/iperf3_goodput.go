package workload

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// ErrNotChecked says that it is unknown which part of the raw files is the window.
var ErrNotChecked = errors.New("the raw files do not say which part of them is the window")

// nearGoodput is the largest relative difference, by rounding, between a goodput and the
// sum of the raw files.
const nearGoodput = 1e-6

// CheckGoodput reads the reports of iperf3's servers and returns an error unless their
// bytes in the window give the goodput (bit/s). With several processes, whose windows begin
// at different times of each, that error is ErrNotChecked.
func CheckGoodput(servers []io.Reader, warmup, duration time.Duration, goodput float64) error {
	var sums [2]float64 // by iperf3's summary, by its intervals
	for _, r := range servers {
		report, err := parseIperf3(r)
		if err != nil {
			return err
		}
		for i, w := range []iperf3Window{{whole: true}, {from: warmup.Seconds(), to: (warmup + duration).Seconds()}} {
			sum, err := report.receivedSum(w)
			if err != nil || sum.Seconds <= 0 {
				sums[i] = math.NaN()
				continue
			}
			sums[i] += 8 * sum.Bytes / sum.Seconds
		}
	}
	for _, sum := range sums {
		if math.Abs(sum-goodput) <= nearGoodput*goodput {
			return nil
		}
	}
	if len(servers) > 1 {
		return ErrNotChecked
	}
	return fmt.Errorf("iperf3 received %.6g bit/s by its summary and %.6g by its intervals in the window", sums[0], sums[1])
}
