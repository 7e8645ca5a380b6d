package mesh

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Plan is a mesh before anything is sent. With the figures it gives the report, so that figures
// on a disk are all that a report, a resumption or a comparison needs.
type Plan struct {
	Nodes []Node `json:"nodes"`
	Seed  uint64 `json:"seed"`
	// Partners is to how many others a node sends light probes, in matchings; 0: to all.
	Partners int `json:"partners"`
	// Matchings are those of the tournament of bursts; 0: every two nodes; below 0: no bursts.
	Matchings int     `json:"matchings"`
	Probes    int     `json:"probes"` // datagrams of one direction: 299 show a loss of 1 % with a chance of 95 %
	Rate      float64 `json:"rate"`   // of probes to one target, 1/s
	Limits    Limits  `json:"limits"`
	Senders   int     `json:"senders"` // nodes that send light probes at the same time
	AtOnce    int     `json:"at_once"` // targets that a node probes at the same time
	// Round is set if the mesh is one round of watching (round.go).
	Round *Round `json:"round,omitempty"`
}

const (
	allPairs      = 200 // nodes up to which light probes go to all
	lightPartners = 16  // beyond that
)

// DefaultPlan suits a cluster whose nodes are machines of their own.
func DefaultPlan(nodes []Node) Plan {
	p := Plan{Nodes: nodes, Matchings: 4, Limits: DefaultLimits, Probes: 300, Rate: 1000, Senders: 10, AtOnce: 4}
	if len(nodes) > allPairs {
		p.Partners, p.Senders = lightPartners, len(nodes)/20
	}
	return p
}

// streams of random numbers, one for each purpose, so that a resumed mesh draws the same ones.
const (
	drawLight = iota + 0x6d657368
	drawBursts
	drawTrials
)

func (p *Plan) random(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(p.Seed, purpose)) }

// Light returns to whom each node sends light probes: a regular graph in random order.
func (p *Plan) Light() [][]int {
	out := make([][]int, len(p.Nodes))
	for _, round := range NewDesign(len(p.Nodes), p.Partners, p.random(drawLight)).Rounds {
		for _, pair := range round {
			out[pair.From], out[pair.To] = append(out[pair.From], pair.To), append(out[pair.To], pair.From)
		}
	}
	return out
}

// Bursts returns the tournament.
func (p *Plan) Bursts() Design {
	if p.Matchings < 0 {
		return Design{Nodes: len(p.Nodes)}
	}
	return NewDesign(len(p.Nodes), p.Matchings, p.random(drawBursts))
}

// Suspects returns what the figures of the first pass suggest, and the trials that decide. The
// same figures in any order give the same answer.
func (p *Plan) Suspects(figures []Figure) ([]Suspect, []Trial) {
	suspects := Screen(p.Nodes, p.first(figures))
	if p.Round == nil {
		return suspects, PlanTrials(p.Nodes, suspects, cycles, p.random(drawTrials))
	}
	return suspects, p.Round.choose(p.Nodes, suspects, PlanTrials(p.Nodes, suspects, p.Round.Cycles, p.random(drawTrials)))
}

// first returns the figures of the first pass, without those of nodes that ended.
func (p *Plan) first(figures []Figure) []Figure {
	gone := map[int]bool{}
	for _, f := range figures {
		if f.Gone {
			gone[f.From] = true
		}
	}
	var out []Figure
	for _, f := range figures {
		if f.Trial == 0 && f.Held == 0 && !gone[f.From] && !gone[f.To] {
			out = append(out, f)
		}
	}
	sortFigures(out)
	return out
}

