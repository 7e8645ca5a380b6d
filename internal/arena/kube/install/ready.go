package install

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/arena/kube/install/node"
)

// awaitWorking waits until every node is ready and pods on all nodes reach each other.
func (j *job) awaitWorking(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, j.o.Patience)
	defer cancel()
	err := j.retry(ctx, "wait for the nodes", func(ctx context.Context) error {
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

// notReady returns why a node is not ready; "" if it is ready.
func notReady(n *corev1.Node) string {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			if c.Status == corev1.ConditionTrue {
				return ""
			}
			return c.Message
		}
	}
	return "its kubelet has not reported yet"
}

// reachPort is the port on which the pods of reachAll listen.
const reachPort = 20480

// reachAll starts a listening pod on every node and lets another pod on every
// node connect to all of them.
func (j *job) reachAll(ctx context.Context) error {
	nodes, err := j.facts.list(ctx)
	if err != nil {
		return err
	}
	listen, err := json.Marshal(node.Request{Do: node.DoListen, Port: reachPort})
	if err != nil {
		return err
	}
	listening, end := context.WithCancel(ctx)
	var listeners, clients sync.WaitGroup
	var (
		mu      sync.Mutex
		targets []string
		nodeOf  = map[string]string{} // by target
		failed  []error
	)
	defer listeners.Wait()
	defer end()
	for _, n := range nodes {
		clients.Go(func() {
			w, err := j.open(ctx, j.cl, n.Name, false)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, err)
				return
			}
			target := netip.AddrPortFrom(w.Addr(), reachPort).String()
			nodeOf[target] = n.Name
			targets = append(targets, target)
			listeners.Go(func() {
				// Close now: the pod can be detached only while the network exists.
				defer j.closeWorker(ctx, w)
				w.Run(listening, bytes.NewReader(listen), "agent", "node")
			})
		})
	}
	clients.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	for _, n := range nodes {
		clients.Go(func() {
			ans, err := j.ask(ctx, n.Name, node.Request{Do: node.DoReach, Targets: targets, Seconds: 60}, false)
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, err)
			if ans == nil {
				return
			}
			for _, target := range slices.Sorted(maps.Keys(ans.Unreached)) {
				failed = append(failed, fmt.Errorf("a pod on %s does not reach one on %s: %s", n.Name, nodeOf[target], ans.Unreached[target]))
			}
		})
	}
	clients.Wait()
	return errors.Join(failed...)
}

// explain lists the pods that are not ready and the last warnings, for an error. It
// returns within seconds.
func (j *job) explain(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	var lines []string
	pods, err := j.cl.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "what is not ready can't be listed: " + err.Error()
	}
	for _, p := range pods.Items {
		if why := explainWait(&p); why != "" {
			lines = append(lines, fmt.Sprintf("  pod %s/%s on %s: %s", p.Namespace, p.Name, cmp.Or(p.Spec.NodeName, "no node"), why))
		}
	}
	if len(lines) == 0 {
		lines = []string{"  every pod is ready"}
	}
	const maxPods, maxEvents = 8, 5
	lines = append(lines[:min(len(lines), maxPods)], j.warnings(ctx, maxEvents)...)
	return strings.Join(lines, "\n")
}

// warnings returns the last events of type Warning, the newest last.
func (j *job) warnings(ctx context.Context, maximum int) []string {
	events, err := j.cl.Client.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "type=Warning"})
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
	for _, e := range events.Items[max(0, len(events.Items)-maximum):] {
		lines = append(lines, fmt.Sprintf("  warning of %s %s: %s: %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, strings.TrimSpace(e.Message)))
	}
	return lines
}

// explainWait returns why a pod is not ready; "" if it is ready or has succeeded.
func explainWait(p *corev1.Pod) string {
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
