package run

import (
	"context"
	"io"

	"github.com/cnibench/cnibench/internal/arena/kube/install/node"
	"github.com/cnibench/cnibench/internal/arena/kube/onnode"
)

// OnNode is the installer's side on a node of a cluster: it reads a request,
// carries it out and writes the answer.
func OnNode(ctx context.Context, request io.Reader, answer io.Writer) error {
	return node.Run(ctx, request, answer)
}

// ExecOnNode replaces this process by this program with the arguments, in the mount
// namespace of the node that the pod runs on. It returns only with an error.
func ExecOnNode(args ...string) error { return onnode.Exec(args...) }
