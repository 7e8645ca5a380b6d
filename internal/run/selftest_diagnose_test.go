package run

import (
	"testing"

	"github.com/cnibench/cnibench/internal/diagnose"
)

// A plant is found by its cause first, at its place; where nothing was planted, a busy machine
// may be named and nothing else.
func TestJudgeDiagnosis(t *testing.T) {
	offload := Planted{Cause: "offload-off", Expected: ExpectedClaim{ID: "offload-off", Node: "node1", Device: "flannel.1"}}
	sound := Planted{Expected: ExpectedClaim{ID: diagnose.Usual}}
	claim := func(id string, state diagnose.State, node, device string) diagnose.Claim {
		return diagnose.Claim{ID: id, State: state, Node: node, Device: device}
	}
	for name, c := range map[string]struct {
		planted Planted
		causes  []diagnose.Claim
		found   string
		passed  bool
	}{
		"found":               {offload, []diagnose.Claim{claim("offload-off", diagnose.Proven, "node1", "flannel.1")}, "offload-off proven at node1 flannel.1", true},
		"at another place":    {offload, []diagnose.Claim{claim("offload-off", diagnose.Proven, "node2", "flannel.1")}, "offload-off proven at node2 flannel.1", false},
		"second":              {offload, []diagnose.Claim{claim("loss", diagnose.Supported, "node1", ""), claim("offload-off", diagnose.Supported, "node1", "flannel.1")}, "loss supported at node1", false},
		"missed":              {offload, nil, "no cause: words", false},
		"sound":               {sound, nil, "no cause: words", true},
		"sound and busy":      {sound, []diagnose.Claim{claim("cpu-starved", diagnose.Supported, "node1", "")}, "cpu-starved supported at node1", true},
		"sound and a plant's": {sound, []diagnose.Claim{claim("cpu-starved", diagnose.Supported, "node1", ""), claim("rate-limited", diagnose.Suspected, "node1", "eth0")}, "cpu-starved supported at node1", false},
		"sound and proven":    {sound, []diagnose.Claim{claim("window-limited", diagnose.Proven, "node1", "")}, "window-limited proven at node1", false},
	} {
		t.Run(name, func(t *testing.T) {
			found, passed := c.planted.judge(&diagnose.Verdict{Summary: "words", Causes: c.causes})
			if found != c.found || passed != c.passed {
				t.Errorf("%q, passed %t; want %q, %t", found, passed, c.found, c.passed)
			}
		})
	}
}
