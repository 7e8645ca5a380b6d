package mesh

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Round is what differs in a mesh that is one round of watching: probes are spread over the
// round, few suspects are measured again, and the level of the test is that of all rounds.
type Round struct {
	Every  time.Duration `json:"every_ns"` // from one round to the next
	Probes int           `json:"probes"`   // datagrams of one direction in a trial
	Rate   float64       `json:"rate"`     // of these, 1/s
	Level  float64       `json:"level"`    // the chance that a sound cluster gets a wrong name in this round
	Cycles int           `json:"cycles"`   // of each of a suspect's three pairs
	Most   int           `json:"most"`     // suspects that are measured again
	// Open are places that an earlier round named. While they are suspects they stay slow,
	// and are not measured again.
	Open []Place `json:"open,omitempty"`
}

const (
	roundPartners = 16
	roundRate     = 16.0 // probes that a node sends on one network, 1/s
	roundShare    = 0.85 // of a round; the rest is for packet sizes and suspects
	leastProbes   = 24   // a median needs 10 values on either side
	longestVisit  = 9 * time.Minute
	sizeCycles    = 2 // of a packet's size, which is no matter of noise; each packet is tried three times
	// FalseAlarmsIn is how long a sound cluster is watched for one false alarm at most.
	FalseAlarmsIn = 7 * 24 * time.Hour
	// probeCPU is what a probe and its answer take of the CPUs of both nodes, seconds: measured in
	// a lab on a busy machine (docs/mesh.md). Most of it is not the network's, but the engine's.
	probeCPU = 880e-6
)

// RoundPlan returns the plan of one round. Rounds with different seeds choose different partners.
//
// A round names a sound place with a chance of at most every/FalseAlarmsIn, since the test is of
// fresh figures alone and exact. So all rounds of a week together name less than one on average,
// whatever the noise of the first figures is.
func RoundPlan(nodes []Node, every time.Duration, seed uint64) Plan {
	partners := max(1, min(roundPartners, len(nodes)-1))
	visit := min(time.Duration(roundShare*float64(every)/float64(partners)), longestVisit).Seconds()
	probes := max(leastProbes, math.Floor(roundRate*visit))
	round := &Round{Every: every, Probes: 300, Rate: 1000, Level: min(falseAll, float64(every)/float64(FalseAlarmsIn)), Most: 3}
	// The least p of the signed ranks of n cycles is 2^(1-n), and Holm takes Most times that.
	round.Cycles = max(cycles, int(math.Ceil((1+math.Log2(float64(round.Most)/round.Level))/partnersOfSuspect)))
	return Plan{
		Nodes: nodes, Seed: seed, Partners: partners, Matchings: -1, Probes: int(probes), Rate: probes / visit,
		Limits: DefaultLimits, Senders: 2 * max(1, len(nodes)), AtOnce: 1, Round: round,
	}
}

// Again returns the probes of one direction in a trial and their rate, 1/s.
func (p *Plan) Again() (probes int, rate float64) {
	if p.Round != nil {
		return p.Round.Probes, p.Round.Rate
	}
	return p.Probes, p.Rate
}

// choose returns the trials of the suspects that are measured again.
func (r *Round) choose(nodes []Node, suspects []Suspect, trials []Trial) []Trial {
	chosen := map[int]bool{}
	for i, s := range suspects {
		if len(chosen) < r.Most && !slices.ContainsFunc(r.Open, placeOf(nodes, s).Within) {
			chosen[i] = true
		}
	}
	return slices.DeleteFunc(trials, func(t Trial) bool { return !chosen[t.Suspect] || t.Metric == MTU && t.Cycle > sizeCycles })
}

// SuspectPlaces returns the suspects of the first pass as places.
func (p *Plan) SuspectPlaces(figures []Figure) (out []Place) {
	for _, s := range Screen(p.Nodes, p.first(figures)) {
		out = append(out, placeOf(p.Nodes, s))
	}
	return out
}

// Within reports whether a slow place explains that this one is slow: it is the same, or the same
// on the nodes' own network. A node's two sides are one place.
func (p Place) Within(slow Place) bool {
	if p.Metric != slow.Metric || p.Path != slow.Path && slow.Path != Host {
		return false
	}
	if node := p.Node(); node != "" {
		return node == slow.Node()
	}
	return p.Kind == slow.Kind && p.From == slow.From && p.To == slow.To
}

// Node returns the node to blame; "" for a link or a border.
func (p Place) Node() string {
	switch p.Kind {
	case Sender, NodeBoth:
		return p.From
	case Receiver:
		return p.To
	}
	return ""
}

// RoundCost is what watching takes of one node.
type RoundCost struct {
	ProbesPerSecond float64 // sent, on both networks; as many are answered
	Rate            float64 // bit/s sent, answers included; as much is received
	CPU             float64 // share of one CPU
}

// RoundCost returns what the round takes, without suspects and bursts.
func (p *Plan) RoundCost() RoundCost {
	partners := 2 * float64(min(p.Partners, len(p.Nodes)-1)) / p.Round.Every.Seconds() // on both networks, 1/s
	c := RoundCost{ProbesPerSecond: partners * float64(p.Probes)}
	const packet = 8 * (1500 + 14) // one of the MTU finds the size, and is answered
	c.Rate = 2*c.ProbesPerSecond*probeBits + 2*partners*packet
	c.CPU = c.ProbesPerSecond * probeCPU
	return c
}

// roundText is String of a round.
func (p *Plan) roundText() string {
	c := p.RoundCost()
	text := fmt.Sprintf("%d nodes, watched in rounds of %v: in each one a node sends %d probes of 64 bytes to each of %d others on each network. "+
		"That is %.0f a second, %.3g kbit/s sent and as much received by each node, and about %.2g %% of a CPU.\n",
		len(p.Nodes), p.Round.Every, p.Probes, min(p.Partners, len(p.Nodes)-1), c.ProbesPerSecond, c.Rate/1e3, 100*c.CPU)
	text += fmt.Sprintf("At most %d suspects a round are measured again, %d times each with %d probes at %.0f a second. ",
		p.Round.Most, partnersOfSuspect*p.Round.Cycles, p.Round.Probes, p.Round.Rate)
	return text + fmt.Sprintf("A sound cluster gets a false alarm a week at most (level %.2g a round).\n", p.Round.Level)
}
