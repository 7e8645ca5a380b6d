package lab

import (
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// localType is addresses of the host itself: 1 << RTN_LOCAL (xt_addrtype.h).
const localType = 1 << unix.RTN_LOCAL

// tryIPTables adds a rule with an extension of iptables, as iptables-nft does.
func tryIPTables(p *probing) error {
	c, err := nftables.New(nftables.WithNetNSFd(p.box.FD()))
	if err != nil {
		return err
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "probe-iptables"})
	chain := c.AddChain(&nftables.Chain{Name: "probe", Table: table})
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		&expr.Match{Name: "addrtype", Rev: 1, Info: &xt.AddrTypeV1{Dest: localType}},
	}})
	return c.Flush()
}

func tryIPSet(p *probing) error {
	h, err := netlink.NewHandleAt(netns.NsHandle(p.box.FD()), unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer h.Close()
	const name = "probe"
	if err := h.IpsetCreate(name, "hash:ip", netlink.IpsetCreateOptions{}); err != nil {
		return err
	}
	return h.IpsetDestroy(name)
}
