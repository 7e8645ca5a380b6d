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
	if diff := cmp.Diff(want, f.args(func(r *flag) bool { return r.memory == regive })); diff != "" {
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
		{"auto", "lab", false, "auto"}, {"auto", "microvm", false, "microvm"}, {"lab", "microvm", true, ""},
		{"auto", "kube", false, "kube"}, {"kube", "kube", true, "kube"}, {"kube", "lab", false, "lab"},
		{"lab", "kube", true, ""}, {"kube", "microvm", true, ""}, {"auto", "imported", false, "auto"},
	} {
		got, err := arenaOf(test.given, test.made, test.asked)
		if (err != nil) != (test.want == "") || err == nil && got != test.want {
			t.Errorf("%+v: %s, %v", test, got, err)
		}
	}
}

// A flag of another arena is refused, and every flag that a plan remembers can be read back.
func TestFlags(t *testing.T) {
	for flag, arenas := range map[string]string{"mtu": "auto lab microvm kube", "underlay": "auto lab microvm", "kernel": "microvm", "image": "kube", "suite": "auto lab microvm kube", "unknown": "auto lab microvm kube"} {
		for _, arena := range Arenas() {
			_, err := KindOf(arena, map[string]bool{flag: true})
			if want := strings.Contains(" "+arenas+" ", " "+arena+" "); (err == nil) != want {
				t.Errorf("--%s with --arena %s: %v", flag, arena, err)
			}
		}
	}
	for _, arena := range Arenas() {
		for _, r := range flags() {
			if !r.readBy(arena) || r.memory != recorded && r.memory != settled {
				continue
			}
			value := "7"
			switch r.name {
			case "install", "anonymous":
				value = "true"
			case "accel":
				value = "tcg"
			case "vm-memory":
				value = "1G"
			}
			then := Request{Arena: arena, CNIConf: "x", Study: "x", Given: map[string]bool{"mtu": true}, Cluster: Cluster{Install: true}}
			if err := r.set(&then, value); err != nil {
				t.Fatalf("%s: %v", r.name, err)
			}
			settings := then.Settings()
			if settings[r.name] == "" {
				t.Errorf("%s: not recorded", r.name)
			}
			now := Request{Arena: arena, Given: map[string]bool{}}
			if err := now.ApplyRecorded(settings); err != nil {
				t.Errorf("%s: %v", r.name, err)
			}
		}
	}
	if err := (&Request{Arena: Lab}).ApplyRecorded(map[string]string{"keep": "true"}); err == nil {
		t.Error("a plan may set any flag")
	}
}
