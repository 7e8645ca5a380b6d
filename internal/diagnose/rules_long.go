package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// manyRules is how many rules of one chain a packet may cross before they cost.
const manyRules = 300

// longest returns the chain with the most rules. Chains of a table of NAT are those of
// new connections; a chain whose name says Services is one.
func (s *Snapshot) longest(nat bool) (chain string, rules int) {
	for _, name := range slices.Sorted(maps.Keys(s.Rules)) {
		lower := strings.ToLower(name)
		if s.Rules[name] > rules && nat == (strings.Contains(lower, " nat ") || strings.Contains(lower, "service")) {
			chain, rules = name, s.Rules[name]
		}
	}
	return chain, rules
}

// rulesLong: packets cross many rules.
func rulesLong() Cause {
	return Cause{
		ID: "rules-long", Summary: "packets cross a long list of rules",
		Predicts: "round trips and bulk of pods slower by the list, on the node that has it; the nodes' own unharmed if the list is of forwarding",
		Remedy:   "Shorten the list: sets or maps (nftables, ipset) in place of one rule per address; find who makes it.",
		Source:   "kube-proxy in iptables mode has rules that are tried one after the other; nft list ruleset | wc -l",
		look: func(c *Case) Answer {
			a := Answer{}
			seen := false
			for _, n := range c.nodes() {
				if n.Rules == nil {
					continue
				}
				seen = true
				chain, rules := n.longest(false)
				if a.Excluded == "" {
					a.Excluded = fmt.Sprintf("the longest chain has %d rules", rules)
				}
				if rules < manyRules {
					continue
				}
				x := Claim{State: Suspected, Node: n.Endpoint, Explains: 0.6,
					Text:     fmt.Sprintf("packets through %s cross up to %d rules of the chain %s", n.Endpoint, rules, chain),
					Evidence: []Evidence{{"rules", fmt.Sprint(rules), n.Endpoint + " " + chain}},
					Next:     "nft list chain " + chain + " | head   on " + n.Endpoint,
				}
				if peer := c.peer(n.Endpoint); peer != nil && peer.Rules != nil {
					_, other := peer.longest(false)
					x.Evidence = append(x.Evidence, Evidence{"rules", fmt.Sprint(other), peer.Endpoint + ", its longest chain"})
				}
				for _, back := range directions {
					ratio, ok := c.rtt(back)
					if c.slowRTT(back) || c.slowBulk(back) {
						x.State, x.Direction = Supported, c.direction(back)
						if ok {
							x.Evidence = append(x.Evidence, Evidence{"round trip of pods to nodes", fmt.Sprintf("%.2g×", ratio), c.direction(back)})
						}
						break
					}
				}
				a.Claims = append(a.Claims, x)
			}
			if !seen {
				a.Unseen = &Unseen{Why: "rules can be counted by root of the node alone", Remedy: "--privileged"}
			}
			return a
		},
	}
}
