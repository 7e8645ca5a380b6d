package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/cli/exit"
)

// NodeAnswer is the output of this program on a node of the cluster, and how it ended.
type NodeAnswer = kube.OnMachine

// OnNodes runs this program with the arguments on the nodes of the request, in one
// privileged pod each, and hands the answers to show. An error of an interruption
// ends with next, which says what the user can do.
func OnNodes(ctx context.Context, f *Request, args []string, next string, show func([]NodeAnswer) error) error {
	cluster, err := newCluster(f)
	if err != nil {
		return err
	}
	ctx, stop := untilEndedInCluster(ctx)
	defer stop()
	machines, err := kube.OpenMachines(ctx, cluster.Options)
	switch {
	case err != nil && ctx.Err() != nil:
		return exit.With(exit.Failed, fmt.Errorf("interrupted before anything ran on a node, so that nothing is changed there: %w; begin again with the same command", err))
	case err != nil:
		return KubeError(err)
	}
	answers := machines.Run(ctx, args...)
	// First show: the removal of the pods takes a moment and may fail.
	err = errors.Join(show(answers), machines.Close(context.WithoutCancel(ctx)))
	if ctx.Err() != nil {
		err = exit.With(exit.Failed, errors.Join(err, errors.New("interrupted; "+next)))
	}
	return err
}
