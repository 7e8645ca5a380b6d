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

const (
	gonePatience = 3 * time.Minute        // for a namespace to be removed
	gonePoll     = 300 * time.Millisecond // between two looks whether it is
	lostPoll     = 15 * time.Second       // between two searches for pods on lost nodes
)

// runName returns a new name for a run, its first namespace and its label.
func (cl *Cluster) runName() string { return cl.Options.prefix() + "-" + rand.String(6) }

// makeNamespace makes the namespace; no error if it exists. The error is an
// *arena.Unsupported if the user may not.
func (cl *Cluster) makeNamespace(ctx context.Context, n *corev1.Namespace) error {
	cl.guard.begin(n.Labels[labelRun], &cl.Options)
	err := cl.do(ctx, "make the namespace "+n.Name, func(ctx context.Context) error {
		_, err := cl.Client.CoreV1().Namespaces().Create(ctx, n, metav1.CreateOptions{})
		return ignoreExists(err)
	})
	if apierrors.IsForbidden(err) {
		return &arena.Unsupported{Reason: err.Error(), Remedy: "have the cluster's administrator let this user make namespaces with those labels"}
	}
	return err
}

// ensureNamespace returns the namespace in which the run makes its objects: the first of
// Options.Within, or a new one.
func (cl *Cluster) ensureNamespace(ctx context.Context, run string) (string, error) {
	if within := cl.Options.Within; len(within) > 0 {
		cl.guard.begin(run, &cl.Options)
		return within[0], nil
	}
	return run, cl.makeNamespace(ctx, namespaceFor(run, run, "privileged", nil))
}

// removeNamespaces removes the namespaces with their contents, all at the same time, and
// waits until they are gone. It deletes pods on lost nodes without the kubelet's
// confirmation, which would never come.
func (cl *Cluster) removeNamespaces(ctx context.Context, names ...string) error {
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			if errs[i] = cl.removeNamespace(ctx, name); errs[i] == nil {
				cl.guard.end(name)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (cl *Cluster) removeNamespace(ctx context.Context, name string) error {
	background := metav1.DeletePropagationBackground
	err := cl.do(ctx, "remove the namespace "+name, func(ctx context.Context) error {
		err := cl.Client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // removed or being removed
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
			name, patience, explainLingering(left), name)
	}
	return err
}

// explainLingering returns the namespace's conditions, which say why it still exists.
func explainLingering(n *corev1.Namespace) string {
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

// giveUpLost deletes the pods of nodes that do not answer from the API server. It ignores
// errors: the caller sees whether the namespace is removed.
func (cl *Cluster) giveUpLost(ctx context.Context, namespace string) {
	nodes, err := cl.listNodes(ctx)
	if err != nil {
		return
	}
	answers := map[string]bool{} // false for a node that is no longer in the cluster
	for i := range nodes {
		answers[nodes[i].Name] = condition(&nodes[i], corev1.NodeReady).Status != corev1.ConditionUnknown
	}
	pods, err := cl.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	noGrace := int64(0)
	for _, p := range pods.Items {
		if !answers[p.Spec.NodeName] && p.Labels[labelManaged] == managedBy {
			_ = cl.Client.CoreV1().Pods(namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &noGrace})
		}
	}
}

// leftovers finds and removes objects that earlier runs left in the cluster.
type leftovers struct{ *Cluster }

// checkUnused returns an *arena.Unsupported if an earlier run has left something in the
// cluster or another run is under way: both would disturb a measurement.
func (cl leftovers) checkUnused(ctx context.Context) error {
	if len(cl.Options.Within) > 0 {
		return cl.checkUnusedWithin(ctx)
	}
	list, err := cl.namespaces(ctx)
	if err != nil {
		return err
	}
	ended, err := cl.listEnded(ctx, list)
	if err != nil {
		return err
	}
	if len(ended) > 0 {
		cl.Options.log("removing what a run had left that was killed: %s", strings.Join(ended, ", "))
		if err := cl.removeNamespaces(ctx, ended...); err != nil {
			return err
		}
	}
	var names []string
	for _, n := range list {
		if n.DeletionTimestamp == nil && !slices.Contains(ended, n.Name) {
			names = append(names, fmt.Sprintf("%s (made at %s by the cluster's clock)", n.Name, n.CreationTimestamp.UTC().Format(time.RFC3339)))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &arena.Unsupported{
		Reason: "another run is under way, or an installation was left: " + strings.Join(names, ", "),
		Remedy: "wait for its end, or remove it with: cnibench clean --arena kube",
	}
}

// listEnded returns the namespaces of runs that were killed: whose pods have all ended by
// themselves, or which renew no Lease. What an installer has left stays.
func (cl leftovers) listEnded(ctx context.Context, list []corev1.Namespace) ([]string, error) {
	if cl.Options.Install != nil {
		return nil, nil
	}
	pods := map[string][]corev1.Pod{}
	for _, n := range list {
		if n.DeletionTimestamp != nil {
			continue
		}
		some, err := cl.pods(ctx, n.Name)
		if err != nil {
			return nil, err
		}
		run := n.Labels[labelRun]
		pods[run] = append(pods[run], some...)
	}
	leases := map[string]string{}
	for run := range pods {
		if !allEnded(pods[run]) {
			leases[run] = run
		}
	}
	alive, err := cl.alive(ctx, leases)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, n := range list {
		if n.DeletionTimestamp == nil && !alive[n.Labels[labelRun]] {
			names = append(names, n.Name)
		}
	}
	return names, nil
}

// allEnded reports whether there are pods and none runs or will run.
func allEnded(pods []corev1.Pod) bool {
	return len(pods) > 0 && !slices.ContainsFunc(pods, func(p corev1.Pod) bool {
		return p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodSucceeded
	})
}

// namespaces returns the namespaces of all runs.
func (cl leftovers) namespaces(ctx context.Context) ([]corev1.Namespace, error) {
	list, err := ask(ctx, cl.Cluster, "list namespaces", func(ctx context.Context) (*corev1.NamespaceList, error) {
		return cl.Client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: runSelector})
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Cleaned is the result of Clean.
type Cleaned struct {
	Removed []string // namespaces, or descriptions
	Spared  []string // the runs that are under way
}

// Clean removes objects that runs have left in the cluster, by their labels. It leaves
// runs that are under way alone, unless all is true.
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
	list, err := cl.namespaces(ctx)
	if err != nil {
		return nil, err
	}
	leases := map[string]string{}
	for _, n := range list {
		leases[n.Labels[labelRun]] = n.Labels[labelRun]
	}
	spared, err := cl.listSpared(ctx, leases, all)
	if err != nil {
		return nil, err
	}
	cleaned := &Cleaned{}
	for _, n := range list {
		switch run := n.Labels[labelRun]; {
		case !spared[run]:
			cleaned.Removed = append(cleaned.Removed, n.Name)
		case !slices.Contains(cleaned.Spared, run):
			cleaned.Spared = append(cleaned.Spared, run)
		}
	}
	return cleaned, cl.removeNamespaces(ctx, cleaned.Removed...)
}

// listSpared returns the runs that clean leaves alone.
func (cl leftovers) listSpared(ctx context.Context, leases map[string]string, all bool) (map[string]bool, error) {
	if all {
		return nil, nil
	}
	return cl.alive(ctx, leases)
}
