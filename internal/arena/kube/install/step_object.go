package install

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cnibench/cnibench/internal/contender"
)

// objectStep makes an object that the recipe contains.
type objectStep struct{ contender.RawObject }

func (s objectStep) objects(ctx context.Context, j *job) ([]*unstructured.Unstructured, error) {
	content, err := j.fill(ctx, s.RawObject)
	return []*unstructured.Unstructured{{Object: content}}, err
}
