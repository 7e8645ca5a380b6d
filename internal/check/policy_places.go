package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cnibench/cnibench/internal/unit"
)

// places counts, by the node of the target, forbidden connections and those that
// passed, over the cases that failed.
type places struct {
	nodes             map[string]string // of pods
	forbidden, leaked map[string]int
}

func (p *places) note(of part, seen []probeResult, want []bool) {
	for i, s := range seen {
		if !of.has(s.flow) || want[i] {
			continue
		}
		node := p.nodes[s.to]
		p.forbidden[node]++
		if s.reached > 0 {
			p.leaked[node]++
		}
	}
}

// only is a sentence where all leaks are towards pods of one node, though there was
// as much to forbid elsewhere; else "".
func (p *places) only() string {
	if len(p.leaked) != 1 || len(p.forbidden) < 2 {
		return ""
	}
	node := slices.Collect(maps.Keys(p.leaked))[0]
	elsewhere := 0
	for name, n := range p.forbidden {
		if name != node {
			elsewhere += n
		}
	}
	return fmt.Sprintf("Every leak is towards pods on %s: %d of %s there, none of %d elsewhere. Look at the policy engine and the rules of that node.",
		node, p.leaked[node], unit.Plural(p.forbidden[node], "forbidden connection"), elsewhere)
}
