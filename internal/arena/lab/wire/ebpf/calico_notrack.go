//go:build linux

package ebpf

import (
	"context"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// calicoBypass is the mark of a packet of a connection that the programs at both ends have
// accepted (bpf/calico.c, MARK_BYPASS).
const calicoBypass = 0x03000000

// CalicoNotrack exempts the packets that a node forwards from the kernel's connection tracking,
// because the programs at tc track them. Its rules are Felix's in the raw table (felix/rules/static.go, StaticBPFModeRawChains, with
// BPFHostConntrackBypass), without those for packets that it masquerades.
var CalicoNotrack = wire.Transport{
	Name:    "ebpf-notrack",
	Summary: "packets that eBPF programs have tracked are not tracked by the kernel (Calico's eBPF dataplane)",
	Setup: func(ctx context.Context, f *wire.Fabric, _ wire.Params) error {
		return f.Parallel(ctx, func(_ context.Context, n *wire.Node) error {
			if err := notrackForwarded(n); err != nil {
				return fmt.Errorf("ebpf-notrack: %w", err)
			}
			return nil
		})
	},
}

func notrackForwarded(n *wire.Node) error {
	c, err := nftables.New(nftables.WithNetNSFd(n.NS.FD()))
	if err != nil {
		return err
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "cnibench-raw"})
	chain := c.AddChain(&nftables.Chain{Name: "prerouting", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRaw})
	for _, rule := range [][]expr.Any{
		{ // Clear the mark, so that the next interface's program treats the packet as new.
			&expr.Meta{Key: expr.MetaKeyMARK, Register: unix.NFT_REG_1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: binaryutil.NativeEndian.PutUint32(calicoBypass)},
			&expr.Immediate{Register: unix.NFT_REG_1, Data: binaryutil.NativeEndian.PutUint32(0)},
			&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: unix.NFT_REG_1},
			&expr.Notrack{},
			&expr.Verdict{Kind: expr.VerdictAccept},
		},
		{
			&expr.Fib{Register: unix.NFT_REG_1, FlagDADDR: true, ResultADDRTYPE: true},
			&expr.Cmp{Op: expr.CmpOpNeq, Register: unix.NFT_REG_1, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)},
			&expr.Notrack{},
		},
	} {
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: rule})
	}
	return c.Flush()
}
