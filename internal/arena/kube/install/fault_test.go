package install

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ktesting "k8s.io/client-go/testing"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/contender"
)

// faulty is a bed that counts the writes and, at one of them, refuses it, loses its
// answer, or kills the program before or after it.
type faulty struct {
	*bed
	writes int
	at     int    // the write, from 1; 0: none
	how    string // refused, lost, before, after
	dead   bool
	kill   context.CancelFunc
	log    []string
	away   func(verb string) error // asked at each request: why the API server does not answer
	gone   func(node string) error
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

func newFaulty(t *testing.T) *faulty {
	t.Helper()
	n := nodeOf("a", "10.0.0.1", "10.7.0.0/24", map[string]string{"old": "label"})
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	typed := []runtime.Object{n, namespace("kube-system", map[string]string{ScratchLabel: "true"})}
	f := &faulty{away: func(string) error { return nil }, gone: func(string) error { return nil }}
	f.bed = newBed(typed, object("v1", "Namespace", "", "kube-system"), object("x.example/v1", "Widget", "theirs", "theirs"))
	fault := func(of *ktesting.Fake, a ktesting.Action) (bool, runtime.Object, error) {
		verb := a.GetVerb()
		if err := f.away(verb); err != nil {
			return true, nil, err
		}
		if f.how == "after" && f.at > 0 && f.writes >= f.at && !f.dead {
			f.dead = true
			f.kill()
		}
		switch {
		case f.dead:
			return true, nil, apierrors.NewBadRequest("the program is dead")
		case verb == "get" || verb == "list":
			return false, nil, nil
		}
		f.writes++
		f.log = append(f.log, verb+" "+a.GetResource().Resource)
		if f.writes != f.at {
			return false, nil, nil
		}
		switch f.how {
		case "refused":
			return true, nil, apierrors.NewBadRequest("refused")
		case "lost":
			for _, r := range of.ReactionChain[1:] { // behind this one
				if !r.Handles(a) {
					continue
				}
				if handled, _, err := r.React(a); handled {
					return true, nil, cmp.Or(err, error(&url.Error{Op: verb, Err: context.DeadlineExceeded}))
				}
			}
		case "before":
			f.dead = true
			f.kill()
			return true, nil, apierrors.NewBadRequest("the program is dead")
		}
		return false, nil, nil
	}
	// What the API server does and the fakes do not: one store behind both clients,
	// server-side apply, and the end of what is in a namespace.
	f.client.PrependReactor("create", "namespaces", func(a ktesting.Action) (bool, runtime.Object, error) {
		made := a.(ktesting.CreateAction).GetObject().(*corev1.Namespace)
		return false, nil, f.dynamic.Tracker().Add(object("v1", "Namespace", "", made.Name))
	})
	f.dynamic.PrependReactor("delete", "namespaces", func(a ktesting.Action) (bool, runtime.Object, error) {
		name := a.(ktesting.DeleteAction).GetName()
		_ = f.client.Tracker().Delete(namespaces, "", name)
		_ = f.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("configmaps"), name, journalName)
		return false, nil, nil
	})
	f.dynamic.PrependReactor("patch", "*", func(a ktesting.Action) (bool, runtime.Object, error) {
		p := a.(ktesting.PatchAction)
		if p.GetPatchType() != types.ApplyPatchType {
			return false, nil, nil
		}
		o := &unstructured.Unstructured{}
		if err := json.Unmarshal(p.GetPatch(), &o.Object); err != nil {
			return true, nil, err
		}
		err := f.dynamic.Tracker().Create(a.GetResource(), o, a.GetNamespace())
		if apierrors.IsAlreadyExists(err) {
			err = f.dynamic.Tracker().Update(a.GetResource(), o, a.GetNamespace())
		}
		return true, o, err
	})
	f.client.PrependReactor("*", "*", func(a ktesting.Action) (bool, runtime.Object, error) { return fault(&f.client.Fake, a) })
	f.dynamic.PrependReactor("*", "*", func(a ktesting.Action) (bool, runtime.Object, error) { return fault(&f.dynamic.Fake, a) })
	return f
}

// started is a new process of this program, which the fault kills.
func (f *faulty) started(t *testing.T) (context.Context, *Installer) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	t.Cleanup(kill)
	f.kill, f.dead = kill, false
	in := newInstaller(t, Options{Scratch: true, Image: "i:1"})
	in.open = func(_ context.Context, _ *kube.Cluster, node string, _ bool) (worker, error) {
		if f.dead {
			return nil, context.Canceled
		}
		if err := f.gone(node); err != nil {
			return nil, err
		}
		return fakeWorker{answer: func(string) string { return `{"state":{}}` }}, nil
	}
	return ctx, in
}

