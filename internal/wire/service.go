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

// What the Service mechanisms of kube-proxy and its kind have in common: every
// node is programmed by itself, all of them at once.

// parallel runs fn for every node at once, as every node's own kube-proxy
// does, and waits for all.
func (f *Fabric) parallel(ctx context.Context, fn func(ctx context.Context, n *Node) error) error {
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

// feed runs a program of the node with text on its standard input.
func (n *Node) feed(ctx context.Context, text []byte, env []string, argv ...string) error {
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

// tracked is a Proxy's part of Forgetter where the kernel's connection
// tracking is all that remembers connections. Between two sets of Services
// forgetting keeps a flow of the first from the second (kube-proxy deletes
// those of UDP, pkg/proxy/conntrack).
type tracked struct{}

// Forget implements Forgetter.
func (tracked) Forget(ctx context.Context, f *Fabric) error {
	return f.parallel(ctx, func(_ context.Context, n *Node) error { return forgetConnections(n) })
}

// forgetConnections empties the node's table of connections.
func forgetConnections(n *Node) error {
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

// localNodePorts lets packets for 127.0.0.0/8 be routed, as kube-proxy does for
// NodePorts on localhost (sysctlRouteLocalnet).
func localNodePorts(n *Node) error { return n.NS.SetSysctl("net.ipv4.conf.all.route_localnet", "1") }
