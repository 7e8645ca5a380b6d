package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cnibench/cnibench/internal/arena"
)

// This file is about namespaces that an administrator made (Options.Within). The only
// request there for the whole cluster is that for the list of nodes.

// labelSandbox is the label of the pods and policies of one policy check.
const labelSandbox = "cnibench.io/sandbox"

// withinLabels are the labels that the namespaces of Options.Within must have, in order,
// for check policy.
var withinLabels = []map[string]string{{"team": "near"}, {"team": "far", "trusted": "yes"}}

// checkUnusedWithin is checkUnused for the namespaces of Options.Within.
func (cl leftovers) checkUnusedWithin(ctx context.Context) error {
	runs, err := cl.runsWithin(ctx)
	if err != nil {
		return err
	}
	alive, err := cl.alive(ctx, cl.leasesWithin(runs))
	if err != nil {
		return err
	}
	for _, run := range runs {
		if alive[run] {
			continue
		}
		cl.Options.log("removing what a run had left that was killed: %s", run)
		if err := cl.clearRun(ctx, run); err != nil {
			return err
		}
	}
	runs = slices.DeleteFunc(runs, func(run string) bool { return !alive[run] })
	if len(runs) == 0 {
		return nil
	}
	within := strings.Join(cl.Options.Within, ",")
	return &arena.Unsupported{
		Reason: fmt.Sprintf("namespace %s has pods of a run that is under way: %s", within, strings.Join(runs, ", ")),
		Remedy: "wait for its end, or end it with: cnibench clean --arena kube --all-runs --namespace " + within,
	}
}

// leasesWithin returns the namespace of each run's Lease.
func (cl leftovers) leasesWithin(runs []string) map[string]string {
	leases := map[string]string{}
	for _, run := range runs {
		leases[run] = cl.Options.Within[0]
	}
	return leases
}

