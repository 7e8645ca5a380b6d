package install

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cnibench/cnibench/internal/contender"
)

// namespaceStep makes a namespace with labels.
type namespaceStep struct{ *contender.KubeNamespace }

func (s namespaceStep) objects(context.Context, *job) ([]*unstructured.Unstructured, error) {
	o := object("v1", "Namespace", "", s.Name)
	o.SetLabels(s.Labels)
	return []*unstructured.Unstructured{o}, nil
}
