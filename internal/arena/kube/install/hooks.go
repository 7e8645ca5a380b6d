package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hooks runs the hooks of a chart that is installed or removed.
type hooks struct {
	*job
	namespace string
}

// run runs a chart's hooks for an event as Helm does: one after the other
// in the order of their weights, and each to its end.
func (j hooks) run(ctx context.Context, all []*release.Hook, event release.HookEvent) error {
	list := slices.DeleteFunc(slices.Clone(all), func(h *release.Hook) bool { return !slices.Contains(h.Events, event) })
	slices.SortStableFunc(list, func(a, b *release.Hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Name, b.Name))
	})
	for n, h := range list {
		err := j.runOne(ctx, h)
		if err == nil {
			continue
		}
		err = fmt.Errorf("hook %s %s: %w", event, h.Path, err)
		if deleteErr := j.delete(ctx, list[n:n+1], release.HookFailed); deleteErr != nil {
			j.o.Log("%v", deleteErr)
		}
		if deleteErr := j.delete(ctx, list[:n], release.HookSucceeded); deleteErr != nil {
			j.o.Log("%v", deleteErr)
		}
		return err
	}
	slices.Reverse(list)
	return j.delete(ctx, list, release.HookSucceeded)
}

// runOne creates the hook's objects and waits until its Jobs and Pods have ended. Before
// that it deletes objects of an earlier hook of that name, unless the chart's policies
// say otherwise.
func (j hooks) runOne(ctx context.Context, h *release.Hook) error {
	if len(h.DeletePolicies) == 0 {
		h.DeletePolicies = []release.HookDeletePolicy{release.HookBeforeHookCreation}
	}
	if err := j.delete(ctx, []*release.Hook{h}, release.HookBeforeHookCreation); err != nil {
		return err
	}
	objects, err := j.objectsOf(ctx, h)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := j.create(ctx, o); err != nil {
			return err
		}
	}
	for _, o := range objects {
		if err := j.waitForEnd(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// waitForEnd waits until a Job or Pod has ended, and returns an error if it
// failed. Objects of other kinds do not end.
func (j hooks) waitForEnd(ctx context.Context, o *unstructured.Unstructured) error {
	if o.GetKind() != "Job" && o.GetKind() != "Pod" {
		return nil
	}
	var failed error
	err := j.retry(ctx, "wait for the end of "+textOf(o), func(ctx context.Context) error {
		r, err := j.resource(o.GroupVersionKind(), o.GetNamespace())
		if err != nil {
			return err
		}
		current, err := r.Get(ctx, o.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil // the object has ended and deleted itself
		}
		if err != nil {
			return err
		}
		phase, _, _ := unstructured.NestedString(current.Object, "status", "phase")
		switch {
		case phase == "Succeeded" || conditionMet(current, "Complete") == nil:
			return nil
		case phase == "Failed" || conditionMet(current, "Failed") == nil:
			failed = fmt.Errorf("%s failed\n%s", textOf(o), j.explain(ctx))
			return nil
		}
		return errors.New("it still runs")
	})
	return cmp.Or(err, failed)
}

// delete deletes the objects of the hooks that have the policy. Like Helm, it deletes no
// definitions.
func (j hooks) delete(ctx context.Context, hooks []*release.Hook, policy release.HookDeletePolicy) error {
	for _, h := range hooks {
		if !slices.Contains(h.DeletePolicies, policy) || h.Kind == "CustomResourceDefinition" {
			continue
		}
		objects, err := j.objectsOf(ctx, h)
		if err != nil {
			return err
		}
		if err := j.deleteTogether(ctx, referencesTo(objects)); err != nil {
			return err
		}
	}
	return nil
}

// objectsOf returns the objects of a hook, with their namespaces.
func (j hooks) objectsOf(ctx context.Context, h *release.Hook) ([]*unstructured.Unstructured, error) {
	objects, err := parseObjects([]byte(h.Manifest))
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if err := j.setNamespace(ctx, o, j.namespace); err != nil {
			return nil, err
		}
	}
	return objects, nil
}
