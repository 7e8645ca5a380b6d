package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/unit"
)

// cutOff are the ways in which a connection that a policy forbids may end.
var cutOff = []agent.Kind{agent.TimedOut, agent.Refused, agent.Reset, agent.Unreachable, agent.Denied}

// judgePolicy compares what was seen of the part's connections with what was
// expected: a forbidden one may pass in no try, and an allowed one must in
// every.
func judgePolicy(p part, seen []probeResult, want []bool, tries int) Case {
	c := Case{Name: p.name, Verdict: Pass, Found: enforced}
	var leaked, cut []probeResult
	allowed, forbidden := 0, 0
	ends := map[agent.Kind]bool{}
	for i, s := range seen {
		switch {
		case !p.has(s.flow):
			continue
		case s.reached < tries && !slices.Contains(cutOff, s.kind):
			c.Verdict, c.Found = Skip, ""
			c.Text = fmt.Sprintf("the probe from %s to %s ended with neither an answer nor a timeout or a refusal: %s (%s)", s.from, s.over(), s.kind, s.detail)
			return c
		case want[i]:
			allowed++
			if s.reached < tries {
				cut = append(cut, s)
			}
		default:
			forbidden++
			if s.reached > 0 {
				leaked = append(leaked, s)
			} else {
				ends[s.kind] = true
			}
		}
	}
	c.Values = map[string]int{"allowed": allowed, "forbidden": forbidden, "leaked": len(leaked), "cut": len(cut), "tries": tries}
	var words []string
	if len(leaked) > 0 {
		words = append(words, fmt.Sprintf("%s reached %s in %d of %d tries, which is forbidden%s",
			leaked[0].from, leaked[0].over(), leaked[0].reached, tries, countOthers(len(leaked), forbidden)))
	}
	if len(cut) > 0 {
		words = append(words, fmt.Sprintf("%s did not reach %s in %d of %d tries (%s), which is allowed%s",
			cut[0].from, cut[0].over(), tries-cut[0].reached, tries, cut[0].kind, countOthers(len(cut), allowed)))
	}
	switch {
	case len(words) == 0:
		if allowed > 0 {
			words = append(words, fmt.Sprintf("%s passed", unit.Plural(allowed, "allowed connection")))
		}
		if forbidden > 0 {
			words = append(words, fmt.Sprintf("%s ended with %s", unit.Plural(forbidden, "forbidden connection"), joinKinds(ends)))
		}
		c.Text = strings.Join(words, ", ") + fmt.Sprintf(", in each of %d tries", tries)
		return c
	case len(cut) == 0 && len(leaked) == forbidden:
		c.Found = wideOpen
	case len(cut) == 0:
		c.Found = leaks
	case len(leaked) == 0:
		c.Found = cuts
	default:
		c.Found = wrongBoth
	}
	c.Verdict, c.Text = Fail, strings.Join(words, "; ")
	return c
}

// countOthers returns how many more there are like the one that was named.
func countOthers(n, of int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf("; likewise %d more of %d", n-1, of)
}

func joinKinds(kinds map[agent.Kind]bool) string {
	var words []string
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		words = append(words, string(k))
	}
	return strings.Join(words, " or ")
}
