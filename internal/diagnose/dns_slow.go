package diagnose

import (
	"fmt"
	"strings"
)

const (
	slowLookup = 50e-3 // s, median of a name's look-up
	lateLookup = 0.01  // share of look-ups that needed a second try
)

// dnsSlow: names are looked up slowly.
func dnsSlow() Cause {
	return Cause{
		ID: "dns-slow", Summary: "look-ups of names are slow, lost or many",
		Predicts: "the first request to a name slow; connections to addresses unharmed",
		Remedy:   "Ask with a final dot, lower ndots, use NodeLocal DNSCache; look at CoreDNS and its CPU limit.",
		Source:   "k8s#56903; resolv.conf(5) ndots",
		look: func(c *Case) Answer {
			p := c.path(DNS, false)
			if p == nil {
				return Answer{}
			}
			f := p.Probes[Lookup].Figures
			a := Answer{Excluded: fmt.Sprintf("a look-up takes %s in the median, %s at most, and none was lost", seconds(f[P50]), seconds(f[MaxTime]))}
			r := c.snapshot(p.From).Resolver
			e := []Evidence{{"look-up, median", seconds(f[P50]), p.From}, {"look-ups asked twice or lost", percent(f[Late] + f[Failed]), p.From}}
			if r != nil {
				e = append(e, Evidence{"ndots", fmt.Sprint(r.Ndots), p.From}, Evidence{"resolver", strings.Join(r.Servers, " "), p.From})
			}
			switch {
			case f[Late]+f[Failed] >= lateLookup:
				a.Claims = []Claim{{State: Supported, Explains: 0.7, Evidence: e, Node: c.nodeOf(p.From),
					Text: fmt.Sprintf("%s of the look-ups was lost or asked twice", percent(f[Late]+f[Failed]))}}
			case f[P50] >= slowLookup:
				text := fmt.Sprintf("a look-up takes %s", seconds(f[P50]))
				if f[Queries] >= 3 {
					text += fmt.Sprintf(" and %.0f queries, since ndots makes each search domain be asked first", f[Queries])
				}
				a.Claims = []Claim{{State: Supported, Explains: 0.6, Evidence: e, Node: c.nodeOf(p.From), Text: text}}
			}
			return a
		},
	}
}
