package install

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnibench/cnibench/internal/contender"
)

// patchStep changes an existing object.
type patchStep struct {
	makesNothing
	*contender.Patch
}

func (s patchStep) do(ctx context.Context, j *job) error {
	content, err := j.fill(ctx, s.Patch.Patch)
	if err != nil {
		return err
	}
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	kind := types.MergePatchType
	if s.Strategic {
		kind = types.StrategicMergePatchType
	}
	return j.retry(ctx, fmt.Sprintf("patch %s %s", s.Of.Kind, s.Of.Name), func(ctx context.Context) error {
		r, err := j.resource(schema.FromAPIVersionAndKind(s.Of.APIVersion, s.Of.Kind), s.Of.Namespace)
		if err != nil {
			return err
		}
		_, err = r.Patch(ctx, s.Of.Name, kind, data, metav1.PatchOptions{FieldManager: manager})
		return err
	})
}
