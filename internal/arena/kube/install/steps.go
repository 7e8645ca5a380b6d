package install

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cnibench/cnibench/internal/contender"
)

// do does one step of the recipe.
func (j *job) do(ctx context.Context, s contender.Step) error {
	switch {
	case s.Chart != nil:
		return j.installChart(ctx, s.Chart)
	case s.NodeLabels != nil:
		return j.labelNodes(ctx, s.NodeLabels.Nodes, s.NodeLabels.Labels)
	case s.Patch != nil:
		return j.patch(ctx, s.Patch)
	case s.Wait != nil:
		return j.wait(ctx, s.Wait)
	case s.Farewell != nil:
		return nil // when it is undone
	}
	objects, err := j.objects(ctx, s)
	if err != nil {
		return err
	}
	if s.Manifest != nil {
		j.o.Log("%d objects of %s", len(objects), s.Manifest.URL)
	}
	for _, o := range inOrder(objects) {
		if err := j.apply(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// gather reads the charts and manifests of all steps, and notes what the steps
// make: taking that off needs neither the recipe nor its files.
func (j *job) gather(ctx context.Context) error {
	j.steps = nil
	for _, s := range j.c.Kube.StepsOf(j.o.Versions) {
		record, err := j.planned(ctx, s)
		if err != nil {
			return err
		}
		if record != nil {
			j.steps = append(j.steps, record)
		}
	}
	return nil
}

// planned names what a step is going to make; nil for a step that makes nothing.
// What a chart makes is known only when it is rendered.
func (j *job) planned(ctx context.Context, s contender.Step) (*stepRecord, error) {
	switch {
	case s.Chart != nil:
		_, _, err := j.chartOf(ctx, s.Chart)
		return &stepRecord{Chart: &chartRecord{Namespace: s.Chart.Namespace, Release: s.Chart.Release}}, err
	case s.NodeLabels != nil:
		return &stepRecord{Labels: &labelsRecord{Nodes: s.NodeLabels.Nodes, Keys: slices.Sorted(maps.Keys(s.NodeLabels.Labels))}}, nil
	case s.Patch != nil, s.Wait != nil, s.Farewell != nil:
		return nil, nil
	}
	objects, err := j.objects(ctx, s)
	return &stepRecord{Objects: referencesTo(inOrder(objects))}, err
}

// undo takes back what a step made.
func (j *job) undo(ctx context.Context, s *stepRecord) error {
	switch {
	case s.Chart != nil:
		return j.removeChart(ctx, s.Chart)
	case s.Labels != nil:
		return j.unlabelNodes(ctx, s.Labels)
	}
	for _, ref := range slices.Backward(s.Objects) {
		if err := j.deleteMade(ctx, object(ref.APIVersion, ref.Kind, ref.Namespace, ref.Name)); err != nil {
			return err
		}
	}
	return nil
}

// farewells runs the recipe's commands in the product's own pods, before those
// go. The commands are the catalogue's: a journal can be written by others.
func (j *job) farewells(ctx context.Context) error {
	for _, s := range slices.Backward(j.c.Kube.StepsOf(j.o.Versions)) {
		if s.Farewell == nil {
			continue
		}
		if err := j.farewell(ctx, s.Farewell); err != nil {
			return err
		}
	}
	return nil
}

// objects are those that a namespace, manifest, object or secret step makes.
func (j *job) objects(ctx context.Context, s contender.Step) ([]*unstructured.Unstructured, error) {
	switch {
	case s.Namespace != nil:
		return []*unstructured.Unstructured{namespaceOf(s.Namespace)}, nil
	case s.Manifest != nil:
		return j.manifestOf(ctx, s.Manifest)
	case s.Object != nil:
		content, err := j.fill(ctx, s.Object)
		if err != nil {
			return nil, err
		}
		return []*unstructured.Unstructured{{Object: content}}, nil
	}
	return secretOf(s.Secret)
}

func namespaceOf(n *contender.KubeNamespace) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("v1")
	o.SetKind("Namespace")
	o.SetName(n.Name)
	o.SetLabels(n.Labels)
	return o
}

func secretOf(s *contender.Secret) ([]*unstructured.Unstructured, error) {
	value, err := generate(s.Generate)
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", s.Name, err)
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"type": "Opaque",
		"data": map[string]any{s.Key: base64.StdEncoding.EncodeToString([]byte(value))},
	}}
	o.SetAPIVersion("v1")
	o.SetKind("Secret")
	o.SetNamespace(s.Namespace)
	o.SetName(s.Name)
	return []*unstructured.Unstructured{o}, nil
}

