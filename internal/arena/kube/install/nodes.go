package install

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/arena/kube/install/node"
)

// nodePatience is how long a request on a node may take.
const nodePatience = 3 * time.Minute

// worker is implemented by kube.Worker.
type worker interface {
	Addr() netip.Addr
	Run(ctx context.Context, stdin io.Reader, args ...string) kube.OnMachine
	Close(ctx context.Context) error
}

func openWorker(ctx context.Context, cl *kube.Cluster, nodeName string, privileged bool) (worker, error) {
	return cl.OpenWorker(ctx, ownNamespace, nodeName, privileged)
}

// ask runs a request on a node and returns the answer. The request runs in a privileged
// pod on the node, or else in a pod in the pod network.
func (j *job) ask(ctx context.Context, nodeName string, req node.Request, privileged bool) (*node.Answer, error) {
	request, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	w, err := j.open(ctx, j.cl, nodeName, privileged)
	if err != nil {
		return nil, err
	}
	defer j.closeWorker(ctx, w)
	ctx, cancel := context.WithTimeout(ctx, nodePatience)
	defer cancel()
	var output kube.OnMachine
	_ = kube.Retry(ctx, nodePatience, func(ctx context.Context) error {
		output = w.Run(ctx, bytes.NewReader(request), "agent", "node")
		return output.Err
	}, func(err error) bool { return errors.Is(err, agent.ErrStream) }) // every request can be repeated
	var ans node.Answer
	if err := json.Unmarshal([]byte(answerLine(output.Stdout)), &ans); err != nil {
		return nil, fmt.Errorf("this program on node %s ended with %d and did not answer: %s: %w", nodeName, output.Code, tail(output.Stderr), cmp.Or(output.Err, err))
	}
	if ans.Error != "" {
		return nil, fmt.Errorf("node %s: %s", nodeName, ans.Error)
	}
	for _, sentence := range ans.Blind {
		j.o.Log("node %s: %s", nodeName, sentence)
	}
	return &ans, nil
}

// answerLine returns the line with the answer; libraries may print other lines.
func answerLine(out string) string {
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "{") {
			return line
		}
	}
	return out
}

// tail returns the end of a program's output, which usually is its error.
func tail(output string) string {
	const maximum = 300
	output = strings.TrimSpace(output)
	return output[max(0, len(output)-maximum):]
}

// closeWorker removes a pod of this program, also after ctx has ended.
func (j *job) closeWorker(ctx context.Context, w worker) {
	if err := w.Close(ctx); err != nil {
		j.o.Log("%v", err)
	}
}

// findings are the state of a cluster and its nodes.
type findings struct {
	Nodes   map[string]*node.Answer `json:"nodes"`
	Cluster []string                `json:"cluster"`
}

// survey reads the state of every node and of the cluster.
func (j *job) survey(ctx context.Context) (*findings, error) {
	answers, err := j.askAll(ctx, node.Request{Do: node.DoState, Leftovers: j.c.Kube.Leftovers}, nil)
	if err != nil {
		return nil, err
	}
	cluster, err := j.clusterState(ctx)
	if err != nil {
		return nil, err
	}
	return &findings{answers, cluster}, nil
}

// askAll sends the same request to all nodes at the same time. before, if not nil, is the
// state that a clean-up keeps; without it a clean-up leaves the CNI's folders alone.
func (j *job) askAll(ctx context.Context, req node.Request, before *findings) (map[string]*node.Answer, error) {
	if err := j.ensureNamespace(ctx); err != nil {
		return nil, err
	}
	nodes, err := j.facts.list(ctx)
	if err != nil {
		return nil, err
	}
	var (
		mu      sync.Mutex
		wg      sync.WaitGroup
		answers = map[string]*node.Answer{}
		failed  []error
	)
	for _, n := range nodes {
		wg.Go(func() {
			req := req
			req.Address = internalIP(&n)
			if before != nil && before.Nodes[n.Name] != nil {
				req.Keep = before.Nodes[n.Name].State
			}
			ans, err := j.ask(ctx, n.Name, req, true)
			mu.Lock()
			defer mu.Unlock()
			answers[n.Name] = ans
			failed = append(failed, err)
		})
	}
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	j.facts.uplinks = uplinksOf(answers)
	return answers, nil
}

func uplinksOf(answers map[string]*node.Answer) map[string]string {
	uplinks := map[string]string{}
	for name, ans := range answers {
		uplinks[name] = ans.Uplink
	}
	return uplinks
}

// changes lists what is new, what has another value, and what nodes have lost. It leaves
// out nodes that joined since before.
func (f *findings) changes(before *findings) []string {
	var changes []string
	for name, ans := range f.Nodes {
		was := before.Nodes[name]
		if was == nil {
			continue
		}
		for _, thing := range ans.State.ListAdded(was.State) {
			changes = append(changes, name+": "+thing)
		}
		for _, thing := range ans.State.ListLost(was.State) {
			changes = append(changes, name+": "+thing+" (has gone)")
		}
	}
	for _, thing := range f.Cluster {
		if !slices.Contains(before.Cluster, thing) {
			changes = append(changes, thing)
		}
	}
	slices.Sort(changes)
	return changes
}

