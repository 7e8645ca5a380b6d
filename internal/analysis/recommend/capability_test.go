package recommend_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/recommend"
	"github.com/cnibench/cnibench/internal/result"
)

// What a check saw takes the place of what the catalogue says; what it could
// not tell does not.
func TestCapabilitiesOfEncryption(t *testing.T) {
	catalogue := []analysis.Capability{{Contender: "x", Name: "encryption", Value: "wireguard", Source: "catalogue"}}
	for name, c := range map[string]struct {
		env  result.Environment
		want string
	}{
		"nobody looked":   {nil, "wireguard"},
		"proven":          {result.Environment{"check.encryption.x.pod-tcp": "pass: in none of 9 packets", "check.encryption.x.same-node": "skip: why"}, "wireguard"},
		"broken promise":  {result.Environment{"check.encryption.x.pod-tcp": "pass", "check.encryption.x.pod-udp": "fail: seen"}, "no"},
		"plain by choice": {result.Environment{"check.encryption.x.pod-tcp": "plain: seen"}, "no"},
		"gone elsewhere":  {result.Environment{"check.encryption.x.pod-tcp": "unseen: in none of 9 packets"}, "wireguard"},
		"not carried out": {result.Environment{"check.encryption.x.run": "skip: it does not come up"}, "wireguard"},
	} {
		t.Run(name, func(t *testing.T) {
			rec := &result.Record{Run: result.Run{Environment: c.env}}
			got := recommend.Capabilities(rec, catalogue)
			if len(got) != 1 {
				t.Fatalf("%+v", got)
			}
			if diff := cmp.Diff(c.want, got[0].Value); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A policy verdict that was measured takes the place of the product's claim, in
// both directions and each direction of traffic by itself; what was skipped
// leaves the claim alone.
func TestCapabilitiesOfPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		claim string
		env   result.Environment
		want  map[string]string // value and source
	}{
		"nobody asked": {"yes", nil, map[string]string{"policy": "yes by catalogue", "egress-policy": "yes by catalogue"}},
		"as claimed":   {"yes", result.Environment{"check.policy.x.ingress-forbidden": "pass: cut off", "check.policy.x.egress-forbidden": "pass"}, map[string]string{"policy": "yes by check", "egress-policy": "yes by check"}},
		"ingress only": {"yes", result.Environment{"check.policy.x.ingress-forbidden": "pass", "check.policy.x.egress-allowed": "pass", "check.policy.x.egress-forbidden": "fail: it passed"}, map[string]string{"policy": "yes by check", "egress-policy": "no by check"}},
		"a better one": {"no", result.Environment{"check.policy.x.ingress-port": "pass", "check.policy.x.egress-sctp": "skip: no SCTP"}, map[string]string{"policy": "yes by check", "egress-policy": "no by catalogue"}},
		"figures":      {"yes", result.Environment{"check.policy.x.effect": "120: milliseconds", "check.policy.x.network": "skip: no engine"}, map[string]string{"policy": "yes by catalogue", "egress-policy": "yes by catalogue"}},
	} {
		t.Run(name, func(t *testing.T) {
			rec := &result.Record{Run: result.Run{Environment: c.env}}
			got := map[string]string{}
			for _, x := range recommend.Capabilities(rec, []analysis.Capability{
				{Contender: "x", Name: "policy", Value: c.claim, Source: "catalogue"},
				{Contender: "x", Name: "egress-policy", Value: c.claim, Source: "catalogue"},
			}) {
				got[x.Name] = x.Value + " by " + x.Source
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
