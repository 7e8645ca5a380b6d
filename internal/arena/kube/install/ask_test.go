package install

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/arena/kube/install/node"
	"github.com/cnibench/cnibench/internal/contender"
)

// What libraries print on a node hides neither the answer nor its error.
func TestAskAmongRemarks(t *testing.T) {
	b := newBed([]runtime.Object{namespace(ownNamespace, ourLabels)})
	j := newJob(t, b, contender.Leftovers{}, nil)
	const remark = "2026/11/22 20:38:35 unknown ipset data attribute from kernel: {Type:21 Value:[12]} 21\n"
	j.open = func(context.Context, *kube.Cluster, string, bool) (worker, error) {
		return fakeWorker{answer: func(string) string { return remark + `{"error":"ipset x: busy"}` + "\n" + remark }}, nil
	}
	_, err := j.ask(t.Context(), "a", node.Request{Do: node.DoState}, true)
	wantError(t, err, "node a: ipset x: busy")
	if said := tail(strings.Repeat(remark, 9) + "the error\n"); !strings.HasSuffix(said, "the error") || len(said) > 300 {
		t.Errorf("said %q", said)
	}
}

// A request of any length reaches the node: it goes through standard input, as one
// argument of a command has 128 KiB at most.
func TestAskAtLength(t *testing.T) {
	b := newBed([]runtime.Object{namespace(ownNamespace, ourLabels)})
	j := newJob(t, b, contender.Leftovers{}, nil)
	keep := node.State{"file": {strings.Repeat("x", 1<<20)}}
	j.open = func(context.Context, *kube.Cluster, string, bool) (worker, error) {
		return argued{fakeWorker{answer: func(request string) string {
			var got node.Request
			if err := json.Unmarshal([]byte(request), &got); err != nil || len(got.Keep["file"][0]) != 1<<20 {
				t.Errorf("the node got %d bytes, %v", len(request), err)
			}
			return `{"state":{}}`
		}}, t}, nil
	}
	if _, err := j.ask(t.Context(), "a", node.Request{Do: node.DoClean, Keep: keep}, true); err != nil {
		t.Error(err)
	}
}

// argued is a worker whose command has the arguments of a real one.
type argued struct {
	fakeWorker
	t *testing.T
}

func (w argued) Run(ctx context.Context, stdin io.Reader, args ...string) kube.OnMachine {
	if diff := cmp.Diff([]string{"agent", "node"}, args); diff != "" {
		w.t.Error(diff)
	}
	return w.fakeWorker.Run(ctx, stdin, args...)
}

// An object that would undo a farewell's command goes before the command runs.
func TestFarewellAfter(t *testing.T) {
	agent := object("x.example/v1", "Widget", "ns", "agent")
	agent.SetAnnotations(map[string]string{madeBy: "product"})
	b := newBed([]runtime.Object{namespace(ownNamespace, ourLabels)}, agent)
	j := newJob(t, b, contender.Leftovers{}, nil)
	j.c.Kube.Steps = []contender.Step{{Farewell: &contender.Farewell{
		After:     []contender.Object{{APIVersion: "x.example/v1", Kind: "Widget", Namespace: "ns", Name: "agent"}},
		Namespace: "ns", Selector: "app=ovs", Container: "ovs", Command: []string{"true"},
	}}}
	if err := j.runFarewells(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"widgets agent"}, b.deleted()); diff != "" {
		t.Error(diff)
	}
}

// What fails in one pod does not keep others from their farewell.
func TestFarewellGoesOn(t *testing.T) {
	labels := map[string]string{"app": "ovs"}
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	}
	b := newBed([]runtime.Object{namespace(ownNamespace, ourLabels), pod("a"), pod("b")})
	j := newJob(t, b, contender.Leftovers{}, nil)
	var asked []string
	broken := errors.New("no answer")
	j.cl.Exec = func(_, pod, _ string, _ []string) agent.Stream {
		return func(context.Context, io.Reader, io.Writer, io.Writer) error {
			asked = append(asked, pod)
			return broken
		}
	}
	j.c.Kube.Steps = []contender.Step{{Farewell: &contender.Farewell{Namespace: "ns", Selector: "app=ovs", Container: "ovs", Command: []string{"true"}}}}
	if err := j.runFarewells(t.Context()); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, asked); diff != "" {
		t.Error(diff)
	}
}

// The proof says what has another value and what has gone, not only what has come.
func TestProofOfValues(t *testing.T) {
	state := func(rule, setting string) *findings {
		return &findings{Nodes: map[string]*node.Answer{"a": {State: node.State{
			"rule in": {rule}, "setting": {"net/ipv4/ip_forward = " + setting, "net/ipv4/conf/veth1/rp_filter = 1"},
		}}}}
	}
	before := state("ip filter FORWARD: accept #00000001", "0")
	got := strings.Join(state("ip filter FORWARD: accept #00000002", "1").changes(before), "\n")
	want := `a: rule in ip filter FORWARD: accept #00000001 (has gone)
a: rule in ip filter FORWARD: accept #00000002
a: setting net/ipv4/ip_forward: it is 1 and was 0`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
