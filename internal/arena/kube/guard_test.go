package kube

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/arena"
)

// A guard removes the runs that have not ended when its input ends, with all their
// namespaces, and nothing else. Without such runs it asks the cluster nothing.
func TestGuard(t *testing.T) {
	for name, c := range map[string]struct {
		told []string
		left []string
	}{
		"killed":         {[]string{"begin cnibench-r"}, []string{"cnibench-other"}},
		"killed later":   {[]string{"begin cnibench-old", "end cnibench-old", "begin cnibench-r"}, []string{"cnibench-other"}},
		"ended":          {[]string{"begin cnibench-r", "end cnibench-r"}, []string{"cnibench-other", "cnibench-r", "cnibench-r-policy"}},
		"nothing begun":  {nil, []string{"cnibench-other", "cnibench-r", "cnibench-r-policy"}},
		"gone meanwhile": {[]string{"begin cnibench-gone"}, []string{"cnibench-other", "cnibench-r", "cnibench-r-policy"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, Options{}, namespaceFor("cnibench-r", "cnibench-r", "privileged", nil), namespaceFor("cnibench-r", "cnibench-r-policy", "baseline", nil),
				namespaceFor("cnibench-other", "cnibench-other", "privileged", nil))
			first, err := json.Marshal(guarded{Kubeconfig: "its/config", Within: nil})
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			err = guardRuns(t.Context(), strings.NewReader(string(first)+"\n"+strings.Join(append(c.told, ""), "\n")), func(_ context.Context, o Options) (*Cluster, error) {
				asked++
				if o.Kubeconfig != "its/config" {
					t.Errorf("connected with %+v", o)
				}
				return b.Cluster, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			list, err := (leftovers{b.Cluster}).namespaces(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, n := range list {
				left = append(left, n.Name)
			}
			slices.Sort(left)
			if diff := cmp.Diff(c.left, left); diff != "" {
				t.Error(diff)
			}
			if needs := len(c.told)%2 == 1; needs != (asked > 0) {
				t.Errorf("connected %d times", asked)
			}
		})
	}
}

// What this program tells its guard leaves nothing to do after a run that ended, and names
// the run that did not.
func TestGuardIsTold(t *testing.T) {
	b := newBed(t, Options{}, testNode("a"))
	r, w := io.Pipe()
	b.guard.argv, b.guard.to = []string{"never run"}, w
	told := make(chan string)
	go func() {
		all, _ := io.ReadAll(r)
		told <- string(all)
	}()
	for _, run := range []string{"cnibench-ended", "cnibench-killed"} {
		if _, err := b.ensureNamespace(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.removeNamespaces(t.Context(), "cnibench-ended"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if diff := cmp.Diff("begin cnibench-ended\nbegin cnibench-killed\nend cnibench-ended\n", <-told); diff != "" {
		t.Error(diff)
	}
}

// A run begins although another one was killed that has left its namespace: it removes
// that, and refuses only beside a run that is under way.
func TestUnused(t *testing.T) {
	for name, o := range map[string]Options{"own namespaces": {}, "within": {Within: []string{"measure"}}} {
		for _, how := range []string{"under way", "killed"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b, l, _ := leased(t, o, "cnibench-r")
					defer l.stop()
					if how == "killed" {
						l.stop()
					}
					err := leftovers{b.Cluster}.checkUnused(t.Context())
					if refused := arena.AsUnsupported(err) != nil; refused != (how == "under way") || !refused && err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// Privileged pods run no image whose name alone is known: any user can bring that.
func TestPrivilegedImages(t *testing.T) {
	want := map[string]bool{
		"docker.io/library/busybox:1.36": true, "registry.k8s.io/kube-proxy:v1.34.4": true, "quay.io/cilium/cilium:v1.18.0": true,
		"docker.io/someone/busybox:1": false, "docker.io.example/library/busybox:1": false, "busybox:1": false,
	}
	got := map[string]bool{}
	for image := range maps.Keys(want) {
		got[image] = published(choice{image: image})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
