package install

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"github.com/cnibench/cnibench/internal/arena/kube"
)

const mergePatch = types.MergePatchType

// manager is the field manager of server-side apply.
const manager = "cnibench"

// madeBy is an annotation of objects that the installer made. It deletes no others.
const madeBy = "cnibench.io/made-by"

// objects makes and removes the objects of an installation.
type objects struct {
	cl       *kube.Cluster
	owner    string        // the contender's id, the value of madeBy
	patience time.Duration // for each object
}

// parseObjects returns the objects of YAML documents, and the items of lists.
func parseObjects(data []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	docs := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var doc runtime.RawExtension
		err := docs.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		var content map[string]any
		if err == nil && len(doc.Raw) > 0 {
			err = utiljson.Unmarshal(doc.Raw, &content) // whole numbers stay whole
		}
		if err != nil {
			return nil, fmt.Errorf("no YAML of Kubernetes objects: %w", err)
		}
		if len(content) == 0 {
			continue
		}
		o := &unstructured.Unstructured{Object: content}
		switch {
		case o.IsList():
			err := o.EachListItem(func(item runtime.Object) error {
				all = append(all, item.(*unstructured.Unstructured))
				return nil
			})
			if err != nil {
				return nil, err
			}
		case o.GetKind() == "" || o.GetAPIVersion() == "" || o.GetName() == "":
			return nil, fmt.Errorf("an object without apiVersion, kind or name: %.80v", content)
		default:
			all = append(all, o)
		}
	}
}

// inOrder sorts namespaces before definitions, and both before other objects, which may
// need them.
func inOrder(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	rank := func(o *unstructured.Unstructured) int {
		switch o.GetKind() {
		case "Namespace":
			return 0
		case "CustomResourceDefinition":
			return 1
		}
		return 2
	}
	sorted := slices.Clone(objects)
	slices.SortStableFunc(sorted, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	return sorted
}

// textOf names an object in messages.
func textOf(o *unstructured.Unstructured) string {
	name := o.GetName()
	if ns := o.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return o.GetKind() + " " + name
}

// findMapping finds the resource of a kind. If the cached list of kinds lacks the kind, it
// asks the cluster once more.
func (a *objects) findMapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := a.cl.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		a.cl.Mapper.Reset()
		mapping, err = a.cl.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	return mapping, err
}

// resource returns the client for the kind's objects in the namespace, or in the whole
// cluster if the kind has no namespaces.
func (a *objects) resource(gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := a.findMapping(gvk)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return a.cl.Dynamic.Resource(mapping.Resource), nil
	}
	return a.cl.Dynamic.Resource(mapping.Resource).Namespace(cmp.Or(namespace, "default")), nil
}

// kindPatience is how long the cluster may take to know a kind whose definition
// has just been created.
const kindPatience = time.Minute

// setNamespace sets the namespace of an object that has none and needs one.
func (a *objects) setNamespace(ctx context.Context, o *unstructured.Unstructured, namespace string) error {
	return retryFor(ctx, min(kindPatience, a.patience), "find the kind of "+textOf(o), func(context.Context) error {
		mapping, err := a.findMapping(o.GroupVersionKind())
		if err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace && o.GetNamespace() == "" {
			o.SetNamespace(namespace)
		}
		return err
	})
}

// create creates an object and marks it as the installation's. An object of that
// name that the installation did not create is an error of the kind AlreadyExists.
func (a *objects) create(ctx context.Context, o *unstructured.Unstructured) error {
	o = o.DeepCopy()
	a.mark(o)
	var foreign error
	err := a.retry(ctx, "create "+textOf(o), func(ctx context.Context) error {
		r, err := a.resource(o.GroupVersionKind(), o.GetNamespace())
		if err != nil {
			return err
		}
		_, err = r.Create(ctx, o, metav1.CreateOptions{FieldManager: manager})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		// An earlier request, whose answer was lost, may have made it.
		current, getErr := r.Get(ctx, o.GetName(), metav1.GetOptions{})
		if getErr == nil && current.GetAnnotations()[madeBy] != a.owner {
			foreign = err
		}
		return getErr
	})
	return cmp.Or(err, foreign)
}

