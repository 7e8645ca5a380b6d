// Package mesh plans measurements between all nodes of a cluster and says which node, link or
// zone border is to blame for slow ones. A mesh has two passes. The first one measures every
// node against some partners and only suggests suspects (screen.go). The second one measures
// each suspect again beside nodes that are known to be good, in the same cycles, and an exact
// test on these fresh figures alone decides (confirm.go). So a wild figure of the first pass
// costs time and blames nobody.
//
// The package is pure: it sends nothing and knows no arena, clock or disk. Next: plan.go, then
// replay.go, fit.go, screen.go, confirm.go and share.go.
package mesh

import "math"

// Node is a machine of the cluster.
type Node struct {
	Name string `json:"name"`
	Zone string `json:"zone,omitempty"` // "": the cluster names none
	// Labels are what slow places may have in common: kernel, driver, machine type.
	Labels map[string]string `json:"labels,omitempty"`
}

// Pair is one direction between two nodes, by their indices in the list of nodes.
type Pair struct{ From, To int }

// Back returns the other direction.
func (p Pair) Back() Pair { return Pair{p.To, p.From} }

// The networks that a mesh compares.
const (
	Pod  = "pod"
	Host = "host"
)

// Metric is what a mesh judges, by its name in the JSON.
type Metric string

const (
	Goodput Metric = "goodput" // bit/s, higher is better
	RTT     Metric = "rtt_p50" // s, lower is better
	Loss    Metric = "loss"    // 0 to 1, lower is better
	MTU     Metric = "mtu"     // bytes of the largest packet that crosses whole
)

// Metrics are all metrics, in the order in which they are judged and shown.
var Metrics = []Metric{MTU, Loss, RTT, Goodput}

// Figure is what one direction of a pair gave on one network.
type Figure struct {
	Pair
	Path   string             // Pod or Host
	Values map[Metric]float64 // a metric that was not measured is absent
	Probes int                // datagrams sent, of which Loss is the share
	// Late says that the sender itself was late. The figure then blames nobody.
	Late bool
	// Trial is the number of the second pass's trial, from 1; 0: the first pass.
	Trial int
	// Gone says that the node From ended while the mesh was measured. To is From too.
	Gone bool
	// Held is the number of pairs at a time at which the load was held back. Such a figure, as
	// one that is Gone, is a mark and has no values.
	Held int
}

// Kind is what a place is.
type Kind string

const (
	Sender   Kind = "sender"   // what a node sends is slow
	Receiver Kind = "receiver" // what a node receives is slow
	NodeBoth Kind = "node"     // both
	Link     Kind = "link"     // one direction between two nodes
	Border   Kind = "zone"     // one direction between two zones
)

// Place is a culprit or a suspect. From and To are node names, or zones of a Border; a Sender
// has only From, a Receiver only To, a NodeBoth both, which are the same.
type Place struct {
	Kind   Kind    `json:"kind"`
	From   string  `json:"from,omitempty"`
	To     string  `json:"to,omitempty"`
	Path   string  `json:"path"`
	Metric Metric  `json:"metric"`
	Value  float64 `json:"value"` // the place's typical figure
	Usual  float64 `json:"usual"` // the typical figure of the others
	// Ratio is Value/Usual; 0 where Usual is 0, as of loss.
	Ratio float64 `json:"ratio,omitempty"`
	// Low and High enclose Ratio at 95 %; 0: the metric has no interval.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
	// P is the adjusted p of the second pass; of an MTU, which is certain, it is 0.
	P float64 `json:"p"`
}

// limits are how far from usual a place must be to be worth a name: a ratio above 1 for goodput
// and RTT, a difference for loss. Healthy nodes of one kind differ by less.
var limits = map[Metric]float64{Goodput: 1.15, RTT: 1.5, Loss: 0.0005}

// badness returns the value on a scale on which noise adds up and higher is worse.
func badness(m Metric, value float64) float64 {
	switch {
	case m == Goodput:
		return -math.Log(value)
	case m == RTT:
		return math.Log(value)
	}
	return value
}

// valueOf is the inverse of badness.
func valueOf(m Metric, bad float64) float64 {
	switch {
	case m == Goodput:
		return math.Exp(-bad)
	case m == RTT:
		return math.Exp(bad)
	}
	return bad
}

// limit returns the least difference on the scale of badness that is worth a name.
func limit(m Metric) float64 {
	if m == Loss {
		return limits[m]
	}
	return math.Log(limits[m])
}
