package install

import (
	"bytes"
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
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/contender"
)

// manager is who owns the fields that server-side apply sets.
const manager = "cnibench"

// madeBy is an annotation on what the installer made: only that is deleted.
const madeBy = "cnibench.io/made-by"

func deferredMapper(d discovery.CachedDiscoveryInterface) meta.ResettableRESTMapper {
	return restmapper.NewDeferredDiscoveryRESTMapper(d)
}

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

// resource is the client for the object's kind. A kind whose definition has
// only just been made takes a moment to be known.
func (j *job) resource(ctx context.Context, gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := j.cl.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		j.cl.Mapper.Reset()
		mapping, err = j.cl.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return j.cl.Dynamic.Resource(mapping.Resource), nil
	}
	if namespace == "" {
		namespace = "default"
	}
	return j.cl.Dynamic.Resource(mapping.Resource).Namespace(namespace), nil
}

// apply creates or changes an object by server-side apply, and marks what it
// created.
func (j *job) apply(ctx context.Context, o *unstructured.Unstructured) error {
	o = o.DeepCopy()
	return j.patiently(ctx, "apply "+textOf(o), func(ctx context.Context) error {
		r, err := j.resource(ctx, o.GroupVersionKind(), o.GetNamespace())
		if err != nil {
			return err
		}
		_, err = r.Get(ctx, o.GetName(), metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err != nil {
			annotations := o.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[madeBy] = j.c.ID
			o.SetAnnotations(annotations)
		}
		_, err = r.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: true})
		return err
	})
}

// deleteMade deletes an object if the installer made it, and waits until it
// has gone; with a definition go the objects of its kind.
func (j *job) deleteMade(ctx context.Context, o *unstructured.Unstructured) error {
	made := false
	err := j.patiently(ctx, "delete "+textOf(o), func(ctx context.Context) error {
		r, err := j.resource(ctx, o.GroupVersionKind(), o.GetNamespace())
		if meta.IsNoMatchError(err) {
			return nil // its kind has gone, and it with it
		}
		if err != nil {
			return err
		}
		there, err := r.Get(ctx, o.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		made = err == nil && there.GetAnnotations()[madeBy] != ""
		return err
	})
	if err != nil || !made {
		return err
	}
	if o.GetKind() == "CustomResourceDefinition" {
		if err := j.releaseAll(ctx, o.GetName()); err != nil {
			return err
		}
	}
	return j.deleteObject(ctx, o)
}

// deleteNew deletes an object if it was not there before the installation.
func (j *job) deleteNew(ctx context.Context, o *unstructured.Unstructured) error {
	if j.had(textOf(o)) {
		return nil
	}
	return j.deleteObject(ctx, o)
}

// deleteObject deletes an object and waits until it has gone.
func (j *job) deleteObject(ctx context.Context, o *unstructured.Unstructured) error {
	foreground := metav1.DeletePropagationForeground
	if o.GetKind() == "CustomResourceDefinition" || o.GetKind() == "Namespace" {
		foreground = metav1.DeletePropagationBackground
	}
	return j.patiently(ctx, "delete "+textOf(o), func(ctx context.Context) error {
		r, err := j.resource(ctx, o.GroupVersionKind(), o.GetNamespace())
		if meta.IsNoMatchError(err) {
			return nil
		}
		if err != nil {
			return err
		}
		there, err := r.Get(ctx, o.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if there.GetDeletionTimestamp() == nil {
			if err := r.Delete(ctx, o.GetName(), metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
				return err
			}
		}
		if held := there.GetFinalizers(); len(held) > 0 {
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
		r, err := j.resource(ctx, schema.FromAPIVersionAndKind(p.Of.APIVersion, p.Of.Kind), p.Of.Namespace)
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
