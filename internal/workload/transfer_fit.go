package workload

import (
	"fmt"
	"math"

	"github.com/cnibench/cnibench/internal/unit"
)

// maxSeconds is the longest expected time of one transfer. A step may take a minute
// longer than its window, for probes, a warm-up transfer and a last transfer that ends
// late. With longer transfers a slow path could not be measured in that time.
const maxSeconds = 5.0

// The first probe is a file of probeBytes, which even an emulated CPU transfers in time.
// The time of a probe counts from probeSeconds on: a program that starts late then
// changes it little.
const (
	probeBytes   = 512 << 10
	probeSeconds = maxSeconds / 10
)

// chooseSize returns the size of the file to move: the full size, or the largest half,
// quarter or smaller part whose transfer is expected to take at most maxSeconds. It
// transfers probes, each four times as large as the probe before. The full size is chosen
// as soon as one probe says that it fits. A smaller size is chosen when two probes of one
// size, both long enough to be believed, say that the full size does not fit: a program's
// first start, or other work on the machine, can make a single transfer slow.
func (m *transferDrive) chooseSize(server *program, client []string) (int64, error) {
	for size := int64(probeBytes); size < m.fullSize; size *= 4 {
		if err := m.put(size); err != nil {
			return 0, err
		}
		p := probe{took: math.Inf(1)}
		for _, suffix := range []string{"", " again"} {
			role := "probe " + unit.Bytes(size).String() + suffix
			report, err := m.fetch(server, role, client, 0, []string{"--duration", "0s"}, func() {}, func() {})
			if err != nil {
				return 0, fmt.Errorf("a transfer of %v to measure the path's speed: %w", unit.Bytes(size), err)
			}
			first := report.TimeToFirstByte()
			if took := report.Transfers[0].Seconds - first; took < p.took {
				p = probe{size, took, first}
			}
			if p.fits(m.fullSize) {
				return m.fullSize, nil
			}
			if !p.believable() {
				break
			}
		}
		if p.believable() {
			return fitSize(m.fullSize, size, p.took), nil
		}
	}
	return m.fullSize, nil
}

// probe is one transfer of a small file. Connecting and login take the same time for every
// size, but vary, so that took is uncertain by a part of first.
type probe struct {
	bytes int64
	took  float64 // from the first byte to the end, s
	first float64 // from the start to the first byte, s
}

// fits reports whether a file of that size is expected to take at most maxSeconds, even
// if first varies by a quarter.
func (p probe) fits(size int64) bool {
	return fitSize(size, p.bytes, max(p.took, p.first/4)) == size
}

// believable reports whether took is long compared with its uncertainty.
func (p probe) believable() bool { return p.took >= max(probeSeconds, p.first/2) }

// fitSize halves a size until its transfer is expected to take at most maxSeconds, if
// a probe of that many bytes took took. The result is at least the probe's size.
func fitSize(size, probe int64, took float64) int64 {
	for size/2 >= probe && took/float64(probe)*float64(size) > maxSeconds {
		size /= 2
	}
	return size
}
