package kube

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/arenatest"
	"github.com/cnibench/cnibench/internal/contender"
)

// realCluster is the options for a cluster that is there.
func realCluster(t *testing.T) Options {
	t.Helper()
	config, image := os.Getenv("CNIBENCH_KUBECONFIG"), os.Getenv("CNIBENCH_IMAGE")
	if config == "" || image == "" {
		t.Skip("no cluster to test with: make testbed-up, and set CNIBENCH_KUBECONFIG and CNIBENCH_IMAGE to what it prints")
	}
	return Options{Kubeconfig: config, Image: image, PullPolicy: os.Getenv("CNIBENCH_PULL_POLICY"), Log: t.Logf}
}

func TestConformance(t *testing.T) {
	a, err := New(t.Context(), realCluster(t))
	if err != nil {
		t.Fatal(err)
	}
	net, err := a.Up(t.Context(), a.ThisCluster(), "")
	if err != nil {
		t.Fatal(err)
	}
	mtu := net.(*network).uplinkMTU
	if err := net.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	for key, value := range a.Environment() {
		t.Logf("%s: %s", key, value)
	}
	host := &contender.Contender{ID: HostID}
	ran := arenatest.Run(t, a, []*contender.Contender{host, a.ThisCluster()}, arenatest.Config{Exe: Program, UnderlayMTU: mtu, Nodes: 2})
	if !slices.Contains(ran, ThisClusterID) {
		t.Errorf("%s did not run", ThisClusterID)
	}
}

func TestClusterImageThatIsNotThere(t *testing.T) {
	o := realCluster(t)
	o.Image, o.PullPolicy = "localhost/no-such-cnibench:1", "Never"
	a, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Up(t.Context(), a.ThisCluster(), "")
	if text := unsupported(t, err); !strings.Contains(text, "ErrImageNeverPull") {
		t.Error(text)
	}
}

func TestClusterServiceKinds(t *testing.T) {
	for _, kind := range []string{NodePort, Headless} {
		t.Run(kind, func(t *testing.T) {
			o := realCluster(t)
			o.Service = kind
			a, err := New(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			n := up(t, a, a.ThisCluster())
			p, took, err := n.Service(t.Context(), []arena.Port{{Protocol: arena.TCP, Number: 5201}}, 5)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v in %v", p, took)
		})
	}
}
