package analysis

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
)

// Trace is what the recorders of one sample's nodes recorded, second by second. It is made
// where the run's files are read.
type Trace struct {
	Key   result.Key  `json:"-"`
	Nodes []NodeTrace `json:"nodes"`
}

// NodeTrace is the trace of one node. Every slice has a value for each of Times, or is
// nil if nothing was recorded; a missing value is NaN.
type NodeTrace struct {
	Node string `json:"node"` // client or server
	// Times are the ends of the intervals, in seconds from the begin of the
	// measured window: negative in the warm-up, beyond Window after it.
	Times  []float64 `json:"times"`
	Window float64   `json:"window"` // length of the measured window, s
	// Measured is how much of the window the sample's own slices take, s; 0 for a sample that
	// was measured at once.
	Measured float64 `json:"measured,omitempty"`

	CPU         map[string][]float64 `json:"cpu"`         // by mode but idle, all CPUs together, CPU-seconds per second
	Loads       map[string][]float64 `json:"loads"`       // by CPU, share in which it was busy, 0 to 1; nil with many CPUs
	Busy        []float64            `json:"busy"`        // CPUs that were busy, all together, CPU-seconds per second
	Busiest     []float64            `json:"busiest"`     // share in which the busiest CPU was busy, 0 to 1
	Receive     []float64            `json:"receive"`     // bit/s into the node's uplink
	Transmit    []float64            `json:"transmit"`    // bit/s out of it
	Retransmits []float64            `json:"retransmits"` // TCP segments sent again, 1/s
	Memory      []float64            `json:"memory"`      // bytes used
	// Tracked is the largest number of entries of the connection tracking table in the
	// window, TrackedLimit the kernel's limit; 0 if they were not recorded.
	Tracked      float64 `json:"tracked,omitempty"`
	TrackedLimit float64 `json:"tracked_limit,omitempty"`
	// Throttled is the share of the scheduler's periods in the window in which the load's
	// pod on the node had used its CPU quota up, 0 to 1.
	Throttled float64 `json:"throttled,omitempty"`

	CPUs  int       `json:"cpus"`            // number of CPUs behind CPU and Busiest; 0 if nothing was recorded
	Power []float64 `json:"power,omitempty"` // W of the CPU packages (RAPL)
}

// Within returns the values of the intervals in the measured window.
func (t *NodeTrace) Within(values []float64) []float64 {
	const slack = 0.01 // s
	var list []float64
	for i, v := range values {
		if i < len(t.Times) && t.Times[i] > slack && (t.Window <= 0 || t.Times[i] <= t.Window+slack) {
			list = append(list, v)
		}
	}
	return list
}

// FiniteOnly returns the values that are neither NaN nor infinite.
func FiniteOnly(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}
