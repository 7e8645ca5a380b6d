// Package kubetest finds the cluster for tests by environment variables, which make
// test-kube sets: CNIBENCH_KUBECONFIG; CNIBENCH_IMAGE, an image on its nodes (default:
// cnibench:dev); and for a test bed CNIBENCH_TESTBED, its program, CNIBENCH_TESTBED_DIR,
// its folder, and CNIBENCH_MIRROR, a folder that `testbed mirror` has written. Next: kubetest.go.
package kubetest

import (
	"cmp"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Cluster is a cluster for tests.
type Cluster struct{ Kubeconfig, Image string }

// GetCluster returns the cluster, and skips the test if there is none.
func GetCluster(t *testing.T) Cluster {
	t.Helper()
	c := Cluster{os.Getenv("CNIBENCH_KUBECONFIG"), cmp.Or(os.Getenv("CNIBENCH_IMAGE"), "cnibench:dev")}
	if c.Kubeconfig == "" {
		t.Skip("no cluster to test with: run make test-kube, or set CNIBENCH_KUBECONFIG to the kubeconfig of one whose nodes hold the image of `make image` (CNIBENCH_IMAGE, or cnibench:dev)")
	}
	return c
}

// Bed is a cluster that is a test bed: its nodes may be stopped and changed.
type Bed struct{ Cluster }

// GetBed returns the test bed, and skips the test if there is none: the test would harm
// a real cluster.
func GetBed(t *testing.T) Bed {
	t.Helper()
	if c := GetCluster(t); os.Getenv("CNIBENCH_TESTBED") != "" {
		return Bed{c}
	}
	t.Skip("the cluster is no test bed; make test-kube brings one up")
	return Bed{}
}

// Do runs a command of the test bed's program and returns its output.
func (b Bed) Do(t *testing.T, args ...string) string {
	t.Helper()
	if dir := os.Getenv("CNIBENCH_TESTBED_DIR"); dir != "" {
		args = append([]string{"--dir", dir}, args...)
	}
	out, err := exec.Command(os.Getenv("CNIBENCH_TESTBED"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("testbed %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// OnNode returns the output of a shell script on a node.
func (b Bed) OnNode(t *testing.T, node, script string) string {
	t.Helper()
	return b.Do(t, "node-exec", node, "--", "sh", "-c", script)
}

// WithoutPodNetwork removes the pod network for the time of the test.
func (b Bed) WithoutPodNetwork(t *testing.T) {
	t.Helper()
	b.Do(t, "uninstall", "routes")
	t.Cleanup(func() { b.Do(t, "install", "routes") })
}

// Mirror returns the folder with the products that can be installed on the test bed.
func (b Bed) Mirror(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("CNIBENCH_MIRROR"); dir != "" {
		return dir
	}
	dir := t.TempDir()
	b.Do(t, "mirror", dir)
	return dir
}
