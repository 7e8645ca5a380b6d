package install

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ktesting "k8s.io/client-go/testing"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/arena/kube/install/node"
	"github.com/cnibench/cnibench/internal/contender"
)

func denied(text string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, journalName, errors.New(text))
}

// What no waiting mends ends at once, a refusal after some seconds: a server
// that has just come back refuses, too. The clock is the bubble's.
func TestPersist(t *testing.T) {
	away := apierrors.NewInternalError(errors.New("away"))
	for _, tt := range []struct {
		name    string
		err     func(try int) error
		after   time.Duration // the least that it takes
		maximum time.Duration
		want    string
	}{
		{"at once", func(int) error { return nil }, 0, 0, ""},
		{"refused for a moment", func(try int) error {
			if try < 5 {
				return denied("not yet")
			}
			return nil
		}, time.Second, rightsPatience, ""},
		{"refused for good", func(int) error { return denied("never") }, rightsPatience, rightsPatience + time.Second, "forbidden"},
		{"away, then refused for a moment", func(try int) error {
			switch {
			case try < 40:
				return away
			case try < 50:
				return apierrors.NewUnauthorized("not yet")
			}
			return nil
		}, 20 * time.Second, time.Minute, ""},
		{"no service account yet", func(try int) error {
			if try < 60 {
				return denied("error looking up service account x/default: serviceaccount \"default\" not found")
			}
			return nil
		}, 2 * rightsPatience, time.Minute, ""},
		{"wrong", func(int) error { return apierrors.NewBadRequest("wrong") }, 0, 0, "wrong"},
		{"away for good", func(int) error { return away }, 2 * time.Minute, 3 * time.Minute, "tried for 2m0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, try := time.Now(), 0
				err := retryFor(t.Context(), 2*time.Minute, "do it", func(context.Context) error { try++; return tt.err(try - 1) })
				wantError(t, err, tt.want)
				if took := time.Since(begin); took < tt.after || took > tt.maximum {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// put writes a journal into the cluster.
func put(t *testing.T, b *bed, in *Installer, c *contender.Contender, before *findings) {
	t.Helper()
	j, err := in.job(b.Cluster, c)
	if err != nil {
		t.Fatal(err)
	}
	cm, err := j.journalMap(before, j.facts.known)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.client.CoreV1().ConfigMaps(ownNamespace).Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// refuseReading makes the cluster refuse the journal so many times.
func refuseReading(b *bed, times int) {
	b.client.PrependReactor("get", "configmaps", func(ktesting.Action) (bool, runtime.Object, error) {
		times--
		return times >= 0, nil, denied("not now")
	})
}

// A hiccup does not make the installer forget what it has put there.
func TestUninstallRefused(t *testing.T) {
	for _, tt := range []struct {
		name  string
		times int
		want  string
	}{{"for a moment", 3, ""}, {"for long", 25, "forbidden"}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(nil, object("v1", "Namespace", "", ownNamespace))
				in, c := newInstaller(t, Options{}), product(contender.Leftovers{})
				in.installed = c
				put(t, b, in, c, nil)
				refuseReading(b, tt.times)
				err := in.Uninstall(t.Context(), b.Cluster, c)
				wantError(t, err, tt.want)
				if err != nil { // the next installation begins with taking it off
					if err := in.removeExisting(t.Context(), b.Cluster); err != nil {
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff([]string{"namespaces " + ownNamespace}, b.deleted()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// Who may not read the journal has installed nothing.
func TestCleanRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(nil)
		refuseReading(b, 1000)
		if what, err := newInstaller(t, Options{}).Clean(t.Context(), b.Cluster, nil); what != "" || err != nil {
			t.Errorf("%q, %v", what, err)
		}
	})
}

// A contender is not taken off by another's recipe.
func TestUninstallOther(t *testing.T) {
	b := newBed(nil, object("v1", "Namespace", "", ownNamespace))
	in, c := newInstaller(t, Options{}), product(contender.Leftovers{})
	put(t, b, in, c, nil)
	other := product(contender.Leftovers{})
	other.ID = "other"
	if err := in.Uninstall(t.Context(), b.Cluster, other); err != nil || b.deleted() != nil {
		t.Errorf("%v, deleted %v", err, b.deleted())
	}
}

// Of two runs that begin at once the second leaves the first alone.
func TestClaim(t *testing.T) {
	b := newBed([]runtime.Object{namespace(ownNamespace, ourLabels)}, object("v1", "Namespace", "", ownNamespace))
	c := product(contender.Leftovers{})
	first, second := newInstaller(t, Options{}), newInstaller(t, Options{})
	claim := func(in *Installer) error {
		j, err := in.job(b.Cluster, c)
		if err != nil {
			t.Fatal(err)
		}
		return j.lock(t.Context())
	}
	if err := errors.Join(claim(first), claim(first)); err != nil { // once more after an answer that was lost
		t.Fatal(err)
	}
	err := claim(second)
	wantError(t, err, "product is installed on the cluster since ")
	if u := arena.AsUnsupported(err); u == nil || !strings.Contains(u.Remedy, "cnibench clean --arena kube") || strings.Contains(u.Error(), "its/config") {
		t.Errorf("%+v is no refusal with a next step", u)
	}
	if err := second.Uninstall(t.Context(), b.Cluster, c); err != nil {
		t.Error(err)
	}
	if gone := b.deleted(); gone != nil {
		t.Errorf("the first's journal has gone with %v", gone)
	}
	// Nothing was changed yet: what has crashed here leaves its namespace only.
	what, err := second.Clean(t.Context(), b.Cluster, []*contender.Contender{c})
	if err != nil || what != "namespace "+ownNamespace {
		t.Errorf("cleaned %q: %v", what, err)
	}
}

// What takes an installation off has what the installation had, but for what
// the user says now.
func TestRecall(t *testing.T) {
	known := map[string]string{"version": "v9", "pod-cidr": "10.1.0.0/16"}
	before := &findings{Nodes: map[string]*node.Answer{"a": {Uplink: "eth1"}}}
	for _, tt := range []struct {
		name    string
		o       Options
		left    journal
		want    []string // image, pull policy, version
		podCIDR string
	}{
		{"as it was", Options{}, journal{Facts: known, Image: "registry/i:2", PullPolicy: "Never"}, []string{"of-cluster:1", "Never", "v9"}, "10.1.0.0/16"},
		{"as the user says", Options{Image: "i:3", PullPolicy: "IfNotPresent", Facts: map[string]string{"pod-cidr": "10.2.0.0/16"}},
			journal{Facts: known, Image: "registry/i:2", PullPolicy: "Never"}, []string{"i:3", "IfNotPresent", "v9"}, "10.2.0.0/16"},
		{"without facts", Options{}, journal{}, []string{"of-cluster:1", "Always", "v1"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.left.Versions, tt.left.Before = contender.VersionSets()[0], before
			b := newBed([]runtime.Object{nodeOf("a", "10.0.0.1", "", nil)})
			j, err := newInstaller(t, tt.o).fromJournal(b.Cluster, product(contender.Leftovers{}), &tt.left)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, []string{j.cl.Options.Image, j.cl.Options.PullPolicy, j.version}); diff != "" {
				t.Error(diff)
			}
			if got, _ := j.facts.get(t.Context(), "pod-cidr"); got != tt.podCIDR {
				t.Errorf("the pods' network is %q, want %q", got, tt.podCIDR)
			}
			if got, err := j.facts.get(t.Context(), "uplink"); got != "eth1" {
				t.Errorf("the uplink is %q, %v", got, err)
			}
		})
	}
}

// The journal holds what was found out, and one of an older version is read.
func TestJournal(t *testing.T) {
	b := newBed([]runtime.Object{nodeOf("a", "10.0.0.1", "10.7.0.0/24", nil), namespace(ownNamespace, ourLabels)})
	in, c := newInstaller(t, Options{Facts: map[string]string{"service-cidr": "10.8.0.0/16"}}), product(contender.Leftovers{})
	j, err := in.job(b.Cluster, c)
	if err != nil {
		t.Fatal(err)
	}
	j.before = &findings{Cluster: []string{"Namespace default"}}
	if err := errors.Join(j.lock(t.Context()), j.write(t.Context())); err != nil {
		t.Fatal(err)
	}
	got, err := in.loadJournal(t.Context(), b.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	want := &journal{
		Schema: journalSchema, By: in.id, Contender: "product", Versions: contender.VersionSets()[0], Since: got.Since, Before: &findings{Cluster: []string{"Namespace default"}},
		Facts: map[string]string{"version": "v1", "pod-cidr": "10.7.0.0/16", "service-cidr": "10.8.0.0/16", "control-plane-ips": "10.0.0.1"},
		Image: "of-cluster:1", PullPolicy: "Always", Recipe: &keptRecipe{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, form := range []string{"", "cnibench/install/0"} {
		b = newBed([]runtime.Object{journalMap(t, []byte(`{"schema":"`+form+`","contender":"c"}`))})
		_, err = in.loadJournal(t.Context(), b.Cluster)
		wantError(t, err, "uninstall c with the version that installed it")
	}
}

// journalMap is a journal as the cluster keeps it.
func journalMap(t testing.TB, text []byte) *corev1.ConfigMap {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: journalName, Namespace: ownNamespace}, BinaryData: map[string][]byte{"journal.json.gz": packed.Bytes()},
	}
}

// Every form of the journal that a release has written is read for ever, and
// what it names is taken off by its steps, whatever the catalogue says today.
func TestJournalSpecimen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text, err := os.ReadFile("testdata/journal-1.json")
		if err != nil {
			t.Fatal(err)
		}
		made := func(o *unstructured.Unstructured) *unstructured.Unstructured {
			o.SetAnnotations(map[string]string{madeBy: "product"})
			return o
		}
		b := newBed([]runtime.Object{
			journalMap(t, text), namespace(ownNamespace, ourLabels), nodeOf("a", "10.0.0.1", "", map[string]string{"ours": "x", "theirs": "y"}),
		}, made(object("v1", "Namespace", "", "product")), made(object("x.example/v1", "Widget", "ns", "mine")),
			made(definition("widgets.x.example")), made(object("batch/v1", "Job", "ns", "hooked")))
		in := newInstaller(t, Options{})
		left, err := in.loadJournal(t.Context(), b.Cluster)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := json.MarshalIndent(left, "", "  "); err != nil || string(again)+"\n" != string(text) {
			t.Errorf("%v: the specimen is written as\n%s", err, again)
		}
		j, err := in.fromJournal(b.Cluster, product(contender.Leftovers{}), left)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range slices.Backward(j.steps) {
			if err := s.undo(t.Context(), j); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{"jobs end", "widgets mine", "jobs hooked", "customresourcedefinitions widgets.x.example", "namespaces product"}
		if diff := cmp.Diff(want, b.deleted()); diff != "" {
			t.Error(diff)
		}
		n, err := b.client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"theirs": "y"}, n.Labels); diff != "" {
			t.Error(diff)
		}
	})
}

// A journal can be written by whoever may write into its namespace: it is
// followed only on a marked cluster, in our own namespace.
func TestCleanForged(t *testing.T) {
	bare := pod("shop", "web", func(p *corev1.Pod) { p.Spec.NodeName = "a" })
	ours, theirs := namespace(ownNamespace, ourLabels), namespace(ownNamespace, nil)
	for _, tt := range []struct {
		name    string
		o       Options
		objects []runtime.Object
		want    string
	}{
		{"not marked", Options{Image: "i:1"}, []runtime.Object{ours, namespace("kube-system", nil)}, "the cluster is not marked as scratch"},
		{"another's namespace", Options{Image: "i:1", Scratch: true}, []runtime.Object{theirs}, "was not made by cnibench"},
		{"a user's pod", Options{Image: "i:1", Scratch: true}, []runtime.Object{ours, bare}, "foreign workloads run on the cluster: shop/web"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			forged := []byte(`{"schema":"cnibench/install/1","contender":"product","versions":"2024","before":{"nodes":{},"cluster":[]},"image":"forged/image:1"}`)
			b := newBed(append(tt.objects, journalMap(t, forged)))
			_, err := newInstaller(t, tt.o).Clean(t.Context(), b.Cluster, []*contender.Contender{product(contender.Leftovers{})})
			wantError(t, err, tt.want)
			if u := arena.AsUnsupported(err); u == nil || u.Remedy == "" {
				t.Errorf("%v is no refusal with a next step", err)
			}
			for _, a := range slices.Concat(b.client.Actions(), b.dynamic.Actions()) {
				if a.GetVerb() != "get" && a.GetVerb() != "list" {
					t.Errorf("%s %s", a.GetVerb(), a.GetResource().Resource)
				}
			}
		})
	}
}

// What takes a manifest's objects off needs neither the mirror nor the network:
// their names are in the journal. A file that is missing is found before
// anything is changed.
func TestTakeOffWithoutFiles(t *testing.T) {
	mine := object("x.example/v1", "Widget", "ns", "mine")
	mine.SetAnnotations(map[string]string{madeBy: "product"})
	b := newBed(nil, mine, object("x.example/v1", "Widget", "ns", "theirs"))
	c := product(contender.Leftovers{})
	step := contender.Step{Manifest: &contender.Manifest{URL: "https://example.com/${version}/x.yaml"}}
	c.Kube.Steps = []contender.Step{step}
	dir := t.TempDir()
	first := newInstaller(t, Options{Mirror: dir})
	j, err := first.job(b.Cluster, c)
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, j.gather(t.Context()), "the mirror lacks example.com/v1/x.yaml")
	write(t, dir, map[string]string{"example.com/v1/x.yaml": `
{apiVersion: x.example/v1, kind: Widget, metadata: {name: mine, namespace: ns}, spec: {much: more}}
---
{apiVersion: x.example/v1, kind: Widget, metadata: {name: theirs, namespace: ns}}
`})
	if err := j.gather(t.Context()); err != nil {
		t.Fatal(err)
	}
	j.before = &findings{}
	if err := errors.Join(j.lock(t.Context()), j.write(t.Context())); err != nil {
		t.Fatal(err)
	}
	second := newInstaller(t, Options{})
	second.source.client = nil // no network
	left, err := second.loadJournal(t.Context(), b.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	if j, err = second.fromJournal(b.Cluster, c, left); err != nil {
		t.Fatal(err)
	}
	if err := j.steps[0].undo(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"widgets mine"}, b.deleted()); diff != "" {
		t.Error(diff)
	}
}

// A contender that the catalogue has no more is removed by what the journal kept of its
// recipe, if that names no more than a recipe may. An older journal kept nothing.
func TestCleanForgotten(t *testing.T) {
	clean := func(recipe string) (asked []string, name string, err error) {
		text := `{"schema":"cnibench/install/1","contender":"olden","versions":"2024","before":{"nodes":{},"cluster":[]},"facts":{"version":"v7"}` + recipe + `}`
		b := newBed([]runtime.Object{nodeOf("a", "10.0.0.1", "", nil), namespace(ownNamespace, ourLabels), journalMap(t, []byte(text))}, object("v1", "Namespace", "", ownNamespace))
		in := newInstaller(t, Options{Image: "i:1", Scratch: true})
		in.open = func(context.Context, *kube.Cluster, string, bool) (worker, error) {
			return fakeWorker{answer: func(request string) string { asked = append(asked, request); return "{}" }}, nil
		}
		name, err = in.Clean(t.Context(), b.Cluster, []*contender.Contender{product(contender.Leftovers{})})
		return asked, name, err
	}
	asked, name, err := clean(`,"recipe":{"leftovers":{"interfaces":["olden0"]}}`)
	if err != nil || name != "olden v7" || !strings.Contains(strings.Join(asked, "\n"), `"interfaces":["olden0"]`) {
		t.Errorf("%s, %v; the nodes were asked %v", name, err, asked)
	}
	for recipe, want := range map[string]string{
		"": "uninstall it with the version that installed it", `,"recipe":{"leftovers":{"files":["/etc"]}}`: "want an absolute path at least two folders deep",
	} {
		asked, _, err := clean(recipe)
		wantError(t, err, want)
		if len(asked) > 0 {
			t.Errorf("the nodes were asked %v", asked)
		}
	}
}
