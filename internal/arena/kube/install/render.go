package install

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cnibench/cnibench/internal/contender"
)

// rendered is the result of a chart's templates.
type rendered struct {
	objects     []*unstructured.Unstructured // in Helm's order of creation
	hooks       []*release.Hook              // run before and after installing or deleting
	hookObjects []*unstructured.Unstructured // of all hooks
}

// hookEvents are the events at which the installer runs hooks; it neither
// upgrades nor tests a release.
var hookEvents = []release.HookEvent{
	release.HookPreInstall, release.HookPostInstall, release.HookPreDelete, release.HookPostDelete,
}

// render renders a chart as `helm install` does. It asks the cluster only for the function
// lookup, if the engine has a cluster.
func render(ch *chart.Chart, c *contender.Chart, values map[string]any, capabilities *chartutil.Capabilities, e engine.Engine) (*rendered, error) {
	kubeVersion := capabilities.KubeVersion.String()
	if wanted := ch.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, kubeVersion) {
		return nil, fmt.Errorf("the chart supports Kubernetes %s, and the cluster runs %s", wanted, kubeVersion)
	}
	if err := chartutil.ProcessDependenciesWithMerge(ch, values); err != nil {
		return nil, err
	}
	options := chartutil.ReleaseOptions{Name: c.Release, Namespace: c.Namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(ch, values, options, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := e.Render(ch, all)
	if err != nil {
		return nil, err
	}
	for name := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(files, name)
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, err
	}
	r := &rendered{}
	for _, m := range manifests {
		objects, err := parseObjects([]byte(m.Content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		r.objects = append(r.objects, objects...)
	}
	for _, h := range hooks {
		if !slices.ContainsFunc(h.Events, func(e release.HookEvent) bool { return slices.Contains(hookEvents, e) }) {
			continue
		}
		objects, err := parseObjects([]byte(h.Manifest))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.Path, err)
		}
		r.hooks = append(r.hooks, h)
		r.hookObjects = append(r.hookObjects, objects...)
	}
	return r, nil
}

// definitions returns the objects of the chart's crds folder, which Helm does not render.
func definitions(ch *chart.Chart) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, crd := range ch.CRDObjects() {
		objects, err := parseObjects(crd.File.Data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", crd.Filename, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// deletion returns the objects that uninstalling deletes, in Helm's order, without those
// that the chart wants to keep.
func (r *rendered) deletion() []*unstructured.Unstructured {
	rank := func(o *unstructured.Unstructured) int {
		if i := slices.Index(releaseutil.UninstallOrder, o.GetKind()); i >= 0 {
			return i
		}
		return len(releaseutil.UninstallOrder)
	}
	deleted := slices.DeleteFunc(slices.Clone(r.objects), func(o *unstructured.Unstructured) bool {
		return o.GetAnnotations()["helm.sh/resource-policy"] == "keep"
	})
	slices.SortStableFunc(deleted, func(a, b *unstructured.Unstructured) int { return cmp.Compare(rank(a), rank(b)) })
	return deleted
}

// deleteHooks returns the hooks that uninstalling runs.
func (r *rendered) deleteHooks() []*release.Hook {
	return slices.DeleteFunc(slices.Clone(r.hooks), func(h *release.Hook) bool {
		return !slices.Contains(h.Events, release.HookPreDelete) && !slices.Contains(h.Events, release.HookPostDelete)
	})
}
