package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cnibench/cnibench/internal/arena/kube/install/node"
	"github.com/cnibench/cnibench/internal/contender"
)

func notFound(err error) bool { return apierrors.IsNotFound(err) }

// wait waits for a step's object or annotation.
func (j *job) wait(ctx context.Context, w *contender.Wait) error {
	what := fmt.Sprintf("wait for %s %s", w.Of.Kind, w.Of.Name)
	try := func(ctx context.Context) error {
		r, err := j.resource(schema.FromAPIVersionAndKind(w.Of.APIVersion, w.Of.Kind), w.Of.Namespace)
		if err != nil {
			return err
		}
		o, err := r.Get(ctx, w.Of.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return is(o, w.For)
	}
	if w.NodeAnnotation != "" {
		what = "wait for the nodes' annotation " + w.NodeAnnotation
		try = func(ctx context.Context) error { return j.annotated(ctx, w.NodeAnnotation) }
	}
	if err := j.patiently(ctx, what, try); err != nil {
		return fmt.Errorf("%w\n%s", err, j.explain(ctx))
	}
	return nil
}

// is judges whether an object is as a step waits for it.
func is(o *unstructured.Unstructured, wanted string) error {
	switch wanted {
	case "", "exists":
		return nil
	case "rollout":
		return rolledOut(o)
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == wanted {
			if c["status"] == "True" {
				return nil
			}
			return fmt.Errorf("%s is %v: %v", wanted, c["status"], c["message"])
		}
	}
	return fmt.Errorf("it is not %s yet", wanted)
}

// rolledOut is nil when every pod that should be is ready, by the status of a
// DaemonSet or of a Deployment.
func rolledOut(o *unstructured.Unstructured) error {
	number := func(path ...string) int64 {
		n, _, _ := unstructured.NestedInt64(o.Object, path...)
		return n
	}
	if number("status", "observedGeneration") < o.GetGeneration() {
		return errors.New("its controller has not seen it yet")
	}
	wanted, updated, ready := number("spec", "replicas"), number("status", "updatedReplicas"), number("status", "readyReplicas")
	if o.GetKind() == "DaemonSet" {
		wanted, updated, ready = number("status", "desiredNumberScheduled"), number("status", "updatedNumberScheduled"), number("status", "numberReady")
	}
	if wanted == 0 || updated < wanted || ready < wanted {
		return fmt.Errorf("%d of %d pods are ready", ready, wanted)
	}
	return nil
}

func (j *job) annotated(ctx context.Context, key string) error {
	nodes, err := j.facts.list(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if n.Annotations[key] == "" {
			return fmt.Errorf("node %s has none", n.Name)
		}
	}
	return nil
}

// works waits until every node is ready and pods on all nodes reach each
// other.
func (j *job) works(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, j.o.Patience)
	defer cancel()
	err := j.patiently(ctx, "wait for the nodes", func(ctx context.Context) error {
		nodes, err := j.facts.list(ctx)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if why := notReady(&n); why != "" {
				return fmt.Errorf("node %s is not ready: %s", n.Name, why)
			}
		}
		return nil
	})
	if err == nil {
		err = j.reachAll(ctx)
	}
	if err != nil {
		return fmt.Errorf("it does not work: %w\n%s", err, j.explain(ctx))
	}
	return nil
}

// notReady is why a node is not ready; "" if it is.
func notReady(n *corev1.Node) string {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			if c.Status == corev1.ConditionTrue {
				return ""
			}
			return c.Message
		}
	}
	return "its kubelet has said nothing"
}

// reachPort is where the pods that are to be reached listen.
const reachPort = 20480

// reachAll starts a listening pod on every node and lets a pod on every node
// connect to all of them.
func (j *job) reachAll(ctx context.Context) error {
	nodes, err := j.facts.list(ctx)
	if err != nil {
		return err
	}
	var (
		mu      sync.Mutex
		wg      sync.WaitGroup
		targets []string
		on      = map[string]string{} // target to node
		failed  []error
	)
	for _, n := range nodes {
		wg.Go(func() {
			ip, pod, err := j.listener(ctx, n.Name)
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, err)
			target := net.JoinHostPort(ip, strconv.Itoa(reachPort))
			on[target] = n.Name + " (pod " + pod + ")"
			targets = append(targets, target)
		})
	}
	wg.Wait()
	defer j.dismissAll(ctx, "listen")
	if err := errors.Join(failed...); err != nil {
		return err
	}
	failed = nil
	for _, n := range nodes {
		wg.Go(func() {
			ans, err := j.ask(ctx, n.Name, "reach", node.Request{Do: node.DoReach, Targets: targets, Seconds: 60}, false)
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, err)
			if ans == nil {
				return
			}
			for _, target := range slices.Sorted(maps.Keys(ans.Unreached)) {
				failed = append(failed, fmt.Errorf("a pod on %s does not reach one on %s: %s", n.Name, on[target], ans.Unreached[target]))
			}
		})
	}
	wg.Wait()
	return errors.Join(failed...)
}

