package run

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/cli/exit"
)

// A run goes on with what no plan remembers: where the cluster is, and what the
// user has agreed to.
func TestUnplanned(t *testing.T) {
	f := &Request{
		Arena: Kube, Nodes: "a,b", Cluster: Cluster{Kubeconfig: "secret", Context: "mine", Privileged: true, Scratch: true, Mirror: "my charts", Image: "i:1"},
		Given: map[string]bool{"kubeconfig": true, "context": true, "nodes": true, "privileged": true, "scratch": true, "mirror": true, "image": true},
	}
	want := []string{"--kubeconfig=secret", "--context=mine", "--nodes=a,b", "--privileged=true", "--scratch=true", "--mirror='my charts'"}
	if diff := cmp.Diff(want, f.unplanned()); diff != "" {
		t.Error(diff)
	}
}

func TestNodeNames(t *testing.T) {
	for name, test := range map[string]struct {
		value string
		given bool
		want  []string
		wrong string
	}{
		"left alone":      {value: "2"},
		"names":           {value: "a, b,a", given: true, want: []string{"a", "b"}},
		"a number":        {value: "3", given: true, wrong: "--nodes 3: a cluster's nodes are named"},
		"nothing at all":  {value: ",", given: true, wrong: "are named"},
		"one, for itself": {value: "a", given: true, want: []string{"a"}},
	} {
		got, err := NodeNames(test.value, test.given)
		if test.wrong != "" {
			if err == nil || exit.Code(err) != exit.WrongUsage || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

// A run goes on in the arena that made it.
func TestGoesOn(t *testing.T) {
	for _, test := range []struct {
		given, made string
		asked       bool
		want        string // "" is a refusal
	}{
		{"auto", "lab", false, "auto"}, {"auto", "microvm", false, "auto"}, {"lab", "microvm", true, "lab"},
		{"auto", "kube", false, "kube"}, {"kube", "kube", true, "kube"}, {"kube", "lab", false, "auto"},
		{"lab", "kube", true, ""}, {"kube", "microvm", true, ""}, {"auto", "imported", false, "auto"},
	} {
		kind, err := FindArena(test.given)
		if err != nil {
			t.Fatal(err)
		}
		kind, err = kind.resuming(test.made, test.asked)
		if (err != nil) != (test.want == "") || err == nil && kind.Name != test.want {
			t.Errorf("%+v: %s, %v", test, kind.Name, err)
		}
	}
}
