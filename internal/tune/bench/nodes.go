package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/tune"
)

// Nodes is a cluster whose nodes have settings while a variant is up. They are set on the
// nodes themselves, through the journal of `cnibench tune apply` there; pods have network
// namespaces of their own, which stay as they are. The endpoints of nodes must be
// privileged pods with the node's processes (kube.Options.OnNodes).
type Nodes struct {
	arena.Arena
	exe      string                  // this program, as the endpoints start it
	by       string                  // this bench's name in the nodes' journals
	of       *contender.Contender    // of which the variants are
	variants map[string]tune.Variant // by id; others come up as they are
}

// OnNodes returns the cluster with those variants of the contender.
func OnNodes(a arena.Arena, exe string, of *contender.Contender, variants map[string]tune.Variant) *Nodes {
	return &Nodes{Arena: a, exe: exe, by: "bench-" + rand.Text(), of: of, variants: variants}
}

// Up implements arena.Arena.
func (b *Nodes) Up(ctx context.Context, c *contender.Contender, variant string) (arena.Network, error) {
	v, tuned := b.variants[c.ID]
	if tuned {
		c = b.of
	}
	inner, err := b.Arena.Up(ctx, c, variant)
	if err != nil || !tuned {
		return inner, err
	}
	n := &nodesNetwork{visited: newVisited(inner), exe: b.exe, by: b.by}
	for _, e := range inner.Nodes() {
		n.set = append(n.set, e) // also where the answer is lost
		a, err := ask(ctx, e, v.Request, n.nodeCommand()...)
		if err != nil {
			return nil, errors.Join(err, n.Down(context.WithoutCancel(ctx)))
		}
		n.note(v.Names(), a)
	}
	return n, nil
}

// nodesNetwork is a contender of a cluster that is up, with the settings of its nodes.
type nodesNetwork struct {
	visited
	exe string
	by  string // the bench's name in the nodes' journals
	set []arena.Endpoint
}

// nodeCommand is the command on a node.
func (n *nodesNetwork) nodeCommand(args ...string) []string {
	return append([]string{n.exe, "agent", "on-node", "--", "tune", "here", "--node", "--by=" + n.by}, args...)
}

// takeBack waits for a program of the same node that was ended and still holds the journal.
func (n *nodesNetwork) takeBack(ctx context.Context, e arena.Endpoint) error {
	for try := 1; ; try++ {
		_, err := ask(ctx, e, tune.Request{}, n.nodeCommand("--take-back")...)
		if err == nil || !strings.Contains(err.Error(), tune.ErrBusy.Error()) || try == maxTries {
			return err
		}
		time.Sleep(time.Second)
	}
}

// maxTries is how often a node is asked to take settings back.
const maxTries = 10

// Down implements arena.Network. The nodes' pods, which go, take the settings back first.
func (n *nodesNetwork) Down(ctx context.Context) error {
	var errs []error
	for _, e := range n.set {
		if err := n.takeBack(ctx, e); err != nil {
			errs = append(errs, fmt.Errorf("%w; settings may still be applied there: `cnibench tune status --arena kube --privileged`, and revert", err))
		}
	}
	n.set = nil
	return errors.Join(append(errs, n.Network.Down(ctx))...)
}
