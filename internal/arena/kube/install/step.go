package install

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cnibench/cnibench/internal/contender"
)

// step is one step of a recipe. There is a file for each kind.
type step interface {
	// gather reads the files that the step needs, and names what the step will make, so
	// that undoing the step needs neither the recipe nor its files. It returns nil for a
	// step that makes nothing.
	gather(ctx context.Context, j *job) (*stepRecord, error)
	// do changes the cluster.
	do(ctx context.Context, j *job) error
}

// stepOf returns the step of a recipe's action.
func stepOf(s contender.Step) step {
	switch a := s.Action().(type) {
	case *contender.KubeNamespace:
		return createStep{namespaceStep{a}}
	case *contender.Manifest:
		return createStep{manifestStep{a}}
	case contender.RawObject:
		return createStep{objectStep{a}}
	case *contender.Secret:
		return createStep{secretStep{a}}
	case *contender.NodeLabels:
		return labelsStep{a}
	case *contender.Chart:
		return chartStep{a}
	case *contender.Patch:
		return patchStep{Patch: a}
	case *contender.Wait:
		return waitStep{Wait: a}
	case *contender.Farewell:
		return farewellStep{Farewell: a}
	}
	panic(fmt.Sprintf("a recipe's step does %T", s.Action()))
}

// stepsOf returns the steps of the job's recipe, in order.
func (j *job) stepsOf() []step {
	var list []step
	for _, s := range j.c.Kube.StepsOf(j.o.Versions) {
		list = append(list, stepOf(s))
	}
	return list
}

// gather reads the charts and manifests of all steps, and sets j.steps.
func (j *job) gather(ctx context.Context) error {
	j.steps = nil
	for _, s := range j.stepsOf() {
		record, err := s.gather(ctx, j)
		if err != nil {
			return err
		}
		if record != nil {
			j.steps = append(j.steps, record)
		}
	}
	return nil
}

// undo removes what a step made.
func (s *stepRecord) undo(ctx context.Context, j *job) error {
	switch {
	case s.Chart != nil:
		return s.Chart.undo(ctx, j)
	case s.Labels != nil:
		return s.Labels.undo(ctx, j)
	}
	for _, ref := range slices.Backward(s.Objects) {
		if err := j.deleteMade(ctx, object(ref.APIVersion, ref.Kind, ref.Namespace, ref.Name)); err != nil {
			return err
		}
	}
	return nil
}

// creator lists the objects that a step makes, before the step makes them.
type creator interface {
	objects(ctx context.Context, j *job) ([]*unstructured.Unstructured, error)
}

// createStep is the step that makes the objects of a creator.
type createStep struct{ creator }

func (m createStep) gather(ctx context.Context, j *job) (*stepRecord, error) {
	objects, err := m.objects(ctx, j)
	return &stepRecord{Objects: referencesTo(inOrder(objects))}, err
}

func (m createStep) do(ctx context.Context, j *job) error {
	objects, err := m.objects(ctx, j)
	if err != nil {
		return err
	}
	for _, o := range inOrder(objects) {
		if err := j.apply(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// makesNothing is embedded in steps that make nothing to undo.
type makesNothing struct{}

func (makesNothing) gather(context.Context, *job) (*stepRecord, error) { return nil, nil }

// fill replaces the placeholders, and converts numbers to the types that
// Kubernetes' libraries expect.
func (j *job) fill(ctx context.Context, tree map[string]any) (map[string]any, error) {
	filled, err := contender.ExpandAll(tree, func(name string) (string, error) { return j.facts.get(ctx, name) })
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(filled)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, json.Unmarshal(data, &out)
}

// referencesTo returns references to the objects, for the journal.
func referencesTo(objects []*unstructured.Unstructured) []corev1.ObjectReference {
	var list []corev1.ObjectReference
	for _, o := range objects {
		list = append(list, corev1.ObjectReference{
			APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(),
		})
	}
	return list
}
