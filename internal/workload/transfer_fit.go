package workload

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/transfer"
	"github.com/cnibench/cnibench/internal/unit"
)

// mostSeconds is how long one transfer may be expected to take. A step may
// take half a minute longer than its window, in which the first transfer is a
// warm-up and the last one ends; a slow path would not be measured at all.
const mostSeconds = 5.0

// The first probe is a file of probeBytes, and the last one a transfer that
// takes probeSeconds, beside which a late start of a program is little.
const (
	probeBytes   = 4 << 20
	probeSeconds = mostSeconds / 10
)

// fitting is the size of the file to move: the whole one, or the largest half,
// quarter … of it whose transfer is expected to take no more than mostSeconds.
// Single transfers of small files tell, ever larger ones while they say that
// it is too much and are too short to be believed.
func (m *move) fitting(server *program, what []string) (int64, error) {
	for size := int64(probeBytes); size < m.whole; size *= 4 {
		if err := m.put(size); err != nil {
			return 0, err
		}
		role := "probe " + unit.Bytes(size).String()
		report, err := m.fetch(server, role, what, []string{"--duration", "0s"}, func() {}, func() {})
		if err != nil {
			return 0, fmt.Errorf("one transfer to see how fast the path is: %w", err)
		}
		took := afterFirstByte(report)
		fits := fittingSize(m.whole, size, took)
		if fits == m.whole || took >= probeSeconds {
			return fits, nil
		}
	}
	return m.whole, nil
}

// afterFirstByte is what a report's one transfer took from the first byte on,
// s: connecting and login do not grow with the file.
func afterFirstByte(r *transfer.Report) float64 {
	return r.Transfers[0].Seconds - r.TimeToFirstByte()
}

// fittingSize halves a size until it is expected to take mostSeconds, from
// what a probe of fewer bytes took; it is never smaller than the probe.
func fittingSize(size, probe int64, took float64) int64 {
	for size/2 >= probe && took/float64(probe)*float64(size) > mostSeconds {
		size /= 2
	}
	return size
}
