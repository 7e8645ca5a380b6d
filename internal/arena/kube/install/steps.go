package install

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
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
		return j.labelNodes(ctx, s.NodeLabels, false)
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

// gather reads the charts and manifests of all steps, and notes the objects of
// the manifests: taking them off needs no way to where they are published.
func (j *job) gather(ctx context.Context) error {
	j.manifests = map[string][]corev1.ObjectReference{}
	for _, s := range j.c.Kube.StepsOf(j.o.Versions) {
		switch {
		case s.Chart != nil:
			if _, _, err := j.chartOf(ctx, s.Chart); err != nil {
				return err
			}
		case s.Manifest != nil:
			objects, err := j.manifestOf(ctx, s.Manifest)
			if err != nil {
				return err
			}
			for _, o := range objects {
				j.manifests[s.Manifest.URL] = append(j.manifests[s.Manifest.URL], corev1.ObjectReference{
					APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(),
				})
			}
		}
	}
	return nil
}

// made names the objects that a step has made.
func (j *job) made(ctx context.Context, s contender.Step) ([]*unstructured.Unstructured, error) {
	if s.Manifest == nil {
		return j.objects(ctx, s)
	}
	noted, ok := j.manifests[s.Manifest.URL]
	if !ok { // by an older journal
		return j.objects(ctx, s)
	}
	var objects []*unstructured.Unstructured
	for _, r := range noted {
		objects = append(objects, object(r.APIVersion, r.Kind, r.Namespace, r.Name))
	}
	return objects, nil
}

// undo takes back what do did.
func (j *job) undo(ctx context.Context, s contender.Step) error {
	switch {
	case s.Chart != nil:
		return j.removeChart(ctx, s.Chart)
	case s.NodeLabels != nil:
		return j.labelNodes(ctx, s.NodeLabels, true)
	case s.Farewell != nil:
		return j.farewell(ctx, s.Farewell)
	case s.Patch != nil, s.Wait != nil:
		return nil
	}
	objects, err := j.made(ctx, s)
	if err != nil {
		return err
	}
	objects = inOrder(objects)
	for n := len(objects) - 1; n >= 0; n-- {
		if err := j.deleteMade(ctx, objects[n]); err != nil {
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

// labelNodes labels nodes, or takes the labels away that were not there before.
func (j *job) labelNodes(ctx context.Context, l *contender.NodeLabels, away bool) error {
	names, err := j.facts.nodes(ctx, l.Nodes)
	if err != nil {
		return err
	}
	for _, name := range names {
		labels := map[string]any{}
		for key, value := range l.Labels {
			switch {
			case !away:
				labels[key] = value
			case !j.had(markText("label "+key, name)):
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
