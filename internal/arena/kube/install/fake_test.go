package install

import (
	"context"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/contender"
)

// bed is a cluster of objects in memory: the typed client's and, apart from
// those, the dynamic client's.
type bed struct {
	*kube.Cluster
	client  *fake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
}

// fixedMapper knows the kinds that tests use.
type fixedMapper struct{ meta.RESTMapper }

func (fixedMapper) Reset() {}

var widgets = schema.GroupVersionKind{Group: "x.example", Version: "v1", Kind: "Widget"}

func newBed(typed []runtime.Object, others ...runtime.Object) *bed {
	mapper := meta.NewDefaultRESTMapper(nil)
	crd := crdResource.GroupVersion().WithKind("CustomResourceDefinition")
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	mapper.Add(crd, meta.RESTScopeRoot)
	mapper.Add(widgets, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, meta.RESTScopeNamespace)
	lists := map[schema.GroupVersionResource]string{
		crdResource:                             "CustomResourceDefinitionList",
		{Version: "v1", Resource: "namespaces"}: "NamespaceList",
		{Group: "x.example", Version: "v1", Resource: "widgets"}: "WidgetList",
		{Group: "batch", Version: "v1", Resource: "jobs"}:        "JobList",
	}
	for _, k := range comparedKinds {
		lists[k.gvr] = k.kind + "List"
	}
	b := &bed{
		client:  fake.NewClientset(typed...),
		dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, others...),
	}
	b.Cluster = &kube.Cluster{
		Client: b.client, Dynamic: b.dynamic, Mapper: fixedMapper{mapper},
		Options: kube.Options{Image: "of-cluster:1", PullPolicy: "Always", Kubeconfig: "its/config"},
	}
	return b
}

// ourLabels are those of the installer's own namespace.
var ourLabels = map[string]string{"app.kubernetes.io/part-of": "cnibench"}

// deleted are the names of what was deleted through the dynamic client.
func (b *bed) deleted() []string {
	var names []string
	for _, a := range b.dynamic.Actions() {
		if d, ok := a.(ktesting.DeleteAction); ok {
			names = append(names, a.GetResource().Resource+" "+d.GetName())
		}
	}
	return names
}

// created are the names of what was created through the dynamic client.
func (b *bed) created() []string {
	var names []string
	for _, a := range b.dynamic.Actions() {
		if c, ok := a.(ktesting.CreateAction); ok && a.GetVerb() == "create" {
			o := c.GetObject().(*unstructured.Unstructured)
			names = append(names, strings.TrimPrefix(a.GetNamespace()+"/"+o.GetName(), "/"))
		}
	}
	return names
}

// product is a contender that leaves what is asked.
func product(l contender.Leftovers) *contender.Contender {
	return &contender.Contender{ID: "product", Kube: &contender.Kube{
		Versions:  map[string]contender.KubeVersion{contender.VersionSets()[0]: {Version: "v1"}},
		Leftovers: l,
	}}
}

func newInstaller(t *testing.T, o Options) *Installer {
	t.Helper()
	if o.Patience == 0 {
		o.Patience = time.Minute
	}
	in, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func newJob(t *testing.T, b *bed, l contender.Leftovers, before *findings) *job {
	t.Helper()
	j, err := newInstaller(t, Options{}).job(b.Cluster, product(l))
	if err != nil {
		t.Fatal(err)
	}
	j.before = before
	return j
}

// definition is the one of Widget, or another of its group.
func definition(name string, marks ...string) *unstructured.Unstructured {
	o := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name)
	o.Object["spec"] = map[string]any{
		"group": "x.example", "names": map[string]any{"plural": "widgets"},
		"versions": []any{map[string]any{"name": "v1", "storage": true}},
	}
	if len(marks) > 0 {
		o.SetAnnotations(map[string]string{madeBy: marks[0]})
	}
	return o
}

// fakeWorker is a pod of this program on a node that answers by a function.
type fakeWorker struct {
	answer func(request string) string
	closed func(ctx context.Context) error
}

func (fakeWorker) Addr() netip.Addr { return netip.MustParseAddr("10.9.0.1") }

func (w fakeWorker) Run(_ context.Context, stdin io.Reader, _ ...string) kube.OnMachine {
	request, err := io.ReadAll(stdin)
	return kube.OnMachine{Stdout: w.answer(string(request)), Err: err}
}

func (w fakeWorker) Close(ctx context.Context) error {
	if w.closed == nil {
		return nil
	}
	return w.closed(ctx)
}