// listUnverifiedNodes says of which nodes it is not known that they are as before: those that have gone
// since, and those that have joined.
func (f *findings) listUnverifiedNodes(before *findings) []string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(before.Nodes)) {
		if f.Nodes[name] == nil {
			texts = append(texts, "node "+name+" is not there any more: what was left on it was not removed")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Nodes)) {
		if before.Nodes[name] == nil {
			texts = append(texts, "node "+name+" has joined since the installation: only what names the product was removed from it, and nothing was proven")
		}
	}
	return texts
}

// checkNodes returns an *arena.Unsupported if the recipe can't be installed on the nodes.
func (j *job) checkNodes(before *findings) error {
	k := j.c.Kube
	for _, name := range slices.Sorted(maps.Keys(before.Nodes)) {
		ans := before.Nodes[name]
		for _, file := range ans.State["file"] {
			if path.Dir(file) == "/etc/cni/net.d" && !strings.Contains(file, "loopback") && slices.Contains([]string{".conf", ".conflist", ".json"}, path.Ext(file)) {
				return newUnsupported("measure it without --install, or remove it and that file on every node",
					"node %s has a pod network already: %s", name, file)
			}
		}
		if k.Leftovers.XFRM && ans.State.HasIPsec() {
			return newUnsupported("measure it without --install, or end what encrypts on the nodes: `ip xfrm state` and `ip xfrm policy` show it",
				"%s leaves IPsec states and policies that can't be told from others', and node %s has some already", j.c.ID, name)
		}
		if k.Leftovers.OVS && slices.Contains(ans.State["interface"], "ovs-system") {
			return newUnsupported("measure it without --install, or on nodes without Open vSwitch",
				"%s runs Open vSwitch and takes it away with all its bridges, and node %s has one of its own", j.c.ID, name)
		}
		for _, plugin := range k.CNIPlugins {
			if !slices.Contains(ans.Plugins, plugin) {
				return newUnsupported("put the standard CNI plugins into /opt/cni/bin of every node (https://github.com/containernetworking/plugins/releases)",
					"%s needs the standard CNI plugin %s, which node %s lacks", j.c.ID, plugin, name)
			}
		}
	}
	return nil
}

// cleanNodes removes on every node the leftovers that the recipe names. If the pods'
// network is unknown, it leaves the routes to pods and returns an error.
func (j *job) cleanNodes(ctx context.Context, before *findings) error {
	req := node.Request{Do: node.DoClean, Leftovers: j.c.Kube.Leftovers}
	var unknown error
	if req.Leftovers.PodRoutes {
		req.PodCIDR, unknown = j.facts.get(ctx, "pod-cidr")
		req.Leftovers.PodRoutes = unknown == nil
	}
	answers, err := j.askAll(ctx, req, before)
	if err != nil {
		return fmt.Errorf("clean the nodes: %w", errors.Join(err, unknown))
	}
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		if removed := answers[name].Removed; len(removed) > 0 {
			j.o.Log("cleaned %s: %s", name, joinList(removed))
		}
	}
	if unknown != nil {
		return fmt.Errorf("clean the nodes of routes to pods: %w", unknown)
	}
	return nil
}

// cordoned marks a node that this program made unschedulable.
const cordoned = "cnibench.io/cordoned"

// cordon makes the nodes unschedulable, or schedulable again. It leaves nodes alone that
// somebody else has made unschedulable.
func (j *job) cordon(ctx context.Context, on bool) error {
	nodes, err := j.facts.list(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		ours := n.Annotations[cordoned] != ""
		if on == n.Spec.Unschedulable || !on && !ours {
			continue
		}
		var mark any
		if on {
			mark = "true"
		}
		err := j.patchNode(ctx, n.Name, map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{cordoned: mark}},
			"spec":     map[string]any{"unschedulable": on},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// emptyNodes deletes the pods that use the pod network, while the plugin that detaches
// them still exists, and waits until they are gone. Their controllers make them again
// later; pods without a controller are only in namespaces marked as scratch
// (requireNoBarePods). DaemonSets that were there before the product are paused for that;
// the product's own would come back at once, and are removed with it.
func (j *job) emptyNodes(ctx context.Context) error {
	if err := j.pauseDaemonSets(ctx); err != nil {
		return err
	}
	return j.retry(ctx, "detach the pods", func(ctx context.Context) error {
		pods, err := j.cl.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var attached []string
		for _, p := range pods.Items {
			set := daemonSetOf(&p)
			if !usesPodNetwork(&p) || set != "" && !j.existedBefore(textOf(object("apps/v1", "DaemonSet", p.Namespace, set))) {
				continue
			}
			attached = append(attached, p.Namespace+"/"+p.Name)
			if p.DeletionTimestamp != nil {
				continue
			}
			err := j.cl.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
		if len(attached) > 0 {
			return fmt.Errorf("still attached: %s", joinList(attached))
		}
		return nil
	})
}

// usesPodNetwork reports whether a pod runs on a node and outside the host network.
func usesPodNetwork(p *corev1.Pod) bool {
	return !p.Spec.HostNetwork && p.Spec.NodeName != "" && !ended(p)
}
