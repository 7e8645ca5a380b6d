package cli

import (
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
	if diff := cmp.Diff(want, f.Settings()); diff != "" {
		t.Error(diff)
	}
	_, now := parsed(t, "--arena=kube", "--pull-policy=Always")
	if err := now.ApplyRecorded(want); err != nil {
		t.Fatal(err)
	}
	want["pull-policy"] = "Always"
	if diff := cmp.Diff(want, now.Settings()); diff != "" {
		t.Error(diff)
	}
	for _, flag := range []string{"kubeconfig", "context", "nodes", "privileged", "scratch", "mirror", "fact", "accept-unpinned"} {
		_, f := parsed(t, "--arena=kube")
		if err := f.ApplyRecorded(map[string]string{flag: "true"}); err == nil {
			t.Errorf("--%s was taken from a plan", flag)
		}
	}
}
