//go:build linux

package service

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/text"
)

// The two forms of iptables: the same commands over nftables' or over their
// own kernel interface.
const (
	backendNFT    = "nft"
	backendLegacy = "legacy"
)

// IPTables writes the chains that kube-proxy's iptables mode writes:
// a packet for a Service goes down a list of all of them.
var IPTables = wire.Service{
	Name:    "kube-proxy-iptables",
	Summary: "the chains of kube-proxy's iptables mode: a rule a Service, gone through from the top by the first packet of a connection",
	Params:  []string{"backend"},
	Setup: func(ctx context.Context, f *wire.Fabric, p wire.Params) (wire.Proxy, error) {
		known := []string{backendNFT, backendLegacy}
		backend, err := text.Find("iptables backend", p.Text("backend", backendNFT), known, func(s string) string { return s })
		if err != nil {
			return nil, err
		}
		proxy := &iptablesProxy{backend: backend, written: make([]map[string]bool, len(f.Nodes))}
		err = f.Parallel(ctx, func(ctx context.Context, n *wire.Node) error {
			if err := localNodePorts(n); err != nil {
				return err
			}
			return proxy.restore(ctx, n, []byte(iptablesJumps))
		})
		if err != nil {
			return nil, err
		}
		return proxy, proxy.Sync(ctx, f, nil)
	},
}

type iptablesProxy struct {
	wire.Tracked
	backend string
	written []map[string]bool // by node: the chains of Services that it may have
}

// Sync implements Proxy.
func (x *iptablesProxy) Sync(ctx context.Context, f *wire.Fabric, table []wire.ServicePort) error {
	err := f.Parallel(ctx, func(ctx context.Context, n *wire.Node) error {
		before := x.written[n.Index]
		if len(table) == 0 && x.backend == backendNFT && len(before) > 0 {
			if err := n.Feed(ctx, withoutChains(before), nil, "nft", "-f", "-"); err != nil {
				return err
			}
			before = nil
		}
		text, now := iptablesRules(table, f.PodNetwork, before)
		// A restore that fails may leave the old chains or the new ones.
		x.written[n.Index] = maps.Clone(now)
		maps.Copy(x.written[n.Index], before)
		if err := x.restore(ctx, n, text); err != nil {
			return err
		}
		x.written[n.Index] = now
		return nil
	})
	if err != nil {
		return fmt.Errorf("kube-proxy-iptables: %w", err)
	}
	return nil
}

// withoutChains returns commands for nft that delete the chains. nft is quick;
// iptables-nft-restore would take half as long as it took to write the chains,
// which no step measures. A chain that does not exist is no error.
func withoutChains(chains map[string]bool) []byte {
	var b bytes.Buffer
	names := slices.Sorted(maps.Keys(chains))
	b.WriteString("flush chain ip nat KUBE-SERVICES\n")
	for _, command := range []string{"add", "flush", "delete"} {
		for _, name := range names {
			fmt.Fprintf(&b, "%s chain ip nat %s\n", command, name)
		}
	}
	return b.Bytes()
}

// restore hands rules to iptables-restore as kube-proxy does
// (pkg/util/iptables), which waits for the lock of other programs; nodes share
// a file system in the lab, so each has a lock of its own.
func (x *iptablesProxy) restore(ctx context.Context, n *wire.Node, text []byte) error {
	return n.Feed(ctx, text, []string{"XTABLES_LOCKFILE=" + n.Dir + "/xtables.lock"}, "iptables-"+x.backend+"-restore", "-w", "5", "--noflush", "--counters")
}
