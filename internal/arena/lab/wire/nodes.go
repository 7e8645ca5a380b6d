//go:build linux

package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/host"
)

// Parallel runs fn for all nodes at once and waits for all, as the agents of a
// cluster's nodes work at the same time.
func (f *Fabric) Parallel(ctx context.Context, fn func(ctx context.Context, n *Node) error) error {
	errs := make([]error, len(f.Nodes))
	var all sync.WaitGroup
	for i, n := range f.Nodes {
		all.Go(func() {
			if err := fn(ctx, n); err != nil {
				errs[i] = fmt.Errorf("%s: %w", n.Name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Feed runs a program of the node with text on its standard input.
func (n *Node) Feed(ctx context.Context, text []byte, env []string, argv ...string) error {
	p, err := n.Run.Start(ctx, host.Command{Argv: argv, Env: env, Stdin: bytes.NewReader(text)})
	if err != nil {
		return err
	}
	if err := p.Wait(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", argv[0], ctx.Err())
		}
		return err
	}
	return nil
}

// Tracked implements Forget for a Proxy whose connections only the kernel's
// connection tracking remembers. Without it a flow to a Service of one set would
// still go to its old pod after the next Sync (kube-proxy deletes such flows of
// UDP, pkg/proxy/conntrack).
type Tracked struct{}

// Forget implements Proxy.
func (Tracked) Forget(ctx context.Context, f *Fabric) error {
	return f.Parallel(ctx, func(_ context.Context, n *Node) error { return ForgetConnections(n) })
}

// ForgetConnections empties the node's table of connections.
func ForgetConnections(n *Node) error {
	h, err := netlink.NewHandleAt(netns.NsHandle(n.NS.FD()), unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.ConntrackTableFlush(netlink.ConntrackTable); err != nil {
		return fmt.Errorf("forget connections: %w", err)
	}
	return nil
}
