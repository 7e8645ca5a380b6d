// Package plant puts a known fault into the network namespace that it runs in: a link
// that is capped, one that loses packets, work on the path of each packet, a narrow
// link. The self-test then looks whether a run finds it. The package takes nothing
// back: the namespace goes away with the network. Next: plant_linux.go.
package plant

// Fault is one that can be planted.
type Fault string

// The faults.
const (
	Capped Fault = "capped" // the link sends at a rate that it is told and no faster
	Lossy  Fault = "lossy"  // Loss of the UDP packets to LossyPort are dropped as they come in, by count
	Slow   Fault = "slow"   // every packet that comes in passes Rules rules
	Narrow Fault = "narrow" // the link takes NarrowMTU bytes
)

// The faults' sizes.
const (
	Loss      = 0.02 // share of the packets
	LossyPort = 5301
	Rules     = 400
	NarrowMTU = 1400 // bytes
)