// state is all that the cluster holds.
func (f *faulty) state(t *testing.T) []string {
	t.Helper()
	var all []string
	list, err := f.client.Tracker().List(corev1.SchemeGroupVersion.WithResource("nodes"), corev1.SchemeGroupVersion.WithKind("Node"), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range list.(*corev1.NodeList).Items {
		all = append(all, fmt.Sprintf("node %s %v %v cordoned=%v", n.Name, n.Labels, n.Annotations, n.Spec.Unschedulable))
	}
	for _, k := range []schema.GroupVersionResource{namespaces, {Group: "x.example", Version: "v1", Resource: "widgets"}} {
		kind := map[string]string{"namespaces": "Namespace", "widgets": "Widget"}[k.Resource]
		list, err := f.dynamic.Tracker().List(k, k.GroupVersion().WithKind(kind), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.(*unstructured.UnstructuredList).Items {
			all = append(all, textOf(&o))
		}
	}
	maps, err := f.client.Tracker().List(corev1.SchemeGroupVersion.WithResource("configmaps"), corev1.SchemeGroupVersion.WithKind("ConfigMap"), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range maps.(*corev1.ConfigMapList).Items {
		all = append(all, "ConfigMap "+m.Namespace+"/"+m.Name)
	}
	slices.Sort(all)
	return all
}

// recipe makes one thing of each kind.
func recipe() *contender.Contender {
	c := product(contender.Leftovers{NodeAnnotations: []string{"product.example/"}})
	c.Kube.Steps = []contender.Step{
		{Namespace: &contender.KubeNamespace{Name: "product"}},
		{NodeLabels: &contender.NodeLabels{Nodes: "all", Labels: map[string]string{"old": "label", "new": "label"}}},
		{Object: contender.RawObject{"apiVersion": "x.example/v1", "kind": "Widget", "metadata": map[string]any{"name": "mine", "namespace": "product"}}},
		{Patch: &contender.Patch{Of: contender.Object{APIVersion: "x.example/v1", Kind: "Widget", Namespace: "product", Name: "mine"}, Patch: map[string]any{"spec": map[string]any{"more": true}}}},
	}
	return c
}

// Whichever single write of an installation, a removal or a clean-up is refused,
// or is the last before or after which the program is killed: clean brings the
// cluster back.
func TestEveryWriteFails(t *testing.T) {
	before := newFaulty(t).state(t)
	lives := func(f *faulty, ctx context.Context, in *Installer) {
		// Errors are what the fault makes: the state is what counts.
		_ = in.Install(ctx, f.Cluster, recipe())
		_ = in.Uninstall(ctx, f.Cluster, recipe())
	}
	cleans := func(t *testing.T, f *faulty) {
		t.Helper()
		ctx, in := f.started(t)
		if _, err := in.Clean(ctx, f.Cluster, []*contender.Contender{recipe()}); err != nil && f.at == 0 {
			t.Errorf("clean: %v", err)
		}
	}
	var writes, cleaning int
	synctest.Test(t, func(t *testing.T) {
		f := newFaulty(t)
		ctx, in := f.started(t)
		begin := time.Now()
		if err := in.Install(ctx, f.Cluster, recipe()); err != nil {
			t.Fatal(err)
		}
		installed := f.writes
		if diff := gocmp.Diff(before, f.state(t)); diff == "" {
			t.Fatal("nothing was installed")
		}
		if err := in.Uninstall(ctx, f.Cluster, recipe()); err != nil {
			t.Fatal(err)
		}
		writes, cleaning = f.writes, f.writes-installed
		if diff := gocmp.Diff(before, f.state(t)); diff != "" {
			t.Fatal(diff)
		}
		t.Logf("%d writes in %v of the bubble's time: %v", writes, time.Since(begin), f.log)
	})
	for _, how := range []string{"refused", "before", "after"} {
		for at := 1; at <= writes; at++ {
			t.Run(fmt.Sprintf("%s/%d", how, at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFaulty(t)
					f.at, f.how = at, how
					ctx, in := f.started(t)
					lives(f, ctx, in)
					f.at = 0
					cleans(t, f)
					if diff := gocmp.Diff(before, f.state(t)); diff != "" {
						t.Errorf("write %d (%v): %s", at, f.log[at-1], diff)
					}
				})
			})
		}
		for at := 1; at <= cleaning; at++ {
			t.Run(fmt.Sprintf("clean %s/%d", how, at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFaulty(t)
					ctx, in := f.started(t)
					if err := in.Install(ctx, f.Cluster, recipe()); err != nil {
						t.Fatal(err)
					}
					f.writes, f.at, f.how = 0, at, how
					cleans(t, f)
					f.at = 0
					cleans(t, f)
					if diff := gocmp.Diff(before, f.state(t)); diff != "" {
						t.Errorf("write %d: %s", at, diff)
					}
				})
			})
		}
	}
}

// Whichever single write is made and its answer lost, the request is repeated: nobody
// notices, and clean finds nothing to do.
func TestEveryAnswerIsLost(t *testing.T) {
	before := newFaulty(t).state(t)
	for at, writes := 1, 1; at <= writes; at++ {
		synctest.Test(t, func(t *testing.T) {
			f := newFaulty(t)
			f.at, f.how = at, "lost"
			ctx, in := f.started(t)
			err := errors.Join(in.Install(ctx, f.Cluster, recipe()), in.Uninstall(ctx, f.Cluster, recipe()))
			if diff := gocmp.Diff(before, f.state(t)); diff != "" || err != nil {
				t.Errorf("write %d (%s): %v, %s", at, f.log[min(at, len(f.log))-1], err, diff)
			}
			writes = max(writes, f.writes)
		})
	}
}