// mark notes on an object that the installation created it.
func (a *objects) mark(o *unstructured.Unstructured) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[madeBy] = a.owner
	o.SetAnnotations(annotations)
}

// apply creates or changes an object by server-side apply, and marks what it
// created.
func (a *objects) apply(ctx context.Context, o *unstructured.Unstructured) error {
	o = o.DeepCopy()
	return a.retry(ctx, "apply "+textOf(o), func(ctx context.Context) error {
		r, err := a.resource(o.GroupVersionKind(), o.GetNamespace())
		if err != nil {
			return err
		}
		_, err = r.Get(ctx, o.GetName(), metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err != nil {
			a.mark(o)
		}
		_, err = r.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: true})
		return err
	})
}

// deleteMade deletes an object if the installation created it, and waits until it
// is gone. The objects of a definition are deleted with it.
func (a *objects) deleteMade(ctx context.Context, o *unstructured.Unstructured) error {
	made, err := a.requestDeletion(ctx, o)
	if err != nil || !made {
		return err
	}
	return a.deleteObject(ctx, o)
}

// requestDeletion deletes an object if the installation created it, and reports
// whether it did.
func (a *objects) requestDeletion(ctx context.Context, o *unstructured.Unstructured) (made bool, err error) {
	err = a.retry(ctx, "look for "+textOf(o), func(ctx context.Context) error {
		current, _, err := a.current(ctx, o)
		made = current != nil && current.GetAnnotations()[madeBy] != ""
		return err
	})
	if err != nil || !made {
		return false, err
	}
	if o.GetKind() == "CustomResourceDefinition" {
		if err := a.releaseAll(ctx, o.GetName()); err != nil {
			return true, err
		}
	}
	return true, a.retry(ctx, "delete "+textOf(o), func(ctx context.Context) error {
		_, err := a.deleteOnce(ctx, o)
		return err
	})
}

// current reads an object from the cluster; nil if the object or its kind is gone.
func (a *objects) current(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, dynamic.ResourceInterface, error) {
	r, err := a.resource(o.GroupVersionKind(), o.GetNamespace())
	if meta.IsNoMatchError(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	current, err := r.Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, r, nil
	}
	return current, r, err
}

// deleteOnce asks for an object's deletion, unless somebody has asked already. It
// returns the object as it was; nil if it is gone.
func (a *objects) deleteOnce(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	current, r, err := a.current(ctx, o)
	if err != nil || current == nil || current.GetDeletionTimestamp() != nil {
		return current, err
	}
	propagation := metav1.DeletePropagationForeground
	if o.GetKind() == "CustomResourceDefinition" || o.GetKind() == "Namespace" {
		propagation = metav1.DeletePropagationBackground
	}
	err = r.Delete(ctx, o.GetName(), metav1.DeleteOptions{PropagationPolicy: &propagation})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return current, err
}

// deleteNew deletes an object if it was not there before the installation.
func (j *job) deleteNew(ctx context.Context, o *unstructured.Unstructured) error {
	if j.existedBefore(textOf(o)) {
		return nil
	}
	return j.deleteObject(ctx, o)
}

// deleteObject deletes an object and waits until it is gone.
func (a *objects) deleteObject(ctx context.Context, o *unstructured.Unstructured) error {
	return a.retry(ctx, "delete "+textOf(o), func(ctx context.Context) error {
		current, err := a.deleteOnce(ctx, o)
		if err != nil || current == nil {
			return err
		}
		if held := current.GetFinalizers(); len(held) > 0 {
			return fmt.Errorf("still there, held by its finalizers %s", strings.Join(held, ", "))
		}
		return errors.New("still there")
	})
}

// retry is retryFor with the patience of a.
func (a *objects) retry(ctx context.Context, what string, try func(context.Context) error) error {
	return retryFor(ctx, a.patience, what, try)
}

