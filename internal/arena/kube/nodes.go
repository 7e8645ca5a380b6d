package kube

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/text"
)

// node is a machine of the cluster that is used.
type node struct {
	name     string     // in reports: "node1", so that nobody publishes a host's name
	realName string     // in the cluster
	addr     netip.Addr // internal
	cpus     int
	zone     string // "" for none
	role     string // "control-plane" or "worker"
	info     corev1.NodeSystemInfo
	ready    bool // false: the node lacks a pod network, and only that
}

// String returns the name by which users find the node.
func (n *node) String() string {
	if n.realName == n.name {
		return n.realName
	}
	return fmt.Sprintf("%s (%s)", n.realName, n.name)
}

// tolerations reads key[=value]:effect, or "all".
func tolerations(list []string) ([]corev1.Toleration, error) {
	var all []corev1.Toleration
	for _, text := range list {
		if text == "all" {
			all = append(all, corev1.Toleration{Operator: corev1.TolerationOpExists})
			continue
		}
		keyValue, effect, _ := strings.Cut(text, ":")
		t := corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffect(effect)}
		var hasValue bool
		if t.Key, t.Value, hasValue = strings.Cut(keyValue, "="); hasValue {
			t.Operator = corev1.TolerationOpEqual
		}
		switch t.Effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule, "":
		default:
			return nil, &UsageError{fmt.Sprintf("toleration %q: the effect is NoSchedule, NoExecute or PreferNoSchedule", text)}
		}
		if t.Key == "" {
			return nil, &UsageError{fmt.Sprintf("toleration %q: want key[=value]:effect, or all", text)}
		}
		all = append(all, t)
	}
	return all, nil
}

// noNetworkYet tolerates the taints of a node that lacks only a pod network. Pods in the
// host network can run there.
var noNetworkYet = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists},
	{Key: corev1.TaintNodeNetworkUnavailable, Operator: corev1.TolerationOpExists},
}

// pair returns the first node, and another one like it: in its zone and of its kind of CPU,
// if there is one.
func pair(list []*node) []*node {
	if len(list) < 3 {
		return list
	}
	like := func(n *node) bool {
		return n.zone == list[0].zone && n.role == list[0].role && n.info.Architecture == list[0].info.Architecture
	}
	second := max(0, slices.IndexFunc(list[1:], like))
	return []*node{list[0], list[1+second]}
}

// usable returns the named nodes, or all on which pods can run, those that are ready, by
// role and name.
func usable(all []corev1.Node, names []string, tolerated []corev1.Toleration) ([]*node, error) {
	var chosen []*node
	if len(names) > 0 {
		for _, name := range names {
			n, err := text.Find("node", name, all, func(n corev1.Node) string { return n.Name })
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(chosen, func(n *node) bool { return n.realName == name }) {
				return nil, &UsageError{fmt.Sprintf("--nodes: %s is named twice", name)}
			}
			usable, why := judgeNode(&n, tolerated)
			if usable == nil {
				return nil, &arena.Unsupported{Reason: "node " + why, Remedy: "name another one with --nodes, or mend it"}
			}
			chosen = append(chosen, usable)
		}
		return numberNodes(chosen), nil
	}
	slices.SortFunc(all, func(a, b corev1.Node) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(a.Name, b.Name))
	})
	var ready, withoutNetwork []*node
	var why []string
	for i := range all {
		switch usable, text := judgeNode(&all[i], tolerated); {
		case usable == nil:
			why = append(why, text)
		case usable.ready:
			ready = append(ready, usable)
		default:
			withoutNetwork = append(withoutNetwork, usable)
		}
	}
	if len(ready) == 0 {
		ready = withoutNetwork // enough for the baseline and for contenders to install
	}
	if len(ready) == 0 {
		reason := "the cluster has no nodes"
		if len(why) > 0 {
			reason = "no node can be used: " + strings.Join(why, "; ")
		}
		return nil, &arena.Unsupported{Reason: reason, Remedy: "mend a node, or let pods on it with --tolerations KEY=VALUE:EFFECT"}
	}
	return numberNodes(ready), nil
}

