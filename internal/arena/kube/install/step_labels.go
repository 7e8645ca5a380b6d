package install

import (
	"context"
	"maps"
	"slices"

	"github.com/cnibench/cnibench/internal/contender"
)

// labelsStep sets labels on "all" nodes, or on the nodes of the "control-plane".
type labelsStep struct{ *contender.NodeLabels }

func (s labelsStep) gather(context.Context, *job) (*stepRecord, error) {
	return &stepRecord{Labels: &labelsRecord{Nodes: s.Nodes, Keys: slices.Sorted(maps.Keys(s.Labels))}}, nil
}

func (s labelsStep) do(ctx context.Context, j *job) error {
	names, err := j.facts.nodes(ctx, s.Nodes)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := j.patchNode(ctx, name, map[string]any{"metadata": map[string]any{"labels": s.Labels}}); err != nil {
			return err
		}
	}
	return nil
}

// undo removes the labels that the nodes did not have before the installation.
func (l *labelsRecord) undo(ctx context.Context, j *job) error {
	names, err := j.facts.nodes(ctx, l.Nodes)
	if err != nil {
		return err
	}
	for _, name := range names {
		labels := map[string]any{}
		for _, key := range l.Keys {
			if !j.existedBefore(markText("label "+key, name)) {
				labels[key] = nil
			}
		}
		if err := j.patchNode(ctx, name, map[string]any{"metadata": map[string]any{"labels": labels}}); err != nil {
			return err
		}
	}
	return nil
}
