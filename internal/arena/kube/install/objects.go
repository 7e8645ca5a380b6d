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
	"github.com/cnibench/cnibench/internal/contender"
)

// manager is who owns the fields that server-side apply sets.
const manager = "cnibench"

// madeBy is an annotation on what the installer made: only that is deleted.
const madeBy = "cnibench.io/made-by"

// parseObjects reads YAML documents; lists are taken apart.
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

// inOrder puts what others need first: namespaces, then definitions.
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

// mapping finds the resource of a kind. The first time that the cluster's list
// of kinds lacks the kind, the list is asked for again.
func (j *job) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := j.cl.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		j.cl.Mapper.Reset()
		mapping, err = j.cl.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	return mapping, err
}

// resource is the client for the kind's objects in the namespace, or of the
// whole cluster.
func (j *job) resource(gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := j.mapping(gvk)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return j.cl.Dynamic.Resource(mapping.Resource), nil
	}
	return j.cl.Dynamic.Resource(mapping.Resource).Namespace(cmp.Or(namespace, "default")), nil
}

// kindPatience is how long the cluster may take to know a kind whose definition
// has just been created.
const kindPatience = time.Minute

// setNamespace sets the namespace of an object that has none and needs one.
func (j *job) setNamespace(ctx context.Context, o *unstructured.Unstructured, namespace string) error {
	return persist(ctx, min(kindPatience, j.o.Patience), "find the kind of "+textOf(o), func(context.Context) error {
		mapping, err := j.mapping(o.GroupVersionKind())
		if err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace && o.GetNamespace() == "" {
			o.SetNamespace(namespace)
		}
		return err
	})
}

// create creates an object and marks it as the installation's. An object of that
// name that the installation did not create is an error of the kind AlreadyExists.
func (j *job) create(ctx context.Context, o *unstructured.Unstructured) error {
	o = o.DeepCopy()
	j.mark(o)
	var foreign error
	err := j.patiently(ctx, "create "+textOf(o), func(ctx context.Context) error {
		r, err := j.resource(o.GroupVersionKind(), o.GetNamespace())
		if err != nil {
			return err
		}
		_, err = r.Create(ctx, o, metav1.CreateOptions{FieldManager: manager})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		// Perhaps by an earlier request, whose answer was lost.
		current, getErr := r.Get(ctx, o.GetName(), metav1.GetOptions{})
		if getErr == nil && current.GetAnnotations()[madeBy] != j.c.ID {
			foreign = err
		}
		return getErr
	})
	return cmp.Or(err, foreign)
}

// mark notes on an object that the installation created it.
func (j *job) mark(o *unstructured.Unstructured) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[madeBy] = j.c.ID
	o.SetAnnotations(annotations)
}

// apply creates or changes an object by server-side apply, and marks what it
// created.
func (j *job) apply(ctx context.Context, o *unstructured.Unstructured) error {
	o = o.DeepCopy()
	return j.patiently(ctx, "apply "+textOf(o), func(ctx context.Context) error {
		r, err := j.resource(o.GroupVersionKind(), o.GetNamespace())
		if err != nil {
			return err
		}
		_, err = r.Get(ctx, o.GetName(), metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err != nil {
			j.mark(o)
		}
		_, err = r.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: true})
		return err
	})
}

// deleteMade deletes an object if the installation created it, and waits until it
// is gone. The objects of a definition are deleted with it.
func (j *job) deleteMade(ctx context.Context, o *unstructured.Unstructured) error {
	made, err := j.requestDeletion(ctx, o)
	if err != nil || !made {
		return err
	}
	return j.deleteObject(ctx, o)
}

// requestDeletion deletes an object if the installation created it, and reports
// whether it did.
func (j *job) requestDeletion(ctx context.Context, o *unstructured.Unstructured) (made bool, err error) {
	err = j.patiently(ctx, "look for "+textOf(o), func(ctx context.Context) error {
		current, _, err := j.current(ctx, o)
		made = current != nil && current.GetAnnotations()[madeBy] != ""
		return err
	})
	if err != nil || !made {
		return false, err
	}
	if o.GetKind() == "CustomResourceDefinition" {
		if err := j.releaseAll(ctx, o.GetName()); err != nil {
			return true, err
		}
	}
	return true, j.patiently(ctx, "delete "+textOf(o), func(ctx context.Context) error {
		_, err := j.deleteOnce(ctx, o)
		return err
	})
}

// current reads an object from the cluster; nil if the object or its kind is gone.
func (j *job) current(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, dynamic.ResourceInterface, error) {
	r, err := j.resource(o.GroupVersionKind(), o.GetNamespace())
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
func (j *job) deleteOnce(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	current, r, err := j.current(ctx, o)
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
	if j.had(textOf(o)) {
		return nil
	}
	return j.deleteObject(ctx, o)
}

// deleteObject deletes an object and waits until it is gone.
func (j *job) deleteObject(ctx context.Context, o *unstructured.Unstructured) error {
	return j.patiently(ctx, "delete "+textOf(o), func(ctx context.Context) error {
		current, err := j.deleteOnce(ctx, o)
		if err != nil || current == nil {
			return err
		}
		if held := current.GetFinalizers(); len(held) > 0 {
			return fmt.Errorf("still there, held by its finalizers %s", strings.Join(held, ", "))
		}
		return errors.New("still there")
	})
}

// patch changes an object that is there.
func (j *job) patch(ctx context.Context, p *contender.Patch) error {
	content, err := j.fill(ctx, p.Patch)
	if err != nil {
		return err
	}
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	kind := types.MergePatchType
	if p.Strategic {
		kind = types.StrategicMergePatchType
	}
	return j.patiently(ctx, fmt.Sprintf("patch %s %s", p.Of.Kind, p.Of.Name), func(ctx context.Context) error {
		r, err := j.resource(schema.FromAPIVersionAndKind(p.Of.APIVersion, p.Of.Kind), p.Of.Namespace)
		if err != nil {
			return err
		}
		_, err = r.Patch(ctx, p.Of.Name, kind, data, metav1.PatchOptions{FieldManager: manager})
		return err
	})
}

// patiently persists for as long as a contender may take.
func (i *Installer) patiently(ctx context.Context, what string, try func(context.Context) error) error {
	return persist(ctx, i.o.Patience, what, try)
}

// rightsPatience is how long the API server may refuse without a break: one
// that has just come back may not know its users' rights yet.
const rightsPatience = 10 * time.Second

// refuses is whether the API server says that the user may not. A new
// namespace lacks its service account for a moment, which it words alike.
func refuses(err error) bool {
	return (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) && !kube.Unborn(err)
}

// persist tries again until it succeeds, an error that no waiting mends comes,
// or the patience is over; the API server may be away meanwhile.
func persist(ctx context.Context, patience time.Duration, what string, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begin := time.Now()
	var refusing time.Time // since when; zero: the last answer was another
	for {
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			return try(ctx)
		}()
		if err == nil {
			return nil
		}
		switch {
		case !refuses(err):
			refusing = time.Time{}
		case refusing.IsZero():
			refusing = time.Now()
		}
		forbidden := !refusing.IsZero() && time.Since(refusing) >= rightsPatience
		if forbidden || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (tried for %v)", what, err, time.Since(begin).Round(time.Second))
		case <-time.After(pause):
		}
	}
}

// pause is between two looks at the cluster.
const pause = 500 * time.Millisecond
