package analysis

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/result"
)

// What a check saw takes the place of what the catalogue says; what it could
// not tell does not.
func TestCapabilitiesOfEncryption(t *testing.T) {
	catalogue := []Capability{{Contender: "x", Name: "encryption", Value: "wireguard", Source: "catalogue"}}
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
			got := Capabilities(rec, catalogue)
			if len(got) != 1 {
				t.Fatalf("%+v", got)
			}
			if diff := cmp.Diff(c.want, got[0].Value); diff != "" {
				t.Error(diff)
			}
		})
	}
}
