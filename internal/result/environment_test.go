package result_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/result"
)

func TestNodes(t *testing.T) {
	env := result.Environment{"kube.node1.name": "worker-a", "kube.node2.name": "worker-b", "kube.node1.kernel": "6.12", "kube.nodes": "2"}
	if diff := cmp.Diff([]string{"worker-a (node1)", "worker-b (node2)"}, env.Nodes()); diff != "" {
		t.Error(diff)
	}
	hidden := env.Anonymous()
	if diff := cmp.Diff(result.Environment{"kube.node1.kernel": "6.12", "kube.nodes": "2"}, hidden); diff != "" {
		t.Error(diff)
	}
	if hidden.Nodes() != nil || len(env) != 4 {
		t.Errorf("%v has names, or %v was changed", hidden, env)
	}
}
