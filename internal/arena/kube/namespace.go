package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cnibench/cnibench/internal/arena"
)

// How long a namespace may take to go, how often it is looked for, and how
// often for pods whose node does not answer any more.
const (
	gonePatience = 3 * time.Minute
	gonePoll     = 300 * time.Millisecond
	lostPoll     = 15 * time.Second
)

// runName is a name that nobody has: that of a run's first namespace, and its label.
func (cl *Cluster) runName() string { return cl.Options.prefix() + "-" + rand.String(6) }

// makeNamespace makes it.
func (cl *Cluster) makeNamespace(ctx context.Context, n *corev1.Namespace) error {
	err := cl.do(ctx, "make the namespace "+n.Name, func(ctx context.Context) error {
		_, err := cl.Client.CoreV1().Namespaces().Create(ctx, n, metav1.CreateOptions{})
		return made(err)
	})
	if apierrors.IsForbidden(err) {
		return &arena.Unsupported{Reason: err.Error(), Remedy: "have the cluster's administrator let this user make namespaces with those labels"}
	}
	return err
}

// place returns the namespace in which the run makes its objects: the one that
// an administrator made, or its own, which is made.
func (cl *Cluster) place(ctx context.Context, run string) (string, error) {
	if within := cl.Options.Within; len(within) > 0 {
		return within[0], nil
	}
	return run, cl.makeNamespace(ctx, namespaceFor(run, run, "privileged", nil))
}

// removeNamespaces removes them with all that is in them, all at once, and
// waits until they are gone. One that does not go keeps no other. Pods on nodes
// that are lost are given up, for their kubelet never says that they have ended.
func (cl *Cluster) removeNamespaces(ctx context.Context, names ...string) error {
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { errs[i] = cl.removeNamespace(ctx, name) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (cl *Cluster) removeNamespace(ctx context.Context, name string) error {
	background := metav1.DeletePropagationBackground
	err := cl.do(ctx, "remove the namespace "+name, func(ctx context.Context) error {
		err := cl.Client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // it is on its way
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return cl.awaitGone(ctx, name, gonePatience)
}

// awaitGone waits until the namespace is gone.
func (cl *Cluster) awaitGone(ctx context.Context, name string, patience time.Duration) error {
	looked := time.Now()
	var left *corev1.Namespace
	err := wait.PollUntilContextTimeout(ctx, gonePoll, patience, true, func(context.Context) (bool, error) {
		err := cl.do(ctx, "look for the namespace "+name, func(ctx context.Context) (err error) {
			left, err = cl.Client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			return err
		})
		if err == nil && time.Since(looked) > lostPoll {
			looked = time.Now()
			cl.giveUpLost(ctx, name)
		}
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("the namespace %s is not gone after %v%s; see `kubectl describe namespace %s`, and `cnibench clean --arena kube` later",
			name, patience, lingering(left), name)
	}
	return err
}

// lingering is what the namespace says of why it is still there.
func lingering(n *corev1.Namespace) string {
	var why []string
	for _, c := range n.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			why = append(why, c.Message)
		}
	}
	if len(why) == 0 {
		return ""
	}
	return ": " + strings.Join(why, "; ")
}

// giveUpLost removes pods of nodes that are not ready from the API server. It
// is a try: what comes of it shows in whether the namespace goes.
func (cl *Cluster) giveUpLost(ctx context.Context, namespace string) {
	nodes, err := cl.listNodes(ctx)
	if err != nil {
		return
	}
	answers := map[string]bool{} // a node that was taken from the cluster does not
	for i := range nodes {
		answers[nodes[i].Name] = condition(&nodes[i], corev1.NodeReady).Status != corev1.ConditionUnknown
	}
	pods, err := cl.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	now := int64(0)
	for _, p := range pods.Items {
		if !answers[p.Spec.NodeName] && p.Labels[labelManaged] == managedBy {
			_ = cl.Client.CoreV1().Pods(namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		}
	}
}

// leftovers are what earlier runs left in the cluster, and what becomes of it.
type leftovers struct{ *Cluster }

// untouched refuses a cluster in which an earlier run has left something, or
// another one runs: both disturb a measurement.
func (cl leftovers) untouched(ctx context.Context) error {
	if len(cl.Options.Within) > 0 {
		return cl.untouchedWithin(ctx)
	}
	list, err := cl.ours(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, n := range list {
		if n.DeletionTimestamp == nil {
			names = append(names, fmt.Sprintf("%s (made at %s by the cluster's clock)", n.Name, n.CreationTimestamp.UTC().Format(time.RFC3339)))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &arena.Unsupported{
		Reason: "an earlier run has left, or another one has just made: " + strings.Join(names, ", "),
		Remedy: "wait for the run that is under way, or remove what was left with: cnibench clean --arena kube",
	}
}

// ours are the namespaces of runs.
func (cl leftovers) ours(ctx context.Context) ([]corev1.Namespace, error) {
	list, err := ask(ctx, cl.Cluster, "list namespaces", func(ctx context.Context) (*corev1.NamespaceList, error) {
		return cl.Client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: ours})
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Cleaned is what Clean did.
type Cleaned struct {
	Removed []string // in words
	Spared  []string // the runs that are under way
}

// Clean removes what runs have left in the cluster, by its labels. Runs that are under
// way are left alone, unless all is true.
func Clean(ctx context.Context, o Options, all bool) (*Cleaned, error) {
	cl, err := Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	return leftovers{cl}.clean(ctx, all)
}

func (cl leftovers) clean(ctx context.Context, all bool) (*Cleaned, error) {
	if len(cl.Options.Within) > 0 {
		return cl.cleanWithin(ctx, all)
	}
	list, err := cl.ours(ctx)
	if err != nil {
		return nil, err
	}
	leases := map[string]string{}
	for _, n := range list {
		leases[n.Labels[labelRun]] = n.Labels[labelRun]
	}
	alive, err := cl.spare(ctx, leases, all)
	if err != nil {
		return nil, err
	}
	did := &Cleaned{}
	for _, n := range list {
		switch run := n.Labels[labelRun]; {
		case !alive[run]:
			did.Removed = append(did.Removed, n.Name)
		case !slices.Contains(did.Spared, run):
			did.Spared = append(did.Spared, run)
		}
	}
	return did, cl.removeNamespaces(ctx, did.Removed...)
}

// spare returns those of the runs that clean leaves alone.
func (cl leftovers) spare(ctx context.Context, leases map[string]string, all bool) (map[string]bool, error) {
	if all {
		return nil, nil
	}
	return cl.alive(ctx, leases)
}
