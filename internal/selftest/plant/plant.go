// Package plant puts a known fault into the network namespace that it runs in: a link
// that is capped, one that loses packets, work on the path of each packet, one that holds
// long messages back, a narrow link. The self-test then looks whether a run finds it. The package takes nothing
// back: the namespace goes away with the network. Next: plant_linux.go.
package plant

import "time"

// Fault is one that can be planted.
type Fault string

// The faults.
const (
	Capped  Fault = "capped"  // the link sends at a rate that it is told and no faster
	Lossy   Fault = "lossy"   // Loss of the UDP packets to LossyPort are dropped as they come in, by count
	Slow    Fault = "slow"    // every packet that comes in passes Rules rules
	Delayed Fault = "delayed" // the link holds the end of a message of DelayedSize back for Delay()
	Narrow  Fault = "narrow"  // the link takes NarrowMTU bytes
)

// The faults' sizes.
const (
	Loss      = 0.02 // share of the packets
	LossyPort = 5301
	Rules     = 400
	NarrowMTU = 1400 // bytes

	DelayedSize = 10_000 // bytes of TCP's payload
	delayRate   = 20e6   // bit/s, as the link counts frames
	delayBurst  = 2000   // bytes that a link that was quiet sends at once
)

// Delay is how long the last frame of a message of DelayedSize waits at a link that is
// Delayed and was quiet: until the frames before it and its own have their tokens.
func Delay() time.Duration {
	const segment, headers = 1448, 14 + 20 + 32 // Ethernet, IPv4, TCP with timestamps
	const frames = (DelayedSize + segment - 1) / segment
	return time.Duration((DelayedSize + frames*headers - delayBurst) * 8 / delayRate * float64(time.Second))
}