// Report judges the figures. A trial that lacks one, or whose sender was late, decides nothing.
func (p *Plan) Report(figures []Figure) *Report {
	suspects, trials := p.Suspects(figures)
	type key struct {
		trial int
		pair  Pair
	}
	values := map[key]Figure{}
	for _, f := range figures {
		if f.Trial > 0 {
			values[key{f.Trial, f.Pair}] = f
		}
	}
	var outcomes []Outcome
	judged := map[int]bool{}
	for i, t := range trials {
		o := Outcome{Trial: t}
		o.Probes, _ = p.Again()
		whole := true
		for j, pair := range append([]Pair{t.Test}, t.Controls...) {
			f, measured := values[key{i + 1, pair}]
			whole = whole && measured && !(f.Late && t.Metric != MTU)
			if j == 0 {
				o.Value = f.Values[t.Metric]
			} else {
				o.ControlValues = append(o.ControlValues, f.Values[t.Metric])
			}
		}
		if whole {
			outcomes, judged[t.Suspect] = append(outcomes, o), true
		}
	}
	level := falseAll
	if p.Round != nil {
		level = p.Round.Level
	}
	r := NewReport(p.Nodes, p.first(figures), Judge(p.Nodes, suspects, outcomes, level))
	r.Suspects, r.Judged, r.Cap, r.Cost = len(suspects), len(judged), p.Limits.Rate, p.Cost()
	for _, f := range figures {
		if f.Gone {
			r.Gone = append(r.Gone, p.Nodes[f.From].Name)
		}
		r.Held = max(r.Held, f.Held)
	}
	return r
}

// Cost returns what the first pass takes.
func (p *Plan) Cost() Cost {
	c := CostOf(p.Nodes, p.Bursts().Slots(p.Nodes, p.Limits), p.Limits)
	c.Seconds *= 2 // on both networks
	c.NodeBytes *= 2
	partners := 0
	for _, to := range p.Light() {
		partners = max(partners, len(to))
	}
	c.Partners = partners
	rounds := math.Ceil(float64(len(p.Nodes)) / float64(max(1, p.Senders)))
	each := math.Ceil(float64(partners)/float64(max(1, p.AtOnce))) * (float64(p.Probes)/p.Rate + settle.Seconds())
	c.LightSeconds = 2 * rounds * each
	c.LightRate = p.Rate * float64(min(p.AtOnce, partners)) * probeBits
	return c
}

const (
	settle    = 150 * time.Millisecond // to open sockets, find the packet size and wait for the last answers
	probeBits = 8 * (64 + 28 + 14)     // a probe on the wire
)

// String returns the plan for people who decide before anything is sent.
func (p *Plan) String() string {
	if p.Round != nil {
		return p.roundText()
	}
	c := p.Cost()
	text := fmt.Sprintf("%d nodes. Light probes: from each node to %d others on each network, %d datagrams of 64 bytes each, about %.0f s; a node sends at most %s.\n",
		len(p.Nodes), c.Partners, p.Probes, c.LightSeconds, Format(Goodput, c.LightRate))
	text += fmt.Sprintf("Bursts: %d directions of %v on each network, at most %d at once, about %.0f s; ", c.Pairs, p.Limits.Slice, max(1, p.Limits.AtOnce), c.Seconds)
	if p.Limits.Rate == 0 {
		return text + "a node sends as fast as the network lets it.\nSuspects are measured again after that, 15 times each.\n"
	}
	text += fmt.Sprintf("a node sends or receives at most %s, in all %.0f MB.\n", Format(Goodput, c.NodeRate), c.NodeBytes/1e6)
	if c.BorderRate > 0 {
		text += fmt.Sprintf("Between two zones go at most %s at a time.\n", Format(Goodput, c.BorderRate))
	}
	return text + "Suspects are measured again after that, 15 times each.\n"
}

// Within makes the plan fit the time: fewer partners and matchings, at least 4 of each.
func (p Plan) Within(limit time.Duration) Plan {
	for limit > 0 {
		c := p.Cost()
		if 1.5*(c.Seconds+c.LightSeconds) <= limit.Seconds() { // a third is for suspects
			break
		}
		fewer := func(k int) int {
			if k == 0 || k >= len(p.Nodes) {
				k = len(p.Nodes) - 1
			}
			return max(4, k/2)
		}
		before := p
		if c.LightSeconds > c.Seconds && fewer(p.Partners) < c.Partners {
			p.Partners = fewer(p.Partners)
		} else if fewer(p.Matchings) < p.Matchings || p.Matchings == 0 {
			p.Matchings = fewer(p.Matchings)
		} else {
			p.Partners = fewer(p.Partners)
		}
		if p.Partners == before.Partners && p.Matchings == before.Matchings {
			break
		}
	}
	return p
}
