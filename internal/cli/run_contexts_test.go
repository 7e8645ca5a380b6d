package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Two contexts are two requests that differ in the cluster and the directory alone.
func TestClusters(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: https://c.example}}]\nusers: [{name: u, user: {token: t}}]\ncontexts:\n"
	for _, name := range []string{"old", "/new", "a", "b"} {
		text += "- {name: " + name + ", context: {cluster: c, user: u}}\n"
	}
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	for args, want := range map[string][][2]string{
		"--arena=kube --out=x/ --context=old,/new": {{"old", "x-1"}, {"/new", "x-2"}},
	} {
		_, f := parsed(t, strings.Fields(args)...)
		all, err := f.clusters()
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		var got [][2]string
		for _, one := range all {
			got = append(got, [2]string{one.Cluster.Context, one.Out})
			if one.Arena != f.Arena {
				t.Errorf("%s: %+v", args, one)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", args, diff)
		}
	}
	_, f := parsed(t, "--arena=kube", "--context=a,b")
	all, err := f.clusters()
	if err != nil || len(all) != 2 || !strings.HasPrefix(all[0].Out, "cnibench-run-2") || strings.TrimSuffix(all[0].Out, "-1") != strings.TrimSuffix(all[1].Out, "-2") {
		t.Errorf("%v, without --out: %+v", err, all)
	}
	for args, want := range map[string]string{
		"--arena=kube --context=a,b,c":           "name one context, or two",
		"--arena=kube --context=a,":              "name one context, or two",
		"--arena=kube --context=a,b --nodes=n,m": "--nodes names the nodes of one cluster",
		"--arena=kube --context=a,b --resume=x":  "--resume goes on with a run in one cluster",
		"--arena=lab --context=a,b":              "add --arena kube",
	} {
		_, f := parsed(t, strings.Fields(args)...)
		if _, err := f.clusters(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
