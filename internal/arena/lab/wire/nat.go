//go:build linux

package wire

import (
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// SourceNAT adds one rule for what leaves the node, in a table of its own.
func SourceNAT(n *Node, table string, rule []expr.Any) error {
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

// Offsets of the addresses in the IPv4 header (RFC 791).
const SourceAddr, DestinationAddr = 12, 16

// MatchAddr returns the expressions that compare the address at that offset of
// the IPv4 header with the prefix.
func MatchAddr(offset uint32, p netip.Prefix, op expr.CmpOp) []expr.Any {
	subnet := IPNet(p.Masked())
	return []expr.Any{
		&expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4},
		&expr.Bitwise{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, Len: 4, Mask: subnet.Mask, Xor: []byte{0, 0, 0, 0}},
		&expr.Cmp{Register: unix.NFT_REG_1, Op: op, Data: subnet.IP},
	}
}