func numberNodes(list []*node) []*node {
	for i, n := range list {
		n.name = fmt.Sprintf("node%d", i+1)
	}
	return list
}

// rank puts nodes of the control plane last: their work and a measurement disturb each
// other.
func rank(n *corev1.Node) int {
	for _, label := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		if _, labelled := n.Labels[label]; labelled {
			return 1
		}
	}
	return 0
}

// workingNodes returns the named nodes, or all nodes that work, sorted by name. broken
// says of the other nodes why they do not work. Cordons and taints do not count: the pods
// are bound to their nodes and tolerate all taints.
func workingNodes(all []corev1.Node, names []string) (chosen []*node, broken []string, err error) {
	slices.SortFunc(all, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	for i := range all {
		if len(names) > 0 && !slices.Contains(names, all[i].Name) {
			continue
		}
		if works, why := workingNode(&all[i]); works == nil {
			broken = append(broken, why)
		} else {
			chosen = append(chosen, works)
		}
	}
	for _, name := range names {
		if _, err := text.Find("node", name, all, func(n corev1.Node) string { return n.Name }); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case len(names) > 0 && len(broken) > 0:
		return nil, nil, &arena.Unsupported{Reason: "node " + strings.Join(broken, "; "), Remedy: "mend it, or leave it out of --nodes"}
	case len(chosen) == 0:
		return nil, nil, &arena.Unsupported{Reason: strings.Join(append([]string{"no node works"}, broken...), "; "), Remedy: "`kubectl get nodes` must list one that is Ready"}
	}
	return numberNodes(chosen), broken, nil
}

// judgeNode returns a node on which pods can be scheduled, or nil and the reason why not.
func judgeNode(n *corev1.Node, tolerated []corev1.Toleration) (*node, string) {
	use, why := workingNode(n)
	if use == nil {
		return nil, why
	}
	if n.Spec.Unschedulable {
		return nil, n.Name + " is cordoned"
	}
	tolerated = slices.Concat(tolerated, noNetworkYet)
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(tolerated, func(o corev1.Toleration) bool { return tolerates(&o, t) }) {
			return nil, fmt.Sprintf("%s is tainted with %s", n.Name, t.ToString())
		}
	}
	return use, ""
}

// workingNode returns a node that runs Linux and lacks at most a pod network, or nil and
// the reason why not.
func workingNode(n *corev1.Node) (*node, string) {
	use := &node{
		realName: n.Name, info: n.Status.NodeInfo, cpus: int(n.Status.Capacity.Cpu().Value()),
		zone: n.Labels[corev1.LabelTopologyZone], role: []string{"worker", "control-plane"}[rank(n)],
	}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP && !use.addr.IsValid() {
			use.addr, _ = netip.ParseAddr(a.Address)
		}
	}
	ready := condition(n, corev1.NodeReady)
	switch {
	case n.Status.NodeInfo.OperatingSystem != "" && n.Status.NodeInfo.OperatingSystem != "linux":
		return nil, fmt.Sprintf("%s runs %s, not Linux", n.Name, n.Status.NodeInfo.OperatingSystem)
	case ready.Status == corev1.ConditionTrue:
		use.ready = true
	case !lacksNetwork(ready):
		return nil, fmt.Sprintf("%s is not ready: %s", n.Name, cmp.Or(ready.Message, ready.Reason, "it never was"))
	}
	return use, ""
}

// tolerates applies Kubernetes' rule.
func tolerates(o *corev1.Toleration, t *corev1.Taint) bool {
	return (o.Effect == "" || o.Effect == t.Effect) && (o.Key == "" || o.Key == t.Key) &&
		(o.Operator == corev1.TolerationOpExists || o.Value == t.Value)
}

func condition(n *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.NodeCondition{}
}