// listener starts a pod that can be reached and returns its address.
func (j *job) listener(ctx context.Context, nodeName string) (ip, pod string, err error) {
	p, err := j.podOf(nodeName, "listen", node.Request{Do: node.DoListen, Port: reachPort}, false)
	if err != nil {
		return "", "", err
	}
	err = j.patiently(ctx, "start a pod on "+nodeName, func(ctx context.Context) error {
		made, err := j.cl.Client.CoreV1().Pods(ownNamespace).Create(ctx, p, metav1.CreateOptions{})
		if err == nil {
			p = made
		}
		return err
	})
	if err != nil {
		return "", "", err
	}
	ctx, cancel := context.WithTimeout(ctx, nodePatience)
	defer cancel()
	p, err = j.await(ctx, p.Name, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning && p.Status.PodIP != "" })
	if err != nil {
		return "", "", err
	}
	return p.Status.PodIP, p.Name, nil
}

// dismissAll deletes the pods of a role and waits for their end: while the
// network is there, they can be detached from it.
func (j *job) dismissAll(ctx context.Context, role string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	for {
		pods, err := j.cl.Client.CoreV1().Pods(ownNamespace).List(ctx, metav1.ListOptions{LabelSelector: "cnibench.io/role=" + role})
		if err == nil && len(pods.Items) == 0 || ctx.Err() != nil {
			return
		}
		if err == nil {
			for _, p := range pods.Items {
				if p.DeletionTimestamp == nil {
					j.dismiss(ctx, p.Name)
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// explain lists the pods that are not ready and the last warnings, for the
// message of a failure. It asks for a moment only.
func (j *job) explain(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	var lines []string
	pods, err := j.cl.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "what is not ready can't be listed: " + err.Error()
	}
	for _, p := range pods.Items {
		if why := waiting(&p); why != "" {
			lines = append(lines, fmt.Sprintf("  pod %s/%s on %s: %s", p.Namespace, p.Name, cmp.Or(p.Spec.NodeName, "no node"), why))
		}
	}
	if len(lines) == 0 {
		lines = []string{"  every pod is ready"}
	}
	const mostPods, mostEvents = 8, 5
	lines = append(lines[:min(len(lines), mostPods)], j.warnings(ctx, metav1.NamespaceAll, "", mostEvents)...)
	return strings.Join(lines, "\n")
}

// whyNot is what holds up one pod.
func (j *job) whyNot(ctx context.Context, p *corev1.Pod) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	parts := []string{cmp.Or(waiting(p), string(p.Status.Phase))}
	for _, line := range j.warnings(ctx, p.Namespace, p.Name, 3) {
		parts = append(parts, strings.TrimSpace(line))
	}
	return strings.Join(parts, "; ")
}

// warnings are the last events of type Warning, the newest last.
func (j *job) warnings(ctx context.Context, namespace, object string, most int) []string {
	selector := "type=Warning"
	if object != "" {
		selector += ",involvedObject.name=" + object
	}
	events, err := j.cl.Client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return nil
	}
	when := func(e corev1.Event) time.Time {
		if !e.LastTimestamp.IsZero() {
			return e.LastTimestamp.Time
		}
		return e.EventTime.Time
	}
	slices.SortFunc(events.Items, func(a, b corev1.Event) int { return when(a).Compare(when(b)) })
	var lines []string
	for _, e := range events.Items[max(0, len(events.Items)-most):] {
		lines = append(lines, fmt.Sprintf("  warning of %s %s: %s: %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, strings.TrimSpace(e.Message)))
	}
	return lines
}

// waiting is why a pod is not ready; "" if it is, or has ended well.
func waiting(p *corev1.Pod) string {
	if p.Status.Phase == corev1.PodSucceeded {
		return ""
	}
	for _, s := range append(slices.Clone(p.Status.InitContainerStatuses), p.Status.ContainerStatuses...) {
		if w := s.State.Waiting; w != nil && w.Reason != "PodInitializing" {
			return strings.TrimSpace(s.Name + ": " + w.Reason + " " + w.Message)
		}
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			return fmt.Sprintf("%s: ended with %d %s", s.Name, t.ExitCode, t.Reason)
		}
	}
	for _, c := range p.Status.Conditions {
		if (c.Type == corev1.PodReady || c.Type == corev1.PodScheduled) && c.Status != corev1.ConditionTrue {
			return strings.TrimSpace(string(p.Status.Phase) + " " + c.Reason + " " + c.Message)
		}
	}
	return ""
}
