package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a plan remembers of a cluster is what the pods are, and neither where
// the cluster is nor what the user has agreed to.
func TestKubeSettings(t *testing.T) {
	_, f := parsed(t, "--arena=kube", "--kubeconfig=secret", "--context=mine", "--nodes=a,b", "--scratch", "--privileged", "--mirror=my charts",
		"--image=i:1", "--pull-policy=Never", "--tolerations=a:NoSchedule,all", "--pod-cpu=2", "--service-kind=nodeport", "--install", "--versions=latest",
		"--line-rate=25G", "--services=1,100")
	want := map[string]string{
		"image": "i:1", "pull-policy": "Never", "tolerations": "a:NoSchedule,all", "pod-cpu": "2", "service-kind": "nodeport", "install": "true",
		"versions": "latest", "line-rate": "25G", "services": "1,100",
	}
	if diff := cmp.Diff(want, f.settings()); diff != "" {
		t.Error(diff)
	}
	c, now := parsed(t, "--arena=kube", "--pull-policy=Always")
	if err := now.adopt(c, want); err != nil {
		t.Fatal(err)
	}
	want["pull-policy"] = "Always"
	if diff := cmp.Diff(want, now.settings()); diff != "" {
		t.Error(diff)
	}
	again := []string{"--kubeconfig=secret", "--context=mine", "--nodes=a,b", "--privileged=true", "--scratch=true", "--mirror='my charts'"}
	if diff := cmp.Diff(again, f.again()); diff != "" {
		t.Error(diff)
	}
	for _, flag := range kubePlace {
		c, f := parsed(t, "--arena=kube")
		if err := f.adopt(c, map[string]string{flag: "true"}); err == nil {
			t.Errorf("--%s was taken from a plan", flag)
		}
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
		got, err := nodeNames(test.value, test.given)
		if test.wrong != "" {
			if err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), test.wrong) {
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
		row, err := findArena(test.given)
		if err != nil {
			t.Fatal(err)
		}
		row, err = row.goesOn(test.made, test.asked)
		if (err != nil) != (test.want == "") || err == nil && row.name != test.want {
			t.Errorf("%+v: %s, %v", test, row.name, err)
		}
	}
}
