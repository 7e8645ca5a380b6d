//go:build linux

package ovs

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// TunnelNotrack exempts the packets of a UDP tunnel from connection tracking, and so from the
// NAT tables. Antrea does this by rules in the raw table, Kube-OVN by its FastPath module.
var TunnelNotrack = wire.Transport{
	Name:    "tunnel-notrack",
	Summary: "packets of the tunnel are not tracked (raw table, NOTRACK)",
	Params:  []string{"port"},
	Setup: func(ctx context.Context, f *wire.Fabric, p wire.Params) error {
		return f.Parallel(ctx, func(_ context.Context, n *wire.Node) error {
			if err := notrackUDP(n, uint16(p.Int("port", 6081))); err != nil {
				return fmt.Errorf("tunnel-notrack: %w", err)
			}
			return nil
		})
	},
}

func notrackUDP(n *wire.Node, port uint16) error {
	c, err := nftables.New(nftables.WithNetNSFd(n.NS.FD()))
	if err != nil {
		return err
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "cnibench-raw"})
	for name, hook := range map[string]*nftables.ChainHook{"prerouting": nftables.ChainHookPrerouting, "output": nftables.ChainHookOutput} {
		chain := c.AddChain(&nftables.Chain{Name: name, Table: table, Type: nftables.ChainTypeFilter, Hooknum: hook, Priority: nftables.ChainPriorityRaw})
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
			&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: unix.NFT_REG_1},
			&expr.Cmp{Register: unix.NFT_REG_1, Op: expr.CmpOpEq, Data: []byte{unix.IPPROTO_UDP}},
			&expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2}, // destination port
			&expr.Cmp{Register: unix.NFT_REG_1, Op: expr.CmpOpEq, Data: binary.BigEndian.AppendUint16(nil, port)},
			&expr.Notrack{},
		}})
	}
	return c.Flush()
}
