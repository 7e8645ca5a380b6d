package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

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

// fill replaces the placeholders, and makes of the numbers what Kubernetes'
// libraries take.
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

func (j *job) installChart(ctx context.Context, c *contender.Chart) error {
	ch, values, err := j.chartOf(ctx, c)
	if err != nil {
		return err
	}
	cfg, err := j.helm(c.Namespace)
	if err != nil {
		return err
	}
	in := action.NewInstall(cfg)
	in.ReleaseName, in.Namespace, in.Timeout = c.Release, c.Namespace, j.o.Patience
	j.o.Log("chart %s %s as %s/%s", c.Name, j.version, c.Namespace, c.Release)
	if _, err := in.RunWithContext(ctx, ch, values); err != nil {
		return fmt.Errorf("chart %s %s: %w", c.Name, j.version, err)
	}
	j.cl.Mapper.Reset()
	return nil
}

// removeChart uninstalls the release and, which Helm does not, the
// definitions in its folder crds. Those that were there before, which Helm
// has left as they were, stay.
func (j *job) removeChart(ctx context.Context, c *contender.Chart) error {
	cfg, err := j.helm(c.Namespace)
	if err != nil {
		return err
	}
	last, err := cfg.Releases.Last(c.Release)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("release %s/%s: %w", c.Namespace, c.Release, err)
	}
	un := action.NewUninstall(cfg)
	un.Wait, un.Timeout, un.IgnoreNotFound = true, j.o.Patience, true
	if _, err := un.Run(c.Release); err != nil {
		return fmt.Errorf("uninstall release %s/%s: %w", c.Namespace, c.Release, err)
	}
	for _, crd := range last.Chart.CRDObjects() {
		objects, err := parseObjects(crd.File.Data)
		if err != nil {
			return fmt.Errorf("chart %s: %s: %w", c.Name, crd.Filename, err)
		}
		for _, o := range objects {
			if err := j.deleteNew(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// render is what the chart becomes, without a cluster.
func render(ch *chart.Chart, c *contender.Chart, values map[string]any, kubeVersion string) (string, error) {
	cfg := &action.Configuration{Log: func(string, ...any) {}}
	in := action.NewInstall(cfg)
	in.ReleaseName, in.Namespace = c.Release, c.Namespace
	in.ClientOnly, in.DryRun, in.IncludeCRDs = true, true, true
	version, err := chartutil.ParseKubeVersion(kubeVersion)
	if err != nil {
		return "", err
	}
	in.KubeVersion = version
	rel, err := in.Run(ch, values)
	if err != nil {
		return "", err
	}
	return rel.Manifest, nil
}

func (j *job) helm(namespace string) (*action.Configuration, error) {
	cfg := &action.Configuration{}
	err := cfg.Init(&getter{j.cl.Config, namespace}, namespace, "secret", func(string, ...any) {})
	if err != nil {
		return nil, fmt.Errorf("helm: %w", err)
	}
	return cfg, nil
}

// getter gives Helm the connection that there is.
type getter struct {
	config    *rest.Config
	namespace string
}

func (g *getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

func (g *getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	d, err := discovery.NewDiscoveryClientForConfig(g.config)
	if err != nil {
		return nil, err
	}
	return memory.NewMemCacheClient(d), nil
}

func (g *getter) ToRESTMapper() (meta.RESTMapper, error) {
	d, err := g.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	return deferredMapper(d), nil
}

func (g *getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: g.namespace}}
	return clientcmd.NewDefaultClientConfig(clientcmdapi.Config{}, overrides)
}
