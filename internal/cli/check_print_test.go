package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/run"
)

// Several checks begin with their matrix; below it stands what is no plain pass.
func TestCheckMatrix(t *testing.T) {
	o := &run.CheckOutput{
		Results: []check.Result{
			{Check: "mtu", Contender: "flannel", UnderlayMTU: 1500, Cases: []check.Case{{Name: "size", Verdict: check.Pass, Found: "fits"}, {Name: "tcp", Verdict: check.Skip}}},
			{Check: "policy", Contender: "flannel", Nodes: []string{"a", "b"}, Cases: []check.Case{
				{Name: "ingress-forbidden", Verdict: check.Fail, Found: "open", Text: "a | b passed", Next: "Take another."},
				{Name: "ingress-allowed", Verdict: check.Pass, Found: "enforced"},
			}},
			{Check: "policy", Contender: "cilium", Cases: []check.Case{{Name: "ingress-forbidden", Verdict: check.Pass, Found: "enforced"}}},
		},
		Unsupported: []result.Unsupported{{Contender: "x", Reason: "no kernel."}},
	}
	var b bytes.Buffer
	if err := writeChecks(&b, o, "md"); err != nil {
		t.Fatal(err)
	}
	want := `| Contender | mtu size | policy ingress |
|---|---|---|
| cilium | – | enforced |
| flannel | fits | no: open (1 of 2) |

| Contender | Check | Nodes | Underlay | Verdict | Found | What, and what to do |
|---|---|---|---|---|---|---|
| flannel | policy | a, b |  | fail | open | ingress-forbidden: a \| b passed. See it alone: cnibench check policy --case ingress-forbidden --hold 10m. Take another. |

| Not here | Why, and what would help |
|---|---|
| x | no kernel |
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	r := check.Result{Check: "mtu", Contender: "x", Cases: []check.Case{
		{Name: "size", Verdict: check.Fail, Found: "fragments lost", Text: "too large", Next: "Mend."},
		{Name: "tcp", Verdict: check.Fail, Found: "stalls", Text: "a transfer ended"},
	}}
	if diff := cmp.Diff([][]string{
		{"x", "mtu", "", "", "fail", "fragments lost", "size: too large. Mend."},
		{"x", "mtu", "", "", "fail", "stalls", "tcp: a transfer ended"},
	}, checkRows(&r)); diff != "" {
		t.Errorf("each failure is a row: (-want +got)\n%s", diff)
	}
	b.Reset()
	o.Results = o.Results[1:]
	if err := writeChecks(&b, o, "text"); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.Contains(got, "policy ingress") || strings.Count(got, "enforced") != 1 || !strings.Contains(got, "Not here") {
		t.Errorf("one check is a row a contender:\n%s", got)
	}
}

// Pass means protected: what went in clear, as nobody promised otherwise, has another word.
func TestPlainIsNoPass(t *testing.T) {
	for found, want := range map[string]string{check.Plain: "NOT ENCRYPTED", "encrypted": "pass"} {
		r := check.Result{Check: "encryption", Contender: "x", Cases: []check.Case{{Name: "tcp", Verdict: check.Pass, Found: found}}}
		if got := checkRows(&r)[0][4]; got != want {
			t.Errorf("%s: %q, want %q", found, got, want)
		}
	}
}

// What was checked of nobody is a line, the reason of most, and no table of skips.
func TestNothingChecked(t *testing.T) {
	skipped := func(contender, text string) check.Result {
		return check.Result{Check: "policy", Contender: contender, Cases: []check.Case{{Name: "network", Verdict: check.Skip, Text: text, Next: "Take a cluster."}}}
	}
	o := &run.CheckOutput{Results: []check.Result{skipped("host", "one network"), skipped("a", "no product here"), skipped("b", "no product here")}}
	var b bytes.Buffer
	if err := writeChecks(&b, o, "text"); err != nil || b.Len() > 0 {
		t.Errorf("%v: %s", err, b.String())
	}
	if got, want := o.Idle(), "no product here. Take a cluster."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	o.Results[1].Cases[0].Verdict = check.Pass
	if got := o.Idle(); got != "" {
		t.Errorf("something was checked: %q", got)
	}
}