// lacksNetwork reports whether the kubelet waits only for a pod network. If it waited for
// something else, too, its messages would stand in brackets.
func lacksNetwork(ready corev1.NodeCondition) bool {
	return ready.Status == corev1.ConditionFalse && strings.HasPrefix(ready.Message, "container runtime network not ready")
}

// nodes chooses the nodes of a pair, or those that the options name.
func (cl *Cluster) nodes(ctx context.Context, tolerated []corev1.Toleration) ([]*node, error) {
	list, err := cl.allNodes(ctx, tolerated)
	if err != nil || len(cl.Options.Nodes) > 0 {
		return list, err
	}
	if cl.Options.To != "" { // both ends are chosen, unless they are on one node
		to, err := cl.podNamed(ctx, "to", cl.Options.To)
		if err != nil {
			return nil, err
		}
		if len(list) > 1 && list[1].realName == to.Spec.NodeName {
			return numberNodes(list[:2]), nil
		}
	}
	return numberNodes(pair(list)), nil
}

// usableNodes returns the nodes of the cluster on which pods can run.
func usableNodes(ctx context.Context, o Options) ([]*node, error) {
	cl, err := Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	tolerated, err := tolerations(o.Tolerations)
	if err != nil {
		return nil, err
	}
	return cl.allNodes(ctx, tolerated)
}

// NodePairs returns pairs of nodes, by the cluster's names, that together hold every node on
// which pods can run. Of an odd number the last one has the first beside it.
func NodePairs(ctx context.Context, o Options) (pairs [][]string, err error) {
	list, err := usableNodes(ctx, o)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(list); i += 2 {
		pair := []string{list[i].realName}
		if other := list[(i+1)%len(list)]; other != list[i] {
			pair = append(pair, other.realName)
		}
		pairs = append(pairs, pair)
	}
	return pairs, nil
}

// allNodes returns the nodes that the options choose, by names, by a label and by a pod,
// whose node comes first; without any, all on which pods can run.
func (cl *Cluster) allNodes(ctx context.Context, tolerated []corev1.Toleration) ([]*node, error) {
	all, err := cl.listNodes(ctx)
	if err != nil {
		return nil, err
	}
	if label := cl.Options.NodeLabel; label != "" {
		selector, err := labels.Parse(label)
		if err != nil {
			return nil, &UsageError{fmt.Sprintf("--node-label %s: want key=value: %v", label, err)}
		}
		all = slices.DeleteFunc(all, func(n corev1.Node) bool { return !selector.Matches(labels.Set(n.Labels)) })
		if len(all) == 0 {
			return nil, &arena.Unsupported{Reason: "no node has the label " + label, Remedy: "`kubectl get nodes --show-labels` lists them"}
		}
	}
	list, err := usable(all, cl.Options.Nodes, tolerated)
	if err != nil {
		return nil, err
	}
	// The last comes first: --to is the server's end.
	for _, w := range []struct{ flag, value string }{{"to", cl.Options.To}, {"pod", cl.Options.Pod}} {
		if w.value == "" {
			continue
		}
		if list, err = cl.podFirst(ctx, list, w.flag, w.value); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// podFirst puts the node of the pod that a flag names first.
func (cl *Cluster) podFirst(ctx context.Context, list []*node, flag, value string) ([]*node, error) {
	p, err := cl.podNamed(ctx, flag, value)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list, func(n *node) bool { return n.realName == p.Spec.NodeName })
	if at < 0 {
		return nil, &arena.Unsupported{
			Reason: fmt.Sprintf("pod %s is on node %q, on which no pods of this program can run", value, p.Spec.NodeName),
			Remedy: "let pods on it with --tolerations KEY=VALUE:EFFECT, or all",
		}
	}
	return numberNodes(slices.Concat(list[at:at+1], list[:at], list[at+1:])), nil
}

func (cl *Cluster) listNodes(ctx context.Context) ([]corev1.Node, error) {
	list, err := ask(ctx, cl, "list nodes", func(ctx context.Context) (*corev1.NodeList, error) {
		return cl.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
