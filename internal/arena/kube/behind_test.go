package kube

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
)

// keep makes the cluster refuse to delete namespaces for which it says so.
func (b *bed) keep(keeps func(name string) bool) {
	b.client.PrependReactor("delete", "namespaces", func(a ktesting.Action) (bool, runtime.Object, error) {
		if !keeps(a.(ktesting.DeleteAction).GetName()) {
			return false, nil, nil
		}
		return true, nil, forbidden("not now")
	})
}

// Nobody is measured beside a contender that can't be taken off, not even the
// baseline; once that works, everybody is.
func TestContendersThatStay(t *testing.T) {
	i := &installer{stays: errors.New("left behind: cilium_vxlan")}
	b := newBed(t, Options{Install: i}, testNode("a"), testNode("b"))
	a := b.arena(t)
	n, err := a.Up(t.Context(), &contender.Contender{ID: "cilium"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Down(t.Context()); !errors.Is(err, i.stays) {
		t.Errorf("down: %v", err)
	}
	for range 2 {
		if _, err := a.Up(t.Context(), baseline, ""); !errors.Is(err, i.stays) || !strings.Contains(err.Error(), "the earlier contender cilium can't be removed") {
			t.Errorf("up: %v", err)
		}
	}
	i.stays = nil
	up(t, a, baseline)
	want := []string{"install cilium", "uninstall cilium", "uninstall cilium", "uninstall cilium", "uninstall cilium"}
	if diff := cmp.Diff(want, i.calls); diff != "" {
		t.Error(diff)
	}
}

// Namespaces that could not be removed are, before the next contender.
func TestNamespacesThatStay(t *testing.T) {
	b := newBed(t, Options{}, testNode("a"), testNode("b"))
	away := true
	b.keep(func(string) bool { return away })
	a := b.arena(t)
	n, err := a.Up(t.Context(), here, "")
	if err != nil {
		t.Fatal(err)
	}
	sandbox, err := n.Sandbox(t.Context(), []arena.SandboxNamespace{{Name: "x", Pods: []arena.SandboxPod{{Name: "p"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if sandbox.Close(t.Context()) == nil || n.Down(t.Context()) == nil {
		t.Error("no error")
	}
	if _, err := a.Up(t.Context(), here, ""); err == nil || !strings.Contains(err.Error(), "not now") {
		t.Errorf("up: %v", err)
	}
	away = false
	next := up(t, a, here).(*network)
	if diff := cmp.Diff([]string{next.run}, b.left(t)); diff != "" {
		t.Error(diff)
	}
}

// A namespace that goes slowly and is empty is in nobody's way.
func TestHollow(t *testing.T) {
	b := newBed(t, Options{}, testNode("a"))
	n := up(t, b.arena(t), here).(*network)
	namespaces, pods := corev1.SchemeGroupVersion.WithResource("namespaces"), b.client.CoreV1().Pods(n.run)
	left, err := b.client.CoreV1().Namespaces().Get(t.Context(), n.run, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	going := metav1.NewTime(time.Now())
	left.DeletionTimestamp, left.Finalizers = &going, []string{"kubernetes"}
	if err := b.client.Tracker().Update(namespaces, left, ""); err != nil {
		t.Fatal(err)
	}
	if n.onlyTerminating(t.Context()) {
		t.Error("there are pods")
	}
	for _, name := range []string{"node1", "node1-pod1"} {
		if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if !n.onlyTerminating(t.Context()) {
		t.Error("nothing is there but a namespace that goes")
	}
	n.installed = true
	if n.onlyTerminating(t.Context()) {
		t.Error("a contender is there")
	}
	n.installed = false
	left.DeletionTimestamp = nil
	if err := b.client.Tracker().Update(namespaces, left, ""); err != nil {
		t.Fatal(err)
	}
	if n.onlyTerminating(t.Context()) {
		t.Error("the namespace does not go")
	}
}

// One namespace that does not go keeps no other.
func TestRemoveNamespaces(t *testing.T) {
	var objects []runtime.Object
	names := []string{"cnibench-1", "cnibench-2", "cnibench-3"}
	for _, name := range names {
		objects = append(objects, namespaceFor(name, name, "privileged", nil))
	}
	b := newBed(t, Options{}, objects...)
	b.keep(func(name string) bool { return name == names[0] })
	if err := b.removeNamespaces(context.Background(), names...); err == nil || !strings.Contains(err.Error(), names[0]) {
		t.Errorf("error %v", err)
	}
	if got := b.left(t); !slices.Equal(got, names[:1]) {
		t.Errorf("left: %v", got)
	}
}
