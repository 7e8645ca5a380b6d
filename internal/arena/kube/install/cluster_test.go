package install

import (
	"errors"
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/contenders"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/testutil/kubetest"
)

// The tests named TestKube want a test bed, whose pod network they take off:
// make test-kube brings one up.

// TestKubeInstall takes the test bed's pod network off once for all that it tests.
func TestKubeInstall(t *testing.T) {
	bed := kubetest.GetBed(t)
	bed.WithoutPodNetwork(t)
	cl, err := kube.Connect(t.Context(), kube.Options{Kubeconfig: bed.Kubeconfig, Image: bed.Image, PullPolicy: "IfNotPresent"})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("refused", func(t *testing.T) { testRefused(t, cl) })
	t.Run("crash", func(t *testing.T) { testCrash(t, bed, cl) })
	t.Run("products", func(t *testing.T) { testProducts(t, bed, cl) })
}

// testProducts: the products without kube-proxy and without a tunnel; the
// others are installed by the command's own test.
func testProducts(t *testing.T, bed kubetest.Bed, cl *kube.Cluster) {
	bed.Do(t, "kube-proxy", "off") // a process of the node, which no recipe can stop
	t.Cleanup(func() { bed.Do(t, "kube-proxy", "on") })
	in, err := New(Options{Versions: contender.VersionsLatest, Mirror: bed.Mirror(t), Scratch: true, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	all, err := contender.Load(contenders.FS)
	if err != nil {
		t.Fatal(err)
	}
	ids := "cilium-nokproxy,cilium-native"
	if named := os.Getenv("CNIBENCH_CONTENDERS"); named != "" {
		ids = named
	}
	for _, id := range strings.Split(ids, ",") {
		t.Run(id, func(t *testing.T) {
			c, err := contender.Find(all, id)
			if err != nil {
				t.Fatal(err)
			}
			if err := in.Supports(c); err != nil {
				t.Skip(err)
			}
			if err := errors.Join(in.Install(t.Context(), cl, c), in.Uninstall(t.Context(), cl, c)); err != nil {
				t.Fatal(err)
			}
			gone(t, cl)
		})
	}
}

// testCrash: what a crashed process left on the cluster, another one takes off,
// and installs nothing over it.
func testCrash(t *testing.T, bed kubetest.Bed, cl *kube.Cluster) {
	o := Options{Versions: contender.VersionsLatest, Mirror: bed.Mirror(t), Scratch: true, Log: t.Logf}
	all, err := contender.Load(contenders.FS)
	if err != nil {
		t.Fatal(err)
	}
	c, err := contender.Find(all, "flannel-host-gw")
	if err != nil {
		t.Fatal(err)
	}
	crashed, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := crashed.Install(t.Context(), cl, c); err != nil {
		t.Fatal(err)
	}
	next, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	err = next.Install(t.Context(), cl, c)
	if u := arena.AsUnsupported(err); u == nil || !strings.Contains(u.Remedy, "cnibench clean --arena kube") {
		t.Errorf("installed over it: %v", err)
	}
	// The journal knows the versions and facts; the mark and the image are the user's.
	if next, err = New(Options{Log: t.Logf, Scratch: true, Image: bed.Image}); err != nil {
		t.Fatal(err)
	}
	what, err := next.Clean(t.Context(), cl, all)
	if err != nil || !strings.HasPrefix(what, "flannel-host-gw ") {
		t.Fatalf("cleaned %q: %v", what, err)
	}
	gone(t, cl)
	if what, err := next.Clean(t.Context(), cl, all); what != "" || err != nil {
		t.Errorf("cleaned twice: %q, %v", what, err)
	}
}

// testRefused: an unmarked cluster is left as it is.
func testRefused(t *testing.T, cl *kube.Cluster) {
	in, err := New(Options{Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	all, err := contender.Load(contenders.FS)
	if err != nil {
		t.Fatal(err)
	}
	c, err := contender.Find(all, "flannel-vxlan")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{in.Check(t.Context(), cl), in.Install(t.Context(), cl, c)} {
		if u := arena.AsUnsupported(err); u == nil || !strings.Contains(u.Remedy, "--scratch") {
			t.Errorf("got %v, want a refusal", err)
		}
	}
	gone(t, cl)
}

// gone wants the installer's namespace away and no node cordoned.
func gone(t *testing.T, cl *kube.Cluster) {
	t.Helper()
	if _, err := cl.Client.CoreV1().Namespaces().Get(t.Context(), ownNamespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("namespace %s is still there: %v", ownNamespace, err)
	}
	nodes, err := cl.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes.Items {
		if n.Spec.Unschedulable {
			t.Errorf("node %s is still cordoned", n.Name)
		}
	}
}
