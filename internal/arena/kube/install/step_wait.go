package install

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cnibench/cnibench/internal/contender"
)

// waitStep waits for an object or for an annotation on all nodes.
type waitStep struct {
	makesNothing
	*contender.Wait
}

func (w waitStep) do(ctx context.Context, j *job) error {
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
		return conditionMet(o, w.For)
	}
	if w.NodeAnnotation != "" {
		what = "wait for the nodes' annotation " + w.NodeAnnotation
		try = func(ctx context.Context) error { return j.checkAnnotation(ctx, w.NodeAnnotation) }
	}
	if err := j.retry(ctx, what, try); err != nil {
		return fmt.Errorf("%w\n%s", err, j.explain(ctx))
	}
	return nil
}

// conditionMet returns nil if an object meets the condition for which a step waits.
func conditionMet(o *unstructured.Unstructured, wanted string) error {
	switch wanted {
	case "", "exists":
		return nil
	case "rollout":
		return checkRollout(o)
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
	return fmt.Errorf("%s %s has no condition %s yet", o.GetKind(), o.GetName(), wanted)
}

// checkRollout returns nil if all pods of a DaemonSet or a Deployment are up to date and ready.
func checkRollout(o *unstructured.Unstructured) error {
	number := func(path ...string) int64 {
		n, _, _ := unstructured.NestedInt64(o.Object, path...)
		return n
	}
	if number("status", "observedGeneration") < o.GetGeneration() {
		return fmt.Errorf("the controller of %s %s has not seen its newest version yet", o.GetKind(), o.GetName())
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

func (j *job) checkAnnotation(ctx context.Context, key string) error {
	nodes, err := j.facts.list(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if n.Annotations[key] == "" {
			return fmt.Errorf("node %s has no annotation %s; see why in the log of the product's pod on that node: kubectl logs", n.Name, key)
		}
	}
	return nil
}
