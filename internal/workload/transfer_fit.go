package workload

import (
	"fmt"
	"math"

	"github.com/cnibench/cnibench/internal/unit"
)

// mostSeconds is the longest expected time of one transfer. A step may take a minute
// longer than its window, for probes, a warm-up transfer and a last transfer that ends
// late. With longer transfers a slow path could not be measured in that time.
const mostSeconds = 5.0

// The first probe is a file of probeBytes, which even an emulated CPU transfers in time.
// The time of a probe counts from probeSeconds on: a program that starts late then
// changes it little.
const (
	probeBytes   = 512 << 10
	probeSeconds = mostSeconds / 10
)

// fitting returns the size of the file to move: the whole one, or the largest half,
// quarter … of it whose transfer is expected to take no more than mostSeconds.
// It transfers small files, each larger than the one before, until one transfer
// shows that the whole file fits, or two transfers in a row, both long enough to be
// believed, show that it does not: a program's first start, or other work on the
// machine, can make a single transfer slow.
func (m *transferDrive) fitting(server *program, what []string) (int64, error) {
	for size := int64(probeBytes); size < m.whole; size *= 4 {
		if err := m.put(size); err != nil {
			return 0, err
		}
		p := probe{took: math.Inf(1)}
		for _, suffix := range []string{"", " again"} {
			role := "probe " + unit.Bytes(size).String() + suffix
			report, err := m.fetch(server, role, what, 0, []string{"--duration", "0s"}, func() {}, func() {})
			if err != nil {
				return 0, fmt.Errorf("a transfer of %v to measure the path's speed: %w", unit.Bytes(size), err)
			}
			first := report.TimeToFirstByte()
			if took := report.Transfers[0].Seconds - first; took < p.took {
				p = probe{size, took, first}
			}
			if p.fits(m.whole) {
				return m.whole, nil
			}
			if !p.believable() {
				break
			}
		}
		if p.believable() {
			return fittingSize(m.whole, size, p.took), nil
		}
	}
	return m.whole, nil
}

// probe is one transfer of a small file: its time to the first byte (first), and from
// there to the end (took), s. Connecting and login take the same time for every size,
// but vary, so that took is uncertain by a part of first.
type probe struct {
	bytes       int64
	took, first float64
}

// fits says whether a file of that size is expected to take no more than
// mostSeconds, even if first took a quarter longer or shorter than it does.
func (p probe) fits(size int64) bool {
	return fittingSize(size, p.bytes, max(p.took, p.first/4)) == size
}

// believable says whether took is long enough to be more than chance.
func (p probe) believable() bool { return p.took >= max(probeSeconds, p.first/2) }

// fittingSize halves a size until its transfer is expected to take at most mostSeconds, if
// a probe of that many bytes took took. The result is at least the probe's size.
func fittingSize(size, probe int64, took float64) int64 {
	for size/2 >= probe && took/float64(probe)*float64(size) > mostSeconds {
		size /= 2
	}
	return size
}
