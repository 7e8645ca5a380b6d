package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
)

// Probes are running pods of somebody else's DaemonSets, with this program in their image, from
// which a watch probes. It takes the rights to list nodes and the namespace's pods, to run
// commands in these, and to make events there.
type Probes struct {
	cl        *Cluster
	namespace string
	selector  string
	pods      map[string]*endpoint // by UID: a pod stays the same endpoint
	ctx       context.Context      // of every command in the pods
	end       context.CancelFunc
}

// OpenProbes connects to the cluster. The pods are those of the label selector in the first of
// Options.Within. It makes nothing. Errors: those of Connect.
func OpenProbes(ctx context.Context, o Options, selector string) (*Probes, error) {
	cl, err := Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	return cl.probes(ctx, selector), nil
}

func (cl *Cluster) probes(ctx context.Context, selector string) *Probes {
	p := &Probes{cl: cl, namespace: cl.Options.Within[0], selector: selector, pods: map[string]*endpoint{}}
	p.ctx, p.end = context.WithCancel(context.WithoutCancel(ctx))
	return p
}

// Nodes returns the nodes that are ready and not cordoned and on which a pod runs. So a node that
// is drained, restarted or removed is not among them.
func (p *Probes) Nodes(ctx context.Context) ([]PodNode, error) {
	fit, err := p.cl.fitNodes(ctx)
	if err != nil {
		return nil, err
	}
	list, err := ask(ctx, p.cl, "list pods of "+p.namespace, func(ctx context.Context) (*corev1.PodList, error) {
		return p.cl.Client.CoreV1().Pods(p.namespace).List(ctx, metav1.ListOptions{LabelSelector: p.selector})
	})
	if err != nil {
		return nil, err
	}
	now := map[string]*endpoint{}
	found := map[string]*PodNode{}
	for i := range list.Items {
		pod := &list.Items[i]
		at := fit[pod.Spec.NodeName]
		if runs, err := podRuns(pod); !runs || err != nil || at == nil {
			continue
		}
		e := p.pods[string(pod.UID)]
		if e == nil {
			e = &endpoint{cl: p.cl, namespace: pod.Namespace, pod: pod.Name, uid: string(pod.UID), name: pod.Name, node: at, addrs: podAddrs(pod), ctx: p.ctx, program: p.cl.program}
		}
		now[e.uid] = e
		n := found[at.realName]
		if n == nil {
			one := at.describe()
			n = &one
			found[at.realName] = n
		}
		if pod.Spec.HostNetwork {
			n.Host = e
		} else {
			n.Pod = e
		}
	}
	p.pods = now
	var out []PodNode
	for _, n := range found {
		out = append(out, *n)
	}
	slices.SortFunc(out, func(a, b PodNode) int { return cmp.Compare(a.RealName, b.RealName) })
	return out, nil
}

// fitNodes returns the nodes that are ready and not cordoned, by name.
func (cl *Cluster) fitNodes(ctx context.Context) (map[string]*node, error) {
	list, err := cl.listNodes(ctx)
	if err != nil {
		return nil, err
	}
	fit := map[string]*node{}
	for i := range list {
		if n, _ := workingNode(&list[i]); n != nil && n.ready && !list[i].Spec.Unschedulable {
			n.name = n.realName // a watch is of somebody's own nodes and is not published
			fit[n.realName] = n
		}
	}
	return fit, nil
}

// Fit returns those of the pods' nodes that are ready and not cordoned now.
func (p *Pods) Fit(ctx context.Context) ([]PodNode, error) {
	fit, err := p.cl.fitNodes(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(p.Nodes), func(n PodNode) bool { return fit[n.RealName] == nil }), nil
}

// Agent starts an agent at one of the pods.
func (p *Probes) Agent(ctx context.Context, at arena.Endpoint) (*agent.Client, error) {
	e, ok := at.(*endpoint)
	if !ok {
		return nil, fmt.Errorf("%s is no pod", at.Name())
	}
	return startAgent(ctx, e)
}

// Close ends every command in the pods, which stay.
func (p *Probes) Close(context.Context) error {
	p.end()
	return nil
}

// Announce makes an event of the probe pod on the named node, or of any probe pod.
func (p *Probes) Announce(ctx context.Context, nodeName string, warning bool, reason, text string) error {
	var at *endpoint
	for _, e := range p.pods {
		if at == nil || e.node.realName == nodeName {
			at = e
		}
	}
	if at == nil {
		return fmt.Errorf("namespace %s has no probe pod that the event could be of", p.namespace)
	}
	return p.cl.announce(ctx, at, warning, reason, text)
}

// Announce makes an event of the pod on the named node, or of any.
func (p *Pods) Announce(ctx context.Context, nodeName string, warning bool, reason, text string) error {
	var at *endpoint
	for _, n := range p.Nodes {
		for _, e := range []arena.Endpoint{n.Host, n.Pod} {
			if e, ok := e.(*endpoint); ok && e != nil && (at == nil || n.RealName == nodeName) {
				at = e
			}
		}
	}
	if at == nil {
		return fmt.Errorf("no pod that the event could be of")
	}
	return p.cl.announce(ctx, at, warning, reason, text)
}

func (cl *Cluster) announce(ctx context.Context, at *endpoint, warning bool, reason, text string) error {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	now := metav1.NewTime(time.Now())
	return cl.do(ctx, "make an event", func(ctx context.Context) error {
		_, err := cl.Client.CoreV1().Events(at.namespace).Create(ctx, &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{GenerateName: "cnibench-mesh-", Namespace: at.namespace},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: at.namespace, Name: at.pod, UID: types.UID(at.uid)},
			Reason:         reason, Message: text, Type: kind, Count: 1, FirstTimestamp: now, LastTimestamp: now,
			Source: corev1.EventSource{Component: "cnibench-mesh", Host: at.node.realName},
		}, metav1.CreateOptions{})
		return err
	})
}
