package report

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/result"
)

func TestTraceBudget(t *testing.T) {
	r := full()
	r.Traces = nil
	for _, c := range []string{"host", "macvlan"} {
		for round := range 6 {
			r.Traces = append(r.Traces, trace(c, "dts", round+1, 24))
		}
	}
	r.Traces = append(r.Traces, trace("host", "idle", 4, 24), trace("host", "idle", 2, 24), trace("host", "idle", 3, 24))
	v := &sheet{layout.New(finite(r))}
	whole := v.traces(1 << 30)
	if len(whole.List) != 15 || whole.Note != "" {
		t.Errorf("%d recordings, note %q; want all and none", len(whole.List), whole.Note)
	}
	rounds := func(tr traces) (got []int) {
		for _, raw := range tr.List {
			var one traceData
			if err := json.Unmarshal(raw, &one); err != nil {
				t.Fatal(err)
			}
			got = append(got, one.Round)
		}
		return got
	}
	few := v.traces(len(whole.List[0]) * 4)
	middle := func(contender string) int {
		for round := range 6 {
			if v.isMiddle(&analysis.Trace{Key: result.Key{Contender: contender, Underlay: "switch", Step: "dts", Round: round + 1}}) {
				return round + 1
			}
		}
		return 0
	}
	// Of idle no round has goodput: the one in the middle of 2, 3 and 4.
	if diff := cmp.Diff([]int{middle("host"), middle("macvlan"), 3}, rounds(few)); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(few.Note, "3 of 15 recordings") {
		t.Errorf("the note is %q", few.Note)
	}
	none := v.traces(10)
	if len(none.List) != 0 || !strings.Contains(none.Note, "0 of 15") {
		t.Errorf("%d recordings in ten bytes", len(none.List))
	}
}

// TestMiddleRound: the round is that of the median goodput.
func TestMiddleRound(t *testing.T) {
	r := sample(6)
	for i := range r.Results {
		if res := &r.Results[i]; res.Contender == "host" && res.Step == "dts" && res.Metric == "goodput" {
			res.Values = []float64{9, 1, 5, 8, 4, 2}
		}
	}
	v := &sheet{layout.New(r)}
	for round := 1; round <= 6; round++ {
		if got := v.isMiddle(&analysis.Trace{Key: result.Key{Contender: "host", Underlay: "switch", Step: "dts", Round: round}}); got != (round == 5) {
			t.Errorf("round %d: %v", round, got)
		}
	}
}

func TestTraceValues(t *testing.T) {
	v := &sheet{layout.New(&analysis.Report{Baseline: "host"})}
	tr := analysis.Trace{Key: result.Key{Contender: "gone", Round: 2}, Nodes: []analysis.NodeTrace{{
		Node: "client", Window: 3, Times: []float64{1, 2}, CPU: map[string][]float64{"user": {0.123456, math.NaN()}}, Receive: []float64{math.Inf(1), 123456789}, Memory: []float64{1234567890, 5},
	}}}
	got, err := json.Marshal(v.traceData(&tr))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"g":-1,"s":-1,"c":-1,"round":2,"nodes":[{"node":"client","window":3,"times":[1,2],"cpu":{"user":[0.12,null]},"receive":[null,1.23e+08],"memory":[1.2346e+09,5]}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestDecision(t *testing.T) {
	measured := []string{"host", "fast", "policied", "sealed", "both"}
	can := func(contender string, names ...string) (out []analysis.Capability) {
		for _, need := range []string{"policy", "egress", "encryption", "ipv6"} {
			value := "no"
			for _, n := range names {
				if n == need {
					value = "yes"
				}
			}
			out = append(out, analysis.Capability{Contender: contender, Name: need, Value: value, Source: "catalogue"})
		}
		return out
	}
	tests := map[string]struct {
		can  []analysis.Capability
		want *decision
	}{
		"rarest first, one answer for several needs": {
			append(append(append(can("fast", "ipv6"), can("policied", "policy", "egress")...), can("sealed", "encryption")...), can("both", "policy", "egress", "encryption")...),
			&decision{Else: 1, Questions: []question{
				{Take: 2, Words: "policies on ingress or egress"},
				{Take: 3, Words: "encryption"},
			}},
		},
		"a failed check beats the catalogue": {
			append(append(can("fast"), can("policied", "policy")...), append(can("both", "policy"),
				analysis.Capability{Contender: "policied", Name: "policy", Value: "no", Source: "check"})...),
			&decision{Else: 1, Questions: []question{{Take: 4, Words: "policies on ingress"}}},
		},
		"the first can do everything": {can("fast", "policy", "egress", "encryption", "ipv6"), nil},
		"nobody can":                  {append(can("fast"), can("both")...), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &analysis.Report{Baseline: "host", Capabilities: test.can, Recommendation: &analysis.Recommendation{Kernel: "6.18.0", Underlay: "switch"}}
			add(r, "dts", "pod", "goodput", 1, measured, []float64{5, 4, 3, 2, 1}, make([]int, 5))
			for _, c := range measured[1:] {
				r.Recommendation.Ranked = append(r.Recommendation.Ranked, analysis.Choice{Contender: c})
			}
			if diff := cmp.Diff(test.want, (&sheet{layout.New(r)}).choice().Decision); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFamilies(t *testing.T) {
	step := func(id, response string, rate any) result.Step {
		s := result.Step{ID: id, Workload: "http_rate", Path: "pod", Params: map[string]any{"response": response}}
		if rate != nil {
			s.Params["rate"] = rate
		}
		return s
	}
	r := &analysis.Report{Baseline: "host", Steps: []result.Step{
		step("http-350-10k", "350B", 1e4), step("http-4k-10k", "4KiB", 1e4), step("http-350-20k", "350B", 2e4), step("free", "350B", nil), step("http-350-30k", "350B", 3e4),
	}}
	for _, s := range r.Steps[:4] { // nothing was measured at the last
		add(r, s.ID, "pod", "rate", 3, []string{"host"}, []float64{1e4}, []int{0})
	}
	v := &sheet{layout.New(r)}
	got := map[string][]string{}
	for _, f := range v.families(&v.Groups[0], "rate", "rate") {
		got[f.name()] = f.ids()
	}
	if diff := cmp.Diff(map[string][]string{"http-350": {"http-350-10k", "http-350-20k"}}, got); diff != "" {
		t.Error(diff)
	}
	if got := (family{{ID: "a", Workload: "w"}, {ID: "b"}}).name(); got != "w" {
		t.Errorf("without anything in common: %q", got)
	}
}

// TestPageDescribesItself: other sites show the verdict beside a link to the page.
func TestPageDescribesItself(t *testing.T) {
	if page := write(t, "html", sample(6), Options{}); !strings.Contains(page, `<meta property="og:description" content="Goodput`) {
		t.Error("the page does not describe itself")
	}
}
