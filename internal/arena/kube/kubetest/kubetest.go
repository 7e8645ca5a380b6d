// Package kubetest is the cluster that the environment gives to tests, which
// make test-kube brings up: CNIBENCH_KUBECONFIG; CNIBENCH_IMAGE, which its
// nodes hold (default: cnibench:dev); and where it is a test bed,
// CNIBENCH_TESTBED, the program, with CNIBENCH_TESTBED_DIR, its folder, and
// CNIBENCH_MIRROR, a folder that `testbed mirror` has written. It is this file.
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

// Given is the cluster; the test is skipped where none is given.
func Given(t *testing.T) Cluster {
	t.Helper()
	c := Cluster{os.Getenv("CNIBENCH_KUBECONFIG"), cmp.Or(os.Getenv("CNIBENCH_IMAGE"), "cnibench:dev")}
	if c.Kubeconfig == "" {
		t.Skip("no cluster to test with: run make test-kube, or set CNIBENCH_KUBECONFIG to the kubeconfig of one whose nodes hold the image of `make image` (CNIBENCH_IMAGE, or cnibench:dev)")
	}
	return c
}

// Bed is a cluster that is a test bed: its nodes may be stopped and changed.
type Bed struct{ Cluster }

// GivenBed is the test bed; the test is skipped where none is given: what it
// does is nobody's to try on a real cluster.
func GivenBed(t *testing.T) Bed {
	t.Helper()
	if c := Given(t); os.Getenv("CNIBENCH_TESTBED") != "" {
		return Bed{c}
	}
	t.Skip("the cluster is no test bed; make test-kube brings one up")
	return Bed{}
}

// Do runs a command of the test bed's program, and returns what it printed.
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

// OnNode is what a shell on a node prints.
func (b Bed) OnNode(t *testing.T, node, script string) string {
	t.Helper()
	return b.Do(t, "node-exec", node, "--", "sh", "-c", script)
}

// WithoutPodNetwork takes the pod network off for the time of the test.
func (b Bed) WithoutPodNetwork(t *testing.T) {
	t.Helper()
	b.Do(t, "uninstall", "routes")
	t.Cleanup(func() { b.Do(t, "install", "routes") })
}

// Mirror is the folder with what can be installed on the test bed.
func (b Bed) Mirror(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("CNIBENCH_MIRROR"); dir != "" {
		return dir
	}
	dir := t.TempDir()
	b.Do(t, "mirror", dir)
	return dir
}
