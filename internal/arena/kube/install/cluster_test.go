package install

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/contenders"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/contender"
)

// The tests named TestKube want a cluster without a pod network: make
// test-kube brings one up. CNIBENCH_MIRROR is a folder that `testbed mirror`
// has written; without it the test bed writes one.

// bare is a cluster without a pod network, connected.
func bare(t *testing.T) *kube.Cluster {
	t.Helper()
	config, image := os.Getenv("CNIBENCH_KUBECONFIG"), os.Getenv("CNIBENCH_IMAGE")
	if config == "" || image == "" {
		t.Skip("no cluster to install on: run make test-kube, or set CNIBENCH_KUBECONFIG and CNIBENCH_IMAGE (and CNIBENCH_MIRROR)")
	}
	if os.Getenv("CNIBENCH_TESTBED") != "" {
		testbed(t, "uninstall", "routes")
		t.Cleanup(func() { testbed(t, "install", "routes") })
	}
	cl, err := kube.Connect(t.Context(), kube.Options{Kubeconfig: config, Image: image, PullPolicy: "IfNotPresent"})
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

func testbed(t *testing.T, args ...string) {
	t.Helper()
	if dir := os.Getenv("CNIBENCH_TESTBED_DIR"); dir != "" {
		args = append([]string{"--dir", dir}, args...)
	}
	if out, err := exec.Command(os.Getenv("CNIBENCH_TESTBED"), args...).CombinedOutput(); err != nil {
		t.Fatalf("testbed %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// mirrorFolder holds the charts that the cluster can install.
func mirrorFolder(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("CNIBENCH_MIRROR"); dir != "" || os.Getenv("CNIBENCH_TESTBED") == "" {
		return dir
	}
	dir := t.TempDir()
	testbed(t, "mirror", dir)
	return dir
}

// TestKubeInstall: the products without kube-proxy and without a tunnel; the
// others are installed by the command's own test.
func TestKubeInstall(t *testing.T) {
	cl := bare(t)
	if os.Getenv("CNIBENCH_TESTBED") != "" { // where kube-proxy is a process of the node
		testbed(t, "kube-proxy", "off")
		t.Cleanup(func() { testbed(t, "kube-proxy", "on") })
	}
	in, err := New(Options{Versions: contender.VersionsLatest, Mirror: mirrorFolder(t), Scratch: true, Log: t.Logf})
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

// TestKubeInstallCrash: what a crashed process left on the cluster, another
// one takes off, and installs nothing over it.
func TestKubeInstallCrash(t *testing.T) {
	cl := bare(t)
	o := Options{Versions: contender.VersionsLatest, Mirror: mirrorFolder(t), Scratch: true, Log: t.Logf}
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
	cl.Options.Image = "cnibench.invalid/none:1" // the journal knows the one that the nodes have
	what, err := next.Clean(t.Context(), cl, all)
	if err != nil || !strings.HasPrefix(what, "flannel-host-gw ") {
		t.Fatalf("cleaned %q: %v", what, err)
	}
	gone(t, cl)
	if what, err := next.Clean(t.Context(), cl, all); what != "" || err != nil {
		t.Errorf("cleaned twice: %q, %v", what, err)
	}
}

// TestKubeInstallRefused: an unmarked cluster is left as it is.
func TestKubeInstallRefused(t *testing.T) {
	cl := bare(t)
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
