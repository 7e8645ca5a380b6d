package workload

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// ErrNotChecked says that raw files do not tell which part of them is the window.
var ErrNotChecked = errors.New("the raw files do not tell the window")

// nearGoodput is how far a goodput may be from what the raw files add up to, relative:
// rounding.
const nearGoodput = 1e-6

// CheckGoodput reads what iperf3's servers printed and returns an error unless their
// bytes in the window come to the goodput (bit/s). The error is ErrNotChecked where several
// processes, whose windows lie at unlike times of each, do not come to it.
func CheckGoodput(servers []io.Reader, warmup, duration time.Duration, goodput float64) error {
	var sums [2]float64 // by iperf3's summary, by its intervals
	for _, r := range servers {
		report, err := parseIperf3(r)
		if err != nil {
			return err
		}
		for i, w := range []iperf3Window{{whole: true}, {from: warmup.Seconds(), to: (warmup + duration).Seconds()}} {
			sum, err := report.received(w)
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
