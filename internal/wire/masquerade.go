//go:build linux

package wire

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// masquerade hides pods that talk to the world outside the pod network behind
// their node's address. Traffic between pods is left alone, yet every packet
// that a node forwards is tracked from then on (nf_conntrack), as on every
// node of a real cluster.
var masquerade = Transport{
	Name:    "masquerade",
	Summary: "pods leave the pod network under their node's address; turns connection tracking on (flannel --ip-masq, Calico natOutgoing)",
	Setup: func(ctx context.Context, f *Fabric, _ Params) error {
		for _, n := range f.Nodes {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := masqueradeNode(n, f.PodNetwork); err != nil {
				return fmt.Errorf("%s: masquerade: %w", n.Name, err)
			}
		}
		return nil
	},
}

func masqueradeNode(n *Node, pods netip.Prefix) error {
	exprs := append(matchAddr(saddr, pods, expr.CmpOpEq), matchAddr(daddr, pods, expr.CmpOpNeq)...)
	// flannel leaves multicast alone (pkg/iptables/iptables.go).
	exprs = append(exprs, matchAddr(daddr, netip.MustParsePrefix("224.0.0.0/4"), expr.CmpOpNeq)...)
	return sourceNAT(n, "cnibench", append(exprs, &expr.Masq{FullyRandom: true}))
}

// sourceNAT adds one rule for what leaves the node, in a table of its own.
func sourceNAT(n *Node, table string, rule []expr.Any) error {
	c, err := nftables.New(nftables.WithNetNSFd(n.NS.FD()))
	if err != nil {
		return err
	}
	t := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: table})
	chain := c.AddChain(&nftables.Chain{
		Name: "postrouting", Table: t, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
	})
	c.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: rule})
	return c.Flush()
}

const saddr, daddr = 12, 16 // offsets of the addresses in the IPv4 header (RFC 791)

// matchAddr compares the address at that offset of the IPv4 header with the
// prefix.
func matchAddr(offset uint32, p netip.Prefix, op expr.CmpOp) []expr.Any {
	net := ipNet(p.Masked())
	return []expr.Any{
		&expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4},
		&expr.Bitwise{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, Len: 4, Mask: net.Mask, Xor: []byte{0, 0, 0, 0}},
		&expr.Cmp{Register: unix.NFT_REG_1, Op: op, Data: net.IP},
	}
}
