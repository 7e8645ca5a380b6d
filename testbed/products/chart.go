//go:build linux

package products

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
)

// productLabel is on every object that a product is installed with.
const productLabel = "testbed.cnibench.io/product"

// change is a default value of a chart that is another one here.
type change struct {
	path  string // keys, with dots between
	value any
	why   string
}

func (c change) String() string { return fmt.Sprintf("%s: %v (%s)", c.path, c.value, c.why) }

// published is what a source publishes: a chart, manifests, or both.
type published struct {
	*chart.Chart
	repository string     // where the unchanged chart is published
	changes    []change   // of the chart's defaults; what a user sets still applies on top
	manifests  []manifest // for a mirror
}

// manifest is a published manifest, with the changes that were made.
type manifest struct {
	url     string
	content []byte
	changes []change
}

// objects are what a product is made of, labelled with its name.
func (f published) objects(p product, here cluster, kubernetes string) ([]byte, error) {
	objects, err := f.documents(p, here, kubernetes)
	if err != nil || here.slow <= 1 {
		return objects, err
	}
	return editObjects(objects, func(object map[string]any) error {
		if object["kind"] != "CustomResourceDefinition" { // whose fields may be called like a pod's
			slowDown(object, here.slow)
		}
		return nil
	})
}

// documents are the objects as they are on a usual machine.
func (f published) documents(p product, here cluster, kubernetes string) ([]byte, error) {
	if f.Chart == nil {
		objects, err := f.edited(p.manifest, p.edits(here))
		if err != nil {
			return nil, err
		}
		return labelled(objects, p.name)
	}
	objects, err := render(f.Chart, p.name, p.namespace, kubernetes, p.values(here))
	if err == nil && p.namespace != "kube-system" {
		objects = slices.Concat(namespaceYAML(p.namespace, p.name), objects)
	}
	return objects, err
}

// edit is a text of a published manifest that is another one here.
type edit struct{ old, new string }

// edited returns the published manifest of that file name with other texts. Where it
// lacks one it is another manifest than was thought, which is an error.
func (f published) edited(name string, edits []edit) ([]byte, error) {
	i := slices.IndexFunc(f.manifests, func(m manifest) bool { return path.Base(m.url) == name })
	if i < 0 {
		return nil, fmt.Errorf("no manifest %s is published", name)
	}
	content := f.manifests[i].content
	for _, e := range edits {
		if !bytes.Contains(content, []byte(e.old)) {
			return nil, fmt.Errorf("%s lacks %q", name, e.old)
		}
		content = bytes.ReplaceAll(content, []byte(e.old), []byte(e.new))
	}
	return content, nil
}

// loadChart reads the chart in a folder and changes its defaults.
func loadChart(folder string, changes []change) (*chart.Chart, error) {
	c, err := loader.LoadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", folder, err)
	}
	raw := slices.IndexFunc(c.Raw, func(f *chart.File) bool { return f.Name == chartutil.ValuesfileName })
	if raw < 0 {
		return nil, fmt.Errorf("chart %s: no %s", folder, chartutil.ValuesfileName)
	}
	changed, err := changeDefaults(c.Raw[raw].Data, changes)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", folder, err)
	}
	c.Raw[raw].Data = changed
	if c.Values, err = chartutil.ReadValues(changed); err != nil {
		return nil, fmt.Errorf("chart %s: %w", folder, err)
	}
	return c, nil
}

// changeDefaults sets values in a values.yaml, whose comments stay. A path
// that the file lacks is an error: the chart is another one than was thought.
func changeDefaults(values []byte, changes []change) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(values, &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 {
		return nil, fmt.Errorf("%s: one document wanted", chartutil.ValuesfileName)
	}
	for _, c := range changes {
		node := document.Content[0]
		for _, key := range strings.Split(c.path, ".") {
			i := -1
			if node.Kind == yaml.MappingNode {
				for k := 0; k < len(node.Content); k += 2 {
					if node.Content[k].Value == key {
						i = k + 1
					}
				}
			}
			if i < 0 {
				return nil, fmt.Errorf("%s has no %s", chartutil.ValuesfileName, c.path)
			}
			node = node.Content[i]
		}
		var value yaml.Node
		if err := value.Encode(c.value); err != nil {
			return nil, fmt.Errorf("%s: %w", c.path, err)
		}
		*node = value
	}
	return yaml.Marshal(&document)
}

