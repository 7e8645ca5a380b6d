package install

import (
	"bytes"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cnibench/cnibench/internal/contender"
)

// manifestStep makes a file's objects.
type manifestStep struct{ *contender.Manifest }

// objects implements creator: it reads the manifest and makes the recipe's replacements.
func (s manifestStep) objects(ctx context.Context, j *job) ([]*unstructured.Unstructured, error) {
	expand := func(text string) (string, error) {
		return contender.Expand(text, func(name string) (string, error) { return j.facts.get(ctx, name) })
	}
	address, err := expand(s.URL)
	if err != nil {
		return nil, err
	}
	data, err := j.source.manifest(ctx, address, s.SHA256[j.o.Versions])
	if err != nil {
		return nil, err
	}
	for _, r := range s.Replace {
		text, err := expand(r.New)
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(data, []byte(r.Old)) {
			return nil, fmt.Errorf("%s: the recipe replaces %q, which the manifest lacks", address, r.Old)
		}
		data = bytes.ReplaceAll(data, []byte(r.Old), []byte(text))
	}
	objects, err := parseObjects(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	j.source.logOnce(address, "%d objects of %s", len(objects), address)
	return objects, nil
}