// runsWithin returns the runs that have pods in the namespaces of Options.Within, sorted.
func (cl leftovers) runsWithin(ctx context.Context) ([]string, error) {
	runs := map[string]bool{}
	for _, ns := range cl.Options.Within {
		pods, err := cl.pods(ctx, ns)
		if err != nil {
			return nil, err
		}
		for _, p := range pods {
			if run := p.Labels[labelRun]; run != "" && p.Labels[labelManaged] == managedBy && p.DeletionTimestamp == nil {
				runs[run] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(runs)), nil
}

// cleanWithin is clean for the namespaces of Options.Within.
func (cl leftovers) cleanWithin(ctx context.Context, all bool) (*Cleaned, error) {
	runs, err := cl.runsWithin(ctx)
	if err != nil {
		return nil, err
	}
	spared, err := cl.listSpared(ctx, cl.leasesWithin(runs), all)
	if err != nil {
		return nil, err
	}
	cleaned := &Cleaned{}
	var errs []error
	for _, run := range runs {
		if spared[run] {
			cleaned.Spared = append(cleaned.Spared, run)
			continue
		}
		cleaned.Removed = append(cleaned.Removed, "what the run "+run+" had left in "+strings.Join(cl.Options.Within, ", "))
		errs = append(errs, cl.clearRun(ctx, run))
	}
	return cleaned, errors.Join(errs...)
}

// clearRun removes the run's objects from the namespaces of Options.Within, its Lease last.
func (cl *Cluster) clearRun(ctx context.Context, run string) error {
	if err := cl.clear(ctx, labelRun+"="+run); err != nil {
		return err
	}
	err := cl.dropLease(ctx, cl.Options.Within[0], leaseName, run)
	if err == nil {
		cl.guard.end(run)
	}
	return err
}

// clear removes the objects that the selector selects from the namespaces of
// Options.Within, and waits until the pods are gone.
func (cl *Cluster) clear(ctx context.Context, selector string) error {
	var errs []error
	for _, ns := range cl.Options.Within {
		errs = append(errs, cl.clearOne(ctx, ns, metav1.ListOptions{LabelSelector: selector}))
	}
	return errors.Join(errs...)
}

// clearOne does the same in one namespace.
func (cl *Cluster) clearOne(ctx context.Context, namespace string, selected metav1.ListOptions) error {
	err := cl.do(ctx, "remove what is in namespace "+namespace, func(ctx context.Context) error {
		policies, err := cl.Client.NetworkingV1().NetworkPolicies(namespace).List(ctx, selected)
		if apierrors.IsForbidden(err) { // then the run could make none
			policies, err = nil, nil
		}
		if err != nil {
			return err
		}
		if policies != nil {
			for _, p := range policies.Items {
				if err := ignoreNotFound(cl.Client.NetworkingV1().NetworkPolicies(namespace).Delete(ctx, p.Name, metav1.DeleteOptions{})); err != nil {
					return err
				}
			}
		}
		services, err := cl.Client.CoreV1().Services(namespace).List(ctx, selected)
		if apierrors.IsForbidden(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, s := range services.Items {
			if err := ignoreNotFound(cl.Client.CoreV1().Services(namespace).Delete(ctx, s.Name, metav1.DeleteOptions{})); err != nil {
				return err
			}
		}
		return cl.Client.DiscoveryV1().EndpointSlices(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, selected)
	})
	if err != nil {
		return err
	}
	var names []string
	looked := time.Now()
	err = wait.PollUntilContextTimeout(ctx, gonePoll, gonePatience, true, func(context.Context) (bool, error) {
		err := cl.do(ctx, "remove pods of "+namespace, func(ctx context.Context) error {
			pods, err := cl.Client.CoreV1().Pods(namespace).List(ctx, selected)
			if err != nil {
				return err
			}
			names = nil
			for _, p := range pods.Items {
				names = append(names, p.Name)
				if p.DeletionTimestamp != nil {
					continue
				}
				if err := ignoreNotFound(cl.Client.CoreV1().Pods(namespace).Delete(ctx, p.Name, metav1.DeleteOptions{})); err != nil {
					return err
				}
			}
			if time.Since(looked) > lostPoll {
				looked = time.Now()
				cl.giveUpLost(ctx, namespace)
			}
			return nil
		})
		return len(names) == 0, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("pods of namespace %s are not gone after %v: %s", namespace, gonePatience, strings.Join(names, ", "))
	}
	return err
}

// policyNamespaces returns, by the check's names, the names of the namespaces of
// Options.Within in which a policy check runs. The error is an *arena.Unsupported if there
// are too few, or if the administrator did not set their labels.
func (cl *Cluster) policyNamespaces(ctx context.Context, list []arena.SandboxNamespace) (map[string]string, error) {
	within := cl.Options.Within
	hint := "`cnibench rbac --namespace " + strings.Join(within, ",") + "` prints them"
	if len(list) > len(within) {
		return nil, &arena.Unsupported{
			Reason: fmt.Sprintf("policies are tried between %d namespaces, and --namespace names %d", len(list), len(within)),
			Remedy: "name as many namespaces with --namespace A,B; " + strings.Replace(hint, within[0], "A,B", 1),
		}
	}
	names := map[string]string{}
	for i, ns := range list {
		found, err := ask(ctx, cl, "read namespace "+within[i], func(ctx context.Context) (*corev1.Namespace, error) {
			return cl.Client.CoreV1().Namespaces().Get(ctx, within[i], metav1.GetOptions{})
		})
		if err != nil {
			return nil, err
		}
		for key, value := range ns.Labels {
			if found.Labels[key] != value {
				return nil, &arena.Unsupported{
					Reason: fmt.Sprintf("namespace %s lacks the label %s=%s, by which the policies of the check know it", within[i], key, value),
					Remedy: "have an administrator set the labels; " + hint,
				}
			}
		}
		names[ns.Name] = within[i]
	}
	return names, nil
}
