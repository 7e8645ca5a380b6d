package check

import (
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
)

// New pods that are open for a while, always, never, or that nobody could ask.
func TestPolicyStart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cluster *simulated
		verdict Conformance
		text    string
		open    int // milliseconds
	}{
		"isolated":       {&simulated{}, Pass, "isolated from their first instant", 0},
		"for a while":    {&simulated{young: 880 * time.Millisecond}, Fail, "10 connections of 100 on node1, the last begun 0.88 s after its first instant; 10 connections of 100 on node2", 880},
		"not within 5 s": {&simulated{young: 4900 * time.Millisecond}, Fail, "they were not isolated within 5.0 s", 4900},
		"by refusing":    {&simulated{denied: agent.Refused, young: time.Second}, Fail, "0", 1000},
		"nothing works":  {&simulated{silent: true, young: time.Second}, Skip, "that may reach near/server over TCP 8080 did not within 5.0 s, either", 0},
		"no engine":      {&simulated{allows: func(clusterModel, []networkPolicy, flow) bool { return true }}, Skip, "had no effect within 20s", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said []string
			c, err := Policy(OneCase{Name: startCase, Say: func(text string) { said = append(said, text) }})
			if err != nil {
				t.Fatal(err)
			}
			r := policed(t, tt.cluster, c.(policy).one)
			if len(r.Cases) != 1 || r.Verdict() != tt.verdict || !strings.Contains(r.Cases[0].Text, tt.text) || r.Cases[0].Values["open_ms"] != tt.open {
				t.Errorf("%+v", r.Cases)
			}
			if !strings.Contains(strings.Join(said, "\n"), "policyTypes: [Egress]") {
				t.Errorf("the policy is not shown: %v", said)
			}
		})
	}
}

// An engine that ends in the middle ends the check within the time between two looks, as
// the first of its cases.
func TestPolicyEngineFalls(t *testing.T) {
	t.Parallel()
	whole := policed(t, &simulated{}, nil)
	s := &simulated{}
	s.onApply = func([]networkPolicy) {
		if s.fallen.IsZero() {
			s.fallen = time.Now()
		}
	}
	r := policed(t, s, nil)
	told := r.MainCase()
	if told.Name != engineCase || told.Found != "crashed" || !strings.HasSuffix(told.Text, "given up: engine in pod kube-system/engine-1 on node2") || len(r.Cases) >= len(whole.Cases) {
		t.Errorf("%d of %d cases, %+v", len(r.Cases), len(whole.Cases), told)
	}
	if word := r.Environment["check.policy.x.engine"]; !strings.HasPrefix(word, "fail: ") {
		t.Errorf("environment %q", word)
	}
}
