package install

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"

	"github.com/cnibench/cnibench/internal/contender"
)

// chartOf loads the step's chart and fills in its values.
func (j *job) chartOf(ctx context.Context, c *contender.Chart) (*chart.Chart, map[string]any, error) {
	pinned := ""
	if j.version == j.c.Kube.Versions[j.o.Versions].Version {
		pinned = c.SHA256[j.o.Versions]
	}
	ch, err := j.source.chart(ctx, c, j.version, pinned)
	if err != nil {
		return nil, nil, err
	}
	values, err := j.fill(ctx, c.Values)
	if err != nil {
		return nil, nil, fmt.Errorf("chart %s: %w", c.Name, err)
	}
	return ch, values, nil
}

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

// installChart does what `helm install` does: it creates the definitions of the
// chart's crds folder, asks the cluster what it can, renders the templates, runs
// the hooks and creates the objects. The journal has their names before the
// first of them is created.
func (j *job) installChart(ctx context.Context, c *contender.Chart) error {
	ch, values, err := j.chartOf(ctx, c)
	if err != nil {
		return err
	}
	j.o.Log("chart %s %s as %s/%s", c.Name, j.version, c.Namespace, c.Release)
	if err := j.createChart(ctx, c, ch, values); err != nil {
		return fmt.Errorf("chart %s %s: %w", c.Name, j.version, err)
	}
	j.cl.Mapper.Reset()
	return nil
}

func (j *job) createChart(ctx context.Context, c *contender.Chart, ch *chart.Chart, values map[string]any) error {
	crds, err := definitions(ch)
	if err != nil {
		return err
	}
	made, err := j.chartRecord(c)
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
	r, err := render(ch, c, values, capabilities, j.engine())
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
	if err := j.runHooks(ctx, c.Namespace, r.hooks, release.HookPreInstall); err != nil {
		return err
	}
	for _, o := range r.objects {
		if err := j.create(ctx, o); err != nil {
			return err
		}
	}
	return j.runHooks(ctx, c.Namespace, r.hooks, release.HookPostInstall)
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
		if err := j.wait(ctx, &contender.Wait{Of: of, For: "Established"}); err != nil {
			return err
		}
	}
	if len(crds) > 0 {
		j.cl.Mapper.Reset()
	}
	return nil
}

// capabilities is what a chart may ask of the cluster: its version, and which
// kinds it serves.
func (j *job) capabilities(ctx context.Context) (*chartutil.Capabilities, error) {
	found := chartutil.DefaultCapabilities.Copy()
	err := j.patiently(ctx, "ask the API server what it serves", func(context.Context) error {
		server := j.cl.Client.Discovery()
		version, err := server.ServerVersion()
		if err != nil {
			return err
		}
		found.KubeVersion = chartutil.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor}
		_, resources, err := server.ServerGroupsAndResources()
		// A group whose server is away is left out; the others are listed.
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

// engine renders templates, whose function lookup reads the cluster.
func (j *job) engine() engine.Engine {
	if j.cl.Config == nil {
		return engine.Engine{}
	}
	return engine.New(j.cl.Config)
}

// requireAbsent returns an error if the cluster has one of the objects already.
func (j *job) requireAbsent(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		exists := false
		err := j.patiently(ctx, "look for "+textOf(o), func(ctx context.Context) error {
			r, err := j.resource(o.GroupVersionKind(), o.GetNamespace())
			if err != nil {
				return err
			}
			_, err = r.Get(ctx, o.GetName(), metav1.GetOptions{})
			if exists = err == nil; apierrors.IsNotFound(err) {
				return nil
			}
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

// removeChart does what `helm uninstall` does, and deletes what Helm leaves: the
// definitions of the chart's crds folder and the objects of its hooks. Only
// objects that the installation created are deleted.
func (j *job) removeChart(ctx context.Context, made *chartRecord) error {
	err := j.runHooks(ctx, made.Namespace, made.Hooks, release.HookPreDelete)
	if err == nil {
		err = j.deleteTogether(ctx, made.Objects)
	}
	if err == nil {
		err = j.runHooks(ctx, made.Namespace, made.Hooks, release.HookPostDelete)
	}
	if err == nil {
		err = j.deleteTogether(ctx, slices.Concat(made.HookObjects, made.Definitions))
	}
	if err != nil {
		return fmt.Errorf("uninstall release %s/%s: %w", made.Namespace, made.Release, err)
	}
	return nil
}

// chartRecord is the chart's part of the journal.
func (j *job) chartRecord(c *contender.Chart) (*chartRecord, error) {
	for _, s := range j.steps {
		if s.Chart != nil && s.Chart.Namespace == c.Namespace && s.Chart.Release == c.Release {
			return s.Chart, nil
		}
	}
	return nil, fmt.Errorf("the journal has no release %s/%s", c.Namespace, c.Release)
}

// deleteTogether asks for the deletion of all objects before it waits for the
// first: some go only after others.
func (j *job) deleteTogether(ctx context.Context, list []corev1.ObjectReference) error {
	var going []*unstructured.Unstructured
	for _, ref := range list {
		o := object(ref.APIVersion, ref.Kind, ref.Namespace, ref.Name)
		made, err := j.requestDeletion(ctx, o)
		if err != nil {
			return err
		}
		if made {
			going = append(going, o)
		}
	}
	for _, o := range going {
		if err := j.deleteObject(ctx, o); err != nil {
			return err
		}
	}
	return nil
}
