package check

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMatrix(t *testing.T) {
	results := []Result{
		{Check: "mtu", Contender: "b", Cases: []Case{{Name: "size", Verdict: Pass, Found: "fits"}, {Name: "tcp", Verdict: Pass, Found: "flows"}}},
		{Check: "mtu", Contender: "b", Cases: []Case{{Name: "size", Verdict: Fail, Found: "wastes"}, {Name: "tcp", Verdict: Pass, Found: "flows"}}},
		{Check: "policy", Contender: "b", Cases: []Case{
			{Name: "ingress-forbidden", Verdict: Fail, Found: wideOpen}, {Name: "ingress-allowed", Verdict: Pass, Found: enforced},
			{Name: "ingress-udp", Verdict: Fail, Found: leaks}, {Name: "egress-port-range", Verdict: Skip, Found: "single port"},
			{Name: "ingress-ip-block-ipv6", Verdict: Pass, Found: enforced}, {Name: "egress-sctp", Verdict: Skip},
			{Name: startCase, Verdict: Fail, Found: leaks}, {Name: "effect", Verdict: Pass, Found: timed, Values: map[string]int{"effect_ms": 12}}, {Name: "removal", Verdict: Pass, Found: enforced},
		}},
		{Check: "mtu", Contender: "a", Error: "it does not come up"},
		{Check: "policy", Contender: "a", Cases: []Case{{Name: "network", Verdict: Skip}}},
	}
	m := NewMatrix(results)
	var lines []string
	line := "contender"
	for _, c := range m.Columns {
		line += "|" + c.Check + " " + c.Name
	}
	lines = append(lines, line)
	for _, r := range m.Rows {
		line := r.Contender
		for _, c := range r.Cells {
			line += "|" + c.String()
		}
		lines = append(lines, line)
	}
	want := []string{
		"contender|mtu size|mtu TCP|policy ingress|policy egress|policy ports|policy port range|policy ipBlock|policy SCTP|policy IPv6|policy start|policy effect|policy removal",
		"a|– error|– error|–|–|–|–|–|–|–|–|–|–",
		"b|no: wastes (1 of 2)|flows|no: open (1 of 2)|–|no: leaks|– single port|–|–|enforced|no: leaks|12 ms|enforced",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Every case of the policy check has a column.
func TestMatrixHasAllCases(t *testing.T) {
	r := Result{Check: "policy", Contender: "x"}
	for _, x := range trials() {
		for _, p := range x.parts {
			r.Cases = append(r.Cases, Case{Name: p.name, Verdict: Pass, Found: enforced})
		}
	}
	asked := 0
	for _, row := range NewMatrix([]Result{r}).Rows {
		for _, c := range row.Cells {
			asked += c.Cases
		}
	}
	if asked != len(r.Cases) {
		var names []string
		for _, c := range r.Cases {
			names = append(names, c.Name)
		}
		t.Errorf("%d of %d cases have a column: %s", asked, len(r.Cases), strings.Join(names, ", "))
	}
}
