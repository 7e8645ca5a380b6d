package kube

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/text"
)

func TestChoose(t *testing.T) {
	tainted := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	}
	control := func(n *corev1.Node) {
		n.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""}
	}
	dead := func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Message: "Kubelet stopped posting node status."}}
	}
	bare := func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Message: "container runtime network not ready: NetworkReady=false"}}
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	}
	sick := func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Message: "[container runtime network not ready, PLEG is not healthy]"}}
	}
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	windows := func(n *corev1.Node) { n.Status.NodeInfo.OperatingSystem = "windows" }
	for name, c := range map[string]struct {
		nodes     []*corev1.Node
		named     []string
		tolerated []string
		want      []string
		says      string // instead
	}{
		"the first two":         {nodes: []*corev1.Node{testNode("c"), testNode("a"), testNode("b")}, want: []string{"a", "b"}},
		"workers first":         {nodes: []*corev1.Node{testNode("a", control), testNode("b"), testNode("c")}, want: []string{"b", "c"}},
		"control plane if need": {nodes: []*corev1.Node{testNode("a", control), testNode("b")}, want: []string{"b", "a"}},
		"only ready ones":       {nodes: []*corev1.Node{testNode("a", dead), testNode("b", cordoned), testNode("c", tainted), testNode("d", sick), testNode("e", windows), testNode("f", bare), testNode("g")}, want: []string{"g"}},
		"without a network":     {nodes: []*corev1.Node{testNode("a", bare), testNode("b", bare)}, want: []string{"a", "b"}},
		"tolerated":             {nodes: []*corev1.Node{testNode("a", tainted), testNode("b")}, tolerated: []string{"dedicated=gpu:NoSchedule"}, want: []string{"a", "b"}},
		"another value":         {nodes: []*corev1.Node{testNode("a", tainted)}, tolerated: []string{"dedicated=ssd:NoSchedule"}, says: "a is tainted with dedicated=gpu:NoSchedule"},
		"all tolerated":         {nodes: []*corev1.Node{testNode("a", tainted)}, tolerated: []string{"all"}, want: []string{"a"}},
		"named":                 {nodes: []*corev1.Node{testNode("a"), testNode("b"), testNode("c")}, named: []string{"c", "a", "b"}, want: []string{"c", "a", "b"}},
		"named, not ready":      {nodes: []*corev1.Node{testNode("a", dead)}, named: []string{"a"}, says: "node a is not ready: Kubelet stopped posting node status"},
		"named, cordoned":       {nodes: []*corev1.Node{testNode("a", cordoned)}, named: []string{"a"}, says: "node a is cordoned"},
		"none":                  {says: "the cluster has no nodes"},
		"none that is ready":    {nodes: []*corev1.Node{testNode("a", dead), testNode("b", windows)}, says: "a is not ready: Kubelet stopped posting node status.; b runs windows, not Linux"},
	} {
		t.Run(name, func(t *testing.T) {
			tolerated, err := tolerations(c.tolerated)
			if err != nil {
				t.Fatal(err)
			}
			var list []corev1.Node
			for _, n := range c.nodes {
				list = append(list, *n)
			}
			chosen, err := choose(list, c.named, tolerated)
			if c.says != "" {
				if text := unsupported(t, err); !strings.Contains(text, c.says) {
					t.Errorf("%s; want %s", text, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range chosen {
				got = append(got, n.realName)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	var unknown *text.UnknownError
	if _, err := choose([]corev1.Node{*testNode("worker-1")}, []string{"worker1"}, nil); !errors.As(err, &unknown) || !strings.Contains(err.Error(), `did you mean "worker-1"`) {
		t.Errorf("an unknown name: %v", err)
	}
	_, err := choose([]corev1.Node{*testNode("a")}, []string{"a", "a"}, nil)
	if text := usageText(t, err); !strings.Contains(text, "a is named twice") {
		t.Error(text)
	}
}

func TestTolerations(t *testing.T) {
	got, err := tolerations([]string{"all", "a", "a:NoExecute", "a=b", "a.io/b=c:NoSchedule"})
	if err != nil {
		t.Fatal(err)
	}
	want := []corev1.Toleration{
		{Operator: corev1.TolerationOpExists},
		{Operator: corev1.TolerationOpExists, Key: "a"},
		{Operator: corev1.TolerationOpExists, Key: "a", Effect: corev1.TaintEffectNoExecute},
		{Operator: corev1.TolerationOpEqual, Key: "a", Value: "b"},
		{Operator: corev1.TolerationOpEqual, Key: "a.io/b", Value: "c", Effect: corev1.TaintEffectNoSchedule},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"", ":NoSchedule", "a:Never", "=b"} {
		_, err := tolerations([]string{text})
		_ = usageText(t, err)
	}
}

func TestJudgePod(t *testing.T) {
	pod := func(change func(p *corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Image: "i"}}}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
		p.Name = "x"
		change(p)
		return p
	}
	waits := func(reason, message string) func(p *corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
		}
	}
	for name, c := range map[string]struct {
		change  func(p *corev1.Pod)
		running bool
		says    string
		remedy  bool
	}{
		"pending":  {func(*corev1.Pod) {}, false, "", false},
		"creating": {waits("ContainerCreating", ""), false, "", false},
		"running": {func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.1"}}
		}, true, "", false},
		"no address yet": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, false, "", false},
		"never pulled":   {waits("ErrImageNeverPull", "not present"), false, "the image i does not come to node a: ErrImageNeverPull: not present", true},
		"not pulled":     {waits("ErrImagePull", "no such host"), false, "the image i does not come to node a: ErrImagePull: no such host", true},
		"bad name":       {waits("InvalidImageName", ""), false, "the image i does not come to node a: InvalidImageName", true},
		"no program":     {waits("RunContainerError", "no such file"), false, "pod x on node a does not start: RunContainerError: no such file", true},
		"evicted": {func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
		}, false, "pod x on node a has ended: Evicted: The node was low on resource: memory.", false},
		"no room": {func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "OutOfcpu", "Node didn't have enough resource: cpu"
		}, false, "OutOfcpu: Node didn't have enough resource", false},
		"another program": {func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error"}}}}
		}, false, "pod x on node a ended with exit code 2: Error", true},
		"deleted": {func(p *corev1.Pod) { now := created; p.DeletionTimestamp = &now }, false, "is being deleted by somebody else", false},
	} {
		t.Run(name, func(t *testing.T) {
			running, err := podRuns(pod(c.change))
			if running != c.running || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, %v", running, err)
			}
			if (arena.AsUnsupported(err) != nil) != c.remedy {
				t.Errorf("%v: is there a remedy?", err)
			}
		})
	}
}

// choose returns the nodes of a pair of those, or the named.
func choose(all []corev1.Node, names []string, tolerated []corev1.Toleration) ([]*node, error) {
	list, err := usable(all, names, tolerated)
	if err != nil || len(names) > 0 {
		return list, err
	}
	return numberNodes(pair(list)), nil
}
