package analysis

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
)

// Trace is what the nodes of one sample did second by second, as their
// recorders saw it; whoever reads the run's files makes it.
type Trace struct {
	Part  string      `json:"-"` // as of a Result
	Key   result.Key  `json:"-"`
	Nodes []NodeTrace `json:"nodes"`
}

// NodeTrace is one node's. Every slice has a value for each of Times, or is
// nil where nothing was recorded; a value that is missing is NaN.
type NodeTrace struct {
	Node string `json:"node"` // client or server
	// Times are the ends of the intervals, in seconds from the begin of the
	// measured window: negative in the warm-up, beyond Window after it.
	Times  []float64 `json:"times"`
	Window float64   `json:"window"` // length of the measured window, s

	CPU         map[string][]float64 `json:"cpu"`         // by mode, all CPUs together, CPU-seconds per second, idle left out
	Busiest     []float64            `json:"busiest"`     // share of the busiest CPU that was not idle, 0 to 1
	Receive     []float64            `json:"receive"`     // bit/s into the node's uplink
	Transmit    []float64            `json:"transmit"`    // bit/s out of it
	Retransmits []float64            `json:"retransmits"` // TCP segments sent again, 1/s
	Memory      []float64            `json:"memory"`      // bytes used

	CPUs  int       `json:"cpus"`            // that CPU and Busiest are of; 0 where nothing was recorded
	Power []float64 `json:"power,omitempty"` // W of the CPU packages (RAPL)
}

// Within are the values of the intervals of the measured window.
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

func FiniteOnly(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}