// render gives the objects of a chart as YAML documents in the order in which
// they can be applied, all of them labelled with the product's name.
func render(c *chart.Chart, product, namespace, kubernetes string, values map[string]any) ([]byte, error) {
	capabilities := chartutil.DefaultCapabilities.Copy()
	version, err := chartutil.ParseKubeVersion(kubernetes)
	if err != nil {
		return nil, fmt.Errorf("version of Kubernetes %q: %w", kubernetes, err)
	}
	capabilities.KubeVersion = *version
	release := chartutil.ReleaseOptions{Name: c.Name(), Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, values, release, capabilities)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", c.Name(), err)
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", c.Name(), err)
	}
	for name := range files {
		if filepath.Ext(name) != ".yaml" {
			delete(files, name)
		}
	}
	_, manifests, err := releaseutil.SortManifests(files, capabilities.APIVersions, releaseutil.InstallOrder)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", c.Name(), err)
	}
	var documents bytes.Buffer
	for _, m := range manifests {
		fmt.Fprintf(&documents, "---\n%s\n", m.Content)
	}
	return labelled(documents.Bytes(), product)
}

// labelled adds the product's label to every object of YAML documents.
func labelled(documents []byte, product string) ([]byte, error) {
	objects, err := editObjects(documents, func(object map[string]any) error { return label(object, product) })
	if err != nil {
		return nil, fmt.Errorf("objects of %s: %w", product, err)
	}
	return objects, nil
}

// editObjects changes every object of YAML documents.
func editObjects(documents []byte, change func(object map[string]any) error) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	decoder := yaml.NewDecoder(bytes.NewReader(documents))
	for {
		var object map[string]any
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return out.Bytes(), encoder.Close()
		}
		if err == nil && len(object) > 0 {
			if err = change(object); err == nil {
				err = encoder.Encode(object)
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// chartFiles is the published chart in that folder of the module, with the changes.
func chartFiles(m module, repository string, changes []change, folder string) func(context.Context) (published, error) {
	return func(ctx context.Context) (published, error) {
		dir, err := m.download(ctx)
		if err != nil {
			return published{}, err
		}
		c, err := loadChart(filepath.Join(dir, folder), changes)
		return published{Chart: c, repository: repository, changes: changes}, err
	}
}

// slowDown has an object's probes and its roll-out wait so many times longer, everywhere
// below the value. Probes come less often rather than fail more often: many are commands,
// which an emulated CPU has no time for.
func slowDown(value any, times int) {
	longer := func(in map[string]any, key string, usual int) {
		if set, is := in[key].(int); is {
			usual = set
		}
		in[key] = usual * times
	}
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			slowDown(item, times)
		}
	case map[string]any:
		for key, item := range v {
			slowDown(item, times)
			probe, is := item.(map[string]any)
			switch {
			case !is:
			case key == "livenessProbe" || key == "readinessProbe" || key == "startupProbe":
				longer(probe, "timeoutSeconds", 1)
				longer(probe, "periodSeconds", 10)
				if key == "livenessProbe" {
					longer(probe, "initialDelaySeconds", 0)
				}
			case key == "spec" && v["kind"] == "Deployment":
				longer(probe, "progressDeadlineSeconds", 600)
			}
		}
	}
}

// label adds the product's name to the labels of an object itself, not to
// those of the pods that it makes.
func label(object map[string]any, product string) error {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return fmt.Errorf("%v without metadata", object["kind"])
	}
	labels, ok := metadata["labels"].(map[string]any)
	if !ok {
		labels = map[string]any{}
		metadata["labels"] = labels
	}
	labels[productLabel] = product
	return nil
}

// namespaceYAML is the namespace of a product that may do what a node's own
// network software must.
func namespaceYAML(name, product string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Namespace
metadata:
  name: %s
  labels:
    pod-security.kubernetes.io/enforce: privileged
    %s: %s
---
`, name, productLabel, product)
}