// generate makes a key of its own for every installation.
func generate(form string) (string, error) {
	switch form {
	case "psk": // 36 random bytes in base64, as Calico VPP's page has it
		return base64.StdEncoding.EncodeToString(random(36)), nil
	case "cilium-ipsec":
		// Key 3, AES-128 in GCM with 4 bytes of salt and a 128-bit check
		// value, as Cilium's page on IPsec has it (Documentation/security/network/encryption-ipsec.rst).
		return "3 rfc4106(gcm(aes)) " + hex.EncodeToString(random(20)) + " 128", nil
	}
	return "", fmt.Errorf("no generator %q", form)
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails: crypto/rand ends the program instead
	return b
}

// manifestOf reads the manifest and makes the recipe's replacements.
func (j *job) manifestOf(ctx context.Context, m *contender.Manifest) ([]*unstructured.Unstructured, error) {
	expand := func(text string) (string, error) {
		return contender.Expand(text, func(name string) (string, error) { return j.facts.get(ctx, name) })
	}
	address, err := expand(m.URL)
	if err != nil {
		return nil, err
	}
	data, err := j.source.manifest(ctx, address, m.SHA256[j.o.Versions])
	if err != nil {
		return nil, err
	}
	for _, r := range m.Replace {
		text, err := expand(r.New)
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(data, []byte(r.Old)) {
			return nil, fmt.Errorf("%s: the recipe replaces %q, which is not in it", address, r.Old)
		}
		data = bytes.ReplaceAll(data, []byte(r.Old), []byte(text))
	}
	objects, err := parseObjects(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return objects, nil
}

// labelNodes sets labels on "all" nodes, or on those of the "control-plane".
func (j *job) labelNodes(ctx context.Context, which string, labels map[string]string) error {
	names, err := j.facts.nodes(ctx, which)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := j.patchNode(ctx, name, map[string]any{"metadata": map[string]any{"labels": labels}}); err != nil {
			return err
		}
	}
	return nil
}

// unlabelNodes removes the labels that the nodes did not have before.
func (j *job) unlabelNodes(ctx context.Context, l *labelsRecord) error {
	names, err := j.facts.nodes(ctx, l.Nodes)
	if err != nil {
		return err
	}
	for _, name := range names {
		labels := map[string]any{}
		for _, key := range l.Keys {
			if !j.had(markText("label "+key, name)) {
				labels[key] = nil
			}
		}
		if err := j.patchNode(ctx, name, map[string]any{"metadata": map[string]any{"labels": labels}}); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) patchNode(ctx context.Context, name string, patch map[string]any) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return j.patiently(ctx, "change node "+name, func(ctx context.Context) error {
		_, err := j.cl.Client.CoreV1().Nodes().Patch(ctx, name, mergePatch, data, metav1.PatchOptions{FieldManager: manager})
		return err
	})
}

// farewell runs a command in the product's own pods. Pods that are not there
// any more need none.
func (j *job) farewell(ctx context.Context, f *contender.Farewell) error {
	var pods *corev1.PodList
	err := j.patiently(ctx, fmt.Sprintf("list pods %s in %s", f.Selector, f.Namespace), func(ctx context.Context) (err error) {
		pods, err = j.cl.Client.CoreV1().Pods(f.Namespace).List(ctx, metav1.ListOptions{LabelSelector: f.Selector})
		return err
	})
	if err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != "Running" {
			continue
		}
		if err := j.execute(ctx, f, pod.Name); err != nil {
			return fmt.Errorf("%s in pod %s/%s: %w", strings.Join(f.Command, " "), f.Namespace, pod.Name, err)
		}
	}
	return nil
}
