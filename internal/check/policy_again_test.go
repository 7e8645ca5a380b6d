package check

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// isNamedPort is whether the case of names for ports is carried out.
func isNamedPort(list []networkPolicy) bool {
	return len(list) == 1 && len(list[0].Spec.Ingress) == 1 && len(list[0].Spec.Ingress[0].Ports) == 2 &&
		list[0].Spec.Ingress[0].Ports[0].Port.StrVal == "cnib-web"
}

// What fails always, now and then, and only within a short time, has verdicts of
// its own.
func TestPolicyAgain(t *testing.T) {
	t.Parallel()
	// by engine says whether the named ports leak, by how often the policies were applied
	for name, tt := range map[string]struct {
		leaks   func(applied int) bool
		verdict Conformance
		found   string
		text    string
		failed  int
	}{
		"always":       {func(int) bool { return true }, Fail, leaks, "the same in each of 3 attempts", 3},
		"now and then": {func(n int) bool { return n != 2 }, Fail, unstable, "not stable: it failed in 2 of 3 attempts", 2},
		"once":         {func(n int) bool { return n == 1 }, Fail, unstable, "not stable: it failed in 1 of 3 attempts", 1},
		"never":        {func(int) bool { return false }, Pass, enforced, "in each of 3 tries", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var applied atomic.Int64
			s := &simulated{allows: func(w clusterModel, l []networkPolicy, f flow) bool {
				return isNamedPort(l) && tt.leaks(int(applied.Load())) && f.to == "near/server" || w.allows(l, f, leniency{})
			}}
			s.onApply = func(list []networkPolicy) {
				if isNamedPort(list) {
					applied.Add(1)
				}
			}
			c := caseOf(t, policed(t, s, nil), "ingress-named-port")
			if c.Verdict != tt.verdict || c.Found != tt.found || !strings.Contains(c.Text, tt.text) || c.Values["failed_attempts"] != tt.failed {
				t.Errorf("%+v", c)
			}
		})
	}
}

// A look that passes by the letter by accident, while a network that takes a freedom
// of the specification is on its way to it, is not what the network does; one that
// goes to and fro fails.
func TestPolicyOnItsWay(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		strict  func(asked int) bool // by the letter at that look; else no ipBlock selects a pod
		verdict Conformance
		found   string
	}{
		"one look":             {func(n int) bool { return n == 1 }, Skip, "pods apart"},
		"two looks":            {func(n int) bool { return n <= 2 }, Skip, "pods apart"},
		"to and fro":           {func(n int) bool { return n%4 == 1 }, Fail, cuts},
		"as the letter has it": {func(int) bool { return true }, Pass, enforced},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := map[flow]int{} // since policies with an ipBlock were applied last
			s := &simulated{onApply: func([]networkPolicy) { clear(asked) }}
			s.allows = func(w clusterModel, l []networkPolicy, f flow) bool {
				asked[f]++
				return w.allows(l, f, leniency{podsApart: !tt.strict(asked[f])})
			}
			c := caseOf(t, policed(t, s, nil), "ingress-ip-block")
			if c.Verdict != tt.verdict || c.Found != tt.found {
				t.Errorf("%+v", c)
			}
		})
	}
}

// A case that holds every time, but later than was waited for at first, passes and
// says after what time.
func TestAttemptLate(t *testing.T) {
	a := &attempt{}
	for range 2 {
		a.add(Case{Name: "n", Verdict: Pass, Found: enforced, Text: "passed, enforced after 8.0 s", Values: map[string]int{"settled_ms": 8000}})
	}
	if c := a.judge(Case{Name: "n", Verdict: Fail, Values: map[string]int{}}, 5*time.Second); c.Verdict != Pass || !strings.Contains(c.Text, "after 8.0 s") {
		t.Errorf("%+v", c)
	}
	if c := a.judge(Case{Name: "n", Verdict: Fail, Values: map[string]int{}}, 20*time.Second); c.Verdict != Fail || c.Found != unstable {
		t.Errorf("%+v", c)
	}
}

// Leaks towards the pods of one node alone are told with the node's name; leaks
// everywhere, and where the other node's pods had nothing to forbid, are not.
func TestPolicyNamesNode(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		leak func(f flow) bool
		want bool
	}{
		"one node":  {func(f flow) bool { return nodeOfSim(f.to) == "node2" }, true},
		"all nodes": {func(f flow) bool { return f.port == 8081 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := policed(t, &simulated{allows: unless(tt.leak)}, nil)
			told := r.MainCase()
			if told.Verdict != Fail || strings.Contains(told.Next, "Every leak is towards pods on node2") != tt.want {
				t.Errorf("%+v", told)
			}
		})
	}
}

// One case is carried out alone, shows its policies, and holds them.
func TestPolicyOneCase(t *testing.T) {
	t.Parallel()
	var said []string
	c, err := Policy(OneCase{Name: "ingress-named-port", Hold: time.Millisecond, Say: func(text string) { said = append(said, text) }})
	if err != nil {
		t.Fatal(err)
	}
	s := &simulated{}
	r := policed(t, s, c.(policy).one)
	all := strings.Join(said, "\n")
	if len(r.Cases) != 1 || r.Verdict() != Pass || !strings.Contains(all, "port: cnib-web") || !strings.Contains(all, "stay for 1ms") || !s.closed || len(s.applied) > 0 {
		t.Errorf("%+v\n%s", r.Cases, all)
	}
	if _, err := Policy(OneCase{Name: "ingress-named-prt"}); err == nil || !strings.Contains(err.Error(), "ingress-named-port") {
		t.Errorf("no nearest case: %v", err)
	}
}
