package install

import (
	"context"
	"fmt"
	"slices"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/contender"
)

// chartStep installs a Helm chart.
type chartStep struct{ *contender.Chart }

// gather names only the release: the objects of a chart are known once it is rendered.
func (c chartStep) gather(ctx context.Context, j *job) (*stepRecord, error) {
	_, _, err := c.load(ctx, j)
	return &stepRecord{Chart: &chartRecord{Namespace: c.Namespace, Release: c.Release}}, err
}

// load reads the chart and fills in its values.
func (c chartStep) load(ctx context.Context, j *job) (*chart.Chart, map[string]any, error) {
	pinned := ""
	if j.version == j.c.Kube.Versions[j.o.Versions].Version {
		pinned = c.SHA256[j.o.Versions]
	}
	ch, err := j.source.chart(ctx, c.Chart, j.version, pinned)
	if err != nil {
		return nil, nil, err
	}
	values, err := j.fill(ctx, c.Values)
	if err != nil {
		return nil, nil, fmt.Errorf("chart %s: %w", c.Name, err)
	}
	return ch, values, nil
}

// do does the same as `helm install`: it creates the definitions of the chart's crds
// folder, asks the cluster for its capabilities, renders the templates, runs the hooks and
// creates the objects. It writes the objects' names into the journal before it creates
// the first object.
func (c chartStep) do(ctx context.Context, j *job) error {
	ch, values, err := c.load(ctx, j)
	if err != nil {
		return err
	}
	j.o.Log("chart %s %s as %s/%s", c.Name, j.version, c.Namespace, c.Release)
	if err := c.create(ctx, j, ch, values); err != nil {
		return fmt.Errorf("chart %s %s: %w", c.Name, j.version, err)
	}
	j.cl.Mapper.Reset()
	return nil
}

func (c chartStep) create(ctx context.Context, j *job, ch *chart.Chart, values map[string]any) error {
	crds, err := definitions(ch)
	if err != nil {
		return err
	}
	made, err := c.record(j)
	if err != nil {
		return err
	}
	made.Definitions = referencesTo(crds)
	if err := j.write(ctx); err != nil {
		return err
	}
	if err := j.createDefinitions(ctx, crds); err != nil {
		return err
	}
	capabilities, err := j.capabilities(ctx)
	if err != nil {
		return err
	}
	r, err := render(ch, c.Chart, values, capabilities, engineOf(j.cl))
	if err != nil {
		return err
	}
	for _, o := range append(slices.Clone(r.objects), r.hookObjects...) {
		if err := j.setNamespace(ctx, o, c.Namespace); err != nil {
			return err
		}
	}
	made.Objects, made.HookObjects, made.Hooks = referencesTo(r.deletion()), referencesTo(r.hookObjects), r.deleteHooks()
	if err := j.write(ctx); err != nil {
		return err
	}
	if err := j.requireAbsent(ctx, r.objects); err != nil {
		return err
	}
	if err := (hooks{j, c.Namespace}).run(ctx, r.hooks, release.HookPreInstall); err != nil {
		return err
	}
	for _, o := range r.objects {
		if err := j.create(ctx, o); err != nil {
			return err
		}
	}
	return (hooks{j, c.Namespace}).run(ctx, r.hooks, release.HookPostInstall)
}

// createDefinitions creates the definitions that the cluster lacks, and waits
// until it serves them.
func (j *job) createDefinitions(ctx context.Context, crds []*unstructured.Unstructured) error {
	for _, crd := range crds {
		if err := j.create(ctx, crd); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	for _, crd := range crds {
		of := contender.Object{APIVersion: crd.GetAPIVersion(), Kind: crd.GetKind(), Name: crd.GetName()}
		if err := (waitStep{Wait: &contender.Wait{Of: of, For: "Established"}}).do(ctx, j); err != nil {
			return err
		}
	}
	if len(crds) > 0 {
		j.cl.Mapper.Reset()
	}
	return nil
}

// capabilities returns the cluster's version and the kinds that it serves, for charts.
func (a *objects) capabilities(ctx context.Context) (*chartutil.Capabilities, error) {
	found := chartutil.DefaultCapabilities.Copy()
	err := a.retry(ctx, "ask the API server what it serves", func(context.Context) error {
		server := a.cl.Client.Discovery()
		version, err := server.ServerVersion()
		if err != nil {
			return err
		}
		found.KubeVersion = chartutil.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor}
		_, resources, err := server.ServerGroupsAndResources()
		// A group whose server does not answer is left out.
		if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
			return err
		}
		found.APIVersions = nil
		for _, list := range resources {
			found.APIVersions = append(found.APIVersions, list.GroupVersion)
			for _, r := range list.APIResources {
				found.APIVersions = append(found.APIVersions, list.GroupVersion+"/"+r.Kind)
			}
		}
		return nil
	})
	return found, err
}

// engineOf returns the engine that renders templates. Their function lookup reads the
// cluster.
func engineOf(cl *kube.Cluster) engine.Engine {
	if cl.Config == nil {
		return engine.Engine{}
	}
	return engine.New(cl.Config)
}

// record returns the chart's part of the journal.
func (c chartStep) record(j *job) (*chartRecord, error) {
	for _, s := range j.steps {
		if s.Chart != nil && s.Chart.Namespace == c.Namespace && s.Chart.Release == c.Release {
			return s.Chart, nil
		}
	}
	return nil, fmt.Errorf("the journal has no release %s/%s", c.Namespace, c.Release)
}

// undo does the same as `helm uninstall`, and deletes what Helm leaves: the definitions of
// the chart's crds folder and the objects of its hooks. It deletes only objects that the
// installation created. Hooks for after the deletion run before the objects are gone,
// because some of these hooks remove finalizers.
func (made *chartRecord) undo(ctx context.Context, j *job) error {
	h := hooks{j, made.Namespace}
	err := h.run(ctx, made.Hooks, release.HookPreDelete)
	var requested []*unstructured.Unstructured
	if err == nil {
		requested, err = j.requestAll(ctx, made.Objects)
	}
	if err == nil {
		err = h.run(ctx, made.Hooks, release.HookPostDelete)
	}
	if err == nil {
		err = j.awaitDeletion(ctx, requested)
	}
	if err == nil {
		err = j.deleteTogether(ctx, slices.Concat(made.HookObjects, made.Definitions))
	}
	if err != nil {
		return fmt.Errorf("uninstall release %s/%s: %w", made.Namespace, made.Release, err)
	}
	return nil
}
