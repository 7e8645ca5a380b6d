package kube

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/cnibench/cnibench/internal/contender"
)

func TestAnonymous(t *testing.T) {
	a := &Arena{
		cl:   &Cluster{Config: &rest.Config{Host: "https://api.corp.example:6443/k8s"}},
		list: []*node{{name: "node1", realName: "ip-10-0-0-7.corp.internal"}, {name: "node2", realName: "worker"}},
	}
	for text, want := range map[string]string{
		"pod node2-pod1 on node worker (node2) is gone":                              "pod node2-pod1 on node node2 is gone",
		"node ip-10-0-0-7.corp.internal does not answer.":                            "node node1 does not answer.",
		"bound to ip-10-0-0-7.corp.internal.":                                        "bound to node1.",
		"the worker-pool and workers":                                                "the worker-pool and workers",
		`Get "https://api.corp.example:6443/api/v1/nodes": connection refused`:       `Get "https://api-server:6443/api/v1/nodes": connection refused`,
		"node1: the window was not recorded":                                         "node1: the window was not recorded",
		"pod node1 on node worker ended: exit code 1; node ip-10-0-0-7 is no node's": "pod node1 on node node2 ended: exit code 1; node ip-10-0-0-7 is no node's",
	} {
		if got := a.Anonymous(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	a.list = []*node{{name: "node1", realName: "node2"}, {name: "node2", realName: "node1"}}
	if text := "node node2 (node1) is not there"; a.Anonymous(text) != text {
		t.Errorf("%q became %q", text, a.Anonymous(text))
	}
}

// The environment has each node's name once, unless it is to be anonymous.
func TestNamesOfNodes(t *testing.T) {
	for anonymous, want := range map[bool]int{false: 2, true: 0} {
		a := &Arena{
			cl: &Cluster{Config: &rest.Config{}, cargo: newCargo()}, thisCluster: &contender.Contender{}, opt: Options{Anonymous: anonymous, Image: "example/shell:1"},
			list: []*node{{name: "node1", realName: "worker-a"}, {name: "node2", realName: "worker-b"}},
		}
		if names := a.Environment().Nodes(); len(names) != want {
			t.Errorf("anonymous %v: %v", anonymous, names)
		}
	}
}
