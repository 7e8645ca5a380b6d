package collect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/diagnose"
)

func TestParseResolver(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want diagnose.Resolver
	}{
		"a pod": {"search shop.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5 timeout:2\n",
			diagnose.Resolver{Servers: []string{"10.96.0.10"}, Search: []string{"shop.svc.cluster.local", "svc.cluster.local", "cluster.local"}, Ndots: 5}},
		"empty":            {"", diagnose.Resolver{Ndots: 1}},
		"the last search":  {"search a\nsearch b\n", diagnose.Resolver{Search: []string{"b"}, Ndots: 1}},
		"comments, errors": {"# nameserver 1.1.1.1\nnameserver\noptions ndots:x ndots:-1\n", diagnose.Resolver{Ndots: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(&tt.want, parseResolver(strings.NewReader(tt.text))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzParseResolver(f *testing.F) {
	f.Add("nameserver 10.96.0.10\noptions ndots:5")
	f.Fuzz(func(t *testing.T, text string) {
		if r := parseResolver(strings.NewReader(text)); r.Ndots < 0 {
			t.Errorf("ndots %d", r.Ndots)
		}
	})
}

// The machine's own snapshot has its loopback device, and changes nothing.
func TestSnapshot(t *testing.T) {
	s, err := Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if s.Kernel == "" || s.CPUs < 1 {
		t.Errorf("kernel %q, %d CPUs", s.Kernel, s.CPUs)
	}
	for _, d := range s.Devices {
		if d.Name == "lo" && d.MTU > 0 {
			return
		}
	}
	t.Errorf("no loopback device among %d", len(s.Devices))
}