// rightsPatience is how long the API server may refuse without a break: a server that has
// just started may not know its users' rights yet.
const rightsPatience = 10 * time.Second

// fetch does the same as retryFor, and returns the result of get.
func fetch[T any](ctx context.Context, patience time.Duration, what string, get func(context.Context) (T, error)) (found T, err error) {
	err = retryFor(ctx, patience, what, func(ctx context.Context) (err error) {
		found, err = get(ctx)
		return err
	})
	return found, err
}

// isRefusal reports whether the user lacks a right. The API server also forbids pods in a
// namespace that lacks its service account because it is new: that is no refusal.
func isRefusal(err error) bool {
	return (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) && !kube.NamespaceTooNew(err)
}

// retryFor calls try until it succeeds, until an error shows that waiting does not help,
// or until the patience is over. The error begins with what, the purpose of try.
func retryFor(ctx context.Context, patience time.Duration, what string, try func(context.Context) error) error {
	var refusing time.Time // of the first of the last refusals in a row; zero: the last try was not refused
	return kube.Retry(ctx, patience, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		if err := try(ctx); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}, func(err error) bool {
		switch {
		case !isRefusal(err):
			refusing = time.Time{}
		case refusing.IsZero():
			refusing = time.Now()
		}
		forbidden := !refusing.IsZero() && time.Since(refusing) >= rightsPatience
		return !forbidden && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err)
	})
}

// releaseAll removes the finalizers from the objects of a definition: their controllers
// no longer run.
func (a *objects) releaseAll(ctx context.Context, crd string) error {
	return a.retry(ctx, "release the objects of "+crd, func(ctx context.Context) error {
		o, err := a.cl.Dynamic.Resource(crdResource).Get(ctx, crd, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		gvr, ok := findStoredVersion(o)
		if !ok {
			return nil
		}
		list, err := a.cl.Dynamic.Resource(gvr).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, item := range list.Items {
			if len(item.GetFinalizers()) == 0 {
				continue
			}
			_, err := a.cl.Dynamic.Resource(gvr).Namespace(item.GetNamespace()).Patch(ctx, item.GetName(), mergePatch,
				[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{FieldManager: manager})
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
		return nil
	})
}

// deleteTogether requests the deletion of all objects before it waits for the first: some
// are deleted only after others.
func (a *objects) deleteTogether(ctx context.Context, list []corev1.ObjectReference) error {
	requested, err := a.requestAll(ctx, list)
	if err != nil {
		return err
	}
	return a.awaitDeletion(ctx, requested)
}

// requestAll requests the deletion of the objects that the installation created, and
// returns them.
func (a *objects) requestAll(ctx context.Context, list []corev1.ObjectReference) ([]*unstructured.Unstructured, error) {
	var requested []*unstructured.Unstructured
	for _, ref := range list {
		o := object(ref.APIVersion, ref.Kind, ref.Namespace, ref.Name)
		made, err := a.requestDeletion(ctx, o)
		if err != nil {
			return nil, err
		}
		if made {
			requested = append(requested, o)
		}
	}
	return requested, nil
}

func (a *objects) awaitDeletion(ctx context.Context, requested []*unstructured.Unstructured) error {
	for _, o := range requested {
		if err := a.deleteObject(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// requireAbsent returns an error if the cluster has one of the objects already.
func (a *objects) requireAbsent(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		exists := false
		err := a.retry(ctx, "look for "+textOf(o), func(ctx context.Context) error {
			current, _, err := a.current(ctx, o)
			exists = current != nil
			return err
		})
		if err != nil {
			return err
		}
		if exists {
			return fmt.Errorf("%s exists already; remove it, or measure the product that made it without --install", textOf(o))
		}
	}
	return nil
}

func (a *objects) patchNode(ctx context.Context, name string, patch map[string]any) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return a.retry(ctx, "change node "+name, func(ctx context.Context) error {
		_, err := a.cl.Client.CoreV1().Nodes().Patch(ctx, name, mergePatch, data, metav1.PatchOptions{FieldManager: manager})
		return err
	})
}
