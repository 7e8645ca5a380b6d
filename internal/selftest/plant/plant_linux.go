package plant

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/unit"
)

// Plant plants the fault in this process's network namespace, at the link that has the
// address where the fault is one of a link.
func Plant(f Fault, at netip.Addr, rate unit.BitRate) error {
	link, err := linkOf(at)
	if err != nil {
		return fmt.Errorf("plant %s: %w", f, err)
	}
	switch f {
	case Capped:
		err = limit(link, rate, 128<<10) // two frames as large as segmentation offload makes them
	case Delayed:
		err = limit(link, delayRate, delayBurst)
	case Narrow:
		err = netlink.LinkSetMTU(link, NarrowMTU)
	case Lossy:
		err = filter([][]expr.Any{dropSome()})
	case Slow:
		var many [][]expr.Any
		for i := range Rules {
			many = append(many, passes(i))
		}
		err = filter(many)
	default:
		err = fmt.Errorf("there are %s, %s, %s, %s and %s", Capped, Lossy, Slow, Delayed, Narrow)
	}
	if err != nil {
		return fmt.Errorf("plant %s: %w", f, err)
	}
	return nil
}

// linkOf is the link that has the address.
func linkOf(at netip.Addr) (netlink.Link, error) {
	addrs, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if ip, ok := netip.AddrFromSlice(a.IP); ok && ip.Unmap() == at.Unmap() {
			return netlink.LinkByIndex(a.LinkIndex)
		}
	}
	return nil, fmt.Errorf("no link here has the address %v", at)
}

// limit gives the link a token bucket, in which a frame waits 10 ms at most.
func limit(link netlink.Link, rate unit.BitRate, burst uint32) error {
	bytesPerSecond := uint64(float64(rate) / 8)
	return netlink.QdiscReplace(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       bytesPerSecond,
		Limit:      burst + uint32(bytesPerSecond/100),
		Buffer:     netlink.Xmittime(bytesPerSecond, burst),
	})
}

// filter has what comes in pass the rules.
func filter(rules [][]expr.Any) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "cnibench-planted"})
	chain := c.AddChain(&nftables.Chain{Name: "in", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityFilter})
	for i, exprs := range rules {
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: exprs})
		if i%100 == 99 { // what a socket's buffer takes at a time
			if err := c.Flush(); err != nil {
				return err
			}
		}
	}
	return c.Flush()
}

// drop ends a rule that matches.
var drop = &expr.Verdict{Kind: expr.VerdictDrop}

// dropSome drops one of 1/Loss UDP packets to LossyPort, by count: a share drawn at
// random would differ by a quarter where a window has few packets.
func dropSome() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: unix.NFT_REG_1},
		&expr.Cmp{Register: unix.NFT_REG_1, Op: expr.CmpOpEq, Data: []byte{unix.IPPROTO_UDP}},
		&expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2}, // destination port
		&expr.Cmp{Register: unix.NFT_REG_1, Op: expr.CmpOpEq, Data: binary.BigEndian.AppendUint16(nil, LossyPort)},
		&expr.Numgen{Register: unix.NFT_REG_1, Modulus: uint32(1 / Loss), Type: unix.NFT_NG_INCREMENTAL},
		&expr.Cmp{Register: unix.NFT_REG_1, Op: expr.CmpOpEq, Data: []byte{0, 0, 0, 0}},
		drop,
	}
}

// passes matches nothing: packets from one of the addresses that are kept for
// documentation.
func passes(i int) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: unix.NFT_REG_1},
		&expr.Cmp{Register: unix.NFT_REG_1, Op: expr.CmpOpNeq, Data: []byte{0}},
		&expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseNetworkHeader, Offset: 12, Len: 4}, // IPv4: source
		&expr.Cmp{Register: unix.NFT_REG_1, Op: expr.CmpOpEq, Data: []byte{192, 0, 2, byte(1 + i%250)}},
		drop,
	}
}
