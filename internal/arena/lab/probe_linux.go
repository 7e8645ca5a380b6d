package lab

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/linux"
)

// probe is a kernel feature that contenders may require: its name, the build
// option that adds it to a kernel, and a function that tries it.
type probe struct {
	name, summary, option string
	try                   func(p *probing) error
	// module is a kernel module that makes devices in the machine's own namespace
	// when it is loaded (tunl0, gre0, dummy0). A try would load it. If the module is
	// on the disk and not loaded, the feature therefore counts without a try.
	module string
}

// probing is the throw-away namespace in which features are tried.
type probing struct {
	box *linux.NetNS
	h   *netlink.Handle
	nic netlink.Link // a veth, the parent of other links; nil if it could not be made
}

var probes = []probe{
	{name: "veth", summary: "virtual Ethernet pairs", option: "CONFIG_VETH", try: link(func(a netlink.LinkAttrs, _ int) netlink.Link {
		return &netlink.Veth{LinkAttrs: a, PeerName: "probe-peer"}
	})},
	{name: "bridge", summary: "Linux bridge", option: "CONFIG_BRIDGE", try: link(func(a netlink.LinkAttrs, _ int) netlink.Link { return &netlink.Bridge{LinkAttrs: a} })},
	{name: "macvlan", summary: "macvlan interfaces", option: "CONFIG_MACVLAN", try: link(func(a netlink.LinkAttrs, nic int) netlink.Link {
		a.ParentIndex = nic
		return &netlink.Macvlan{LinkAttrs: a, Mode: netlink.MACVLAN_MODE_BRIDGE}
	})},
	{name: "ipvlan", summary: "ipvlan interfaces", option: "CONFIG_IPVLAN", try: link(func(a netlink.LinkAttrs, nic int) netlink.Link {
		a.ParentIndex = nic
		return &netlink.IPVlan{LinkAttrs: a, Mode: netlink.IPVLAN_MODE_L2}
	})},
	{name: "vlan", summary: "802.1Q VLANs", option: "CONFIG_VLAN_8021Q", try: link(func(a netlink.LinkAttrs, nic int) netlink.Link {
		a.ParentIndex = nic
		return &netlink.Vlan{LinkAttrs: a, VlanId: 7}
	})},
	{name: "dummy", summary: "dummy interfaces", option: "CONFIG_DUMMY", try: link(func(a netlink.LinkAttrs, _ int) netlink.Link { return &netlink.Dummy{LinkAttrs: a} }), module: "dummy"},
	{name: "vxlan", summary: "VXLAN (RFC 7348)", option: "CONFIG_VXLAN", try: link(func(a netlink.LinkAttrs, nic int) netlink.Link {
		return &netlink.Vxlan{LinkAttrs: a, VxlanId: 1, VtepDevIndex: nic, Port: 4789}
	})},
	{name: "geneve", summary: "Geneve (RFC 8926)", option: "CONFIG_GENEVE", try: link(func(a netlink.LinkAttrs, _ int) netlink.Link {
		return &netlink.Geneve{LinkAttrs: a, ID: 1, Remote: net.IPv4(192, 0, 2, 1)}
	})},
	{name: "ipip", summary: "IP in IP (RFC 2003)", option: "CONFIG_NET_IPIP", try: link(func(a netlink.LinkAttrs, _ int) netlink.Link {
		return &netlink.Iptun{LinkAttrs: a, Local: net.IPv4(192, 0, 2, 2), Remote: net.IPv4(192, 0, 2, 1)}
	}), module: "ipip"},
	{name: "gre", summary: "GRE (RFC 2784)", option: "CONFIG_NET_IPGRE", try: link(func(a netlink.LinkAttrs, _ int) netlink.Link {
		return &netlink.Gretun{LinkAttrs: a, Local: net.IPv4(192, 0, 2, 2), Remote: net.IPv4(192, 0, 2, 1)}
	}), module: "ip_gre"},
	{name: "wireguard", summary: "WireGuard in the kernel", option: "CONFIG_WIREGUARD", try: link(func(a netlink.LinkAttrs, _ int) netlink.Link { return &netlink.Wireguard{LinkAttrs: a} })},
	{name: "netkit", summary: "netkit devices (Linux 6.7)", option: "CONFIG_NETKIT", try: link(func(a netlink.LinkAttrs, _ int) netlink.Link {
		return &netlink.Netkit{LinkAttrs: a, Mode: netlink.NETKIT_MODE_L3}
	})},
	{name: "tun", summary: "TUN devices", option: "CONFIG_TUN", try: tryTun},
	{name: "esp", summary: "IPsec ESP (RFC 4303)", option: "CONFIG_INET_ESP", try: tryESP},
	{name: "nftables", summary: "nftables", option: "CONFIG_NF_TABLES", try: tryNftables},
	{name: "iptables", summary: "iptables over nftables, and its extensions", option: "CONFIG_NFT_COMPAT", try: tryIPTables},
	{name: "iptables-legacy", summary: "iptables by its older kernel interface", option: "CONFIG_IP_NF_IPTABLES_LEGACY", try: tryFile("/proc/thread-self/net/ip_tables_names"), module: "ip_tables"},
	{name: "ipset", summary: "sets of addresses for iptables", option: "CONFIG_IP_SET", try: tryIPSet},
	{name: "conntrack", summary: "connection tracking", option: "CONFIG_NF_CONNTRACK", try: tryFile("/proc/sys/net/netfilter/nf_conntrack_max")},
	{name: "br_netfilter", summary: "netfilter on bridges", option: "CONFIG_BRIDGE_NETFILTER", try: tryFile("/proc/sys/net/bridge/bridge-nf-call-iptables")},
	{name: "ipvs", summary: "IP virtual server", option: "CONFIG_IP_VS", try: tryFamily("IPVS")},
	{name: "openvswitch", summary: "Open vSwitch datapath in the kernel", option: "CONFIG_OPENVSWITCH", try: tryFamily("ovs_datapath")},
	{name: "ebpf-tc", summary: "eBPF programs at tc", option: "CONFIG_NET_CLS_BPF", try: tryEBPF},
	{name: "ebpf-sock", summary: "eBPF programs at connect() in control groups v2", option: "CONFIG_CGROUP_BPF", try: trySocketEBPF},
	{name: "tbf", summary: "token bucket shaper (line rate)", option: "CONFIG_NET_SCH_TBF", try: qdisc(func(a netlink.QdiscAttrs) netlink.Qdisc {
		return &netlink.Tbf{QdiscAttrs: a, Rate: 125e6, Limit: 1 << 20, Buffer: netlink.Xmittime(125e6, 1<<17)}
	})},
	{name: "fq", summary: "fair queue pacing", option: "CONFIG_NET_SCH_FQ", try: qdisc(func(a netlink.QdiscAttrs) netlink.Qdisc { return netlink.NewFq(a) })},
	{name: "netem", summary: "network emulator", option: "CONFIG_NET_SCH_NETEM", try: qdisc(func(a netlink.QdiscAttrs) netlink.Qdisc {
		return netlink.NewNetem(a, netlink.NetemQdiscAttrs{Latency: 1})
	})},
}

// Probe tries the named features, without names all features, in a namespace that
// is removed afterwards. It must run inside the lab's container.
func Probe(names ...string) ([]Feature, error) {
	box, err := linux.NewNetNS("probe")
	if err != nil {
		return nil, err
	}
	defer box.Close()
	h, err := box.Netlink()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	p := &probing{box: box, h: h}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "probe-nic"
	if err := h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "probe-nic2"}); err == nil {
		p.nic, _ = h.LinkByName(attrs.Name)
	}
	list := make([]Feature, 0, len(probes))
	for _, row := range probes {
		if len(names) > 0 && !slices.Contains(names, row.name) {
			continue
		}
		list = append(list, row.feature(p))
	}
	return list, nil
}

func (row probe) feature(p *probing) Feature {
	f := Feature{Name: row.name, Summary: row.summary, Option: row.option, OK: true}
	if row.module != "" && loadable(row.module) {
		f.Note = "module " + row.module + ", not loaded"
		return f
	}
	if err := row.try(p); err != nil {
		f.OK, f.Error = false, explain(err)
		f.Denied = errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)
	}
	return f
}

// loadable reports whether the module is on the disk and not loaded.
func loadable(module string) bool {
	if _, err := os.Stat("/sys/module/" + module); err == nil {
		return false
	}
	deps, err := os.ReadFile("/lib/modules/" + KernelRelease() + "/modules.dep")
	return err == nil && bytes.Contains(deps, []byte("/"+module+".ko"))
}

// explain returns what the kernel's error number means for a feature.
func explain(err error) string {
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return "not supported"
	case errors.Is(err, unix.ENODEV), errors.Is(err, os.ErrNotExist), errors.Is(err, unix.EPROTONOSUPPORT):
		return "not built in, and no module"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return "not permitted"
	}
	return err.Error()
}

// link returns a function that makes the link and removes it.
func link(newLink func(a netlink.LinkAttrs, nic int) netlink.Link) func(*probing) error {
	return func(p *probing) error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "probe"
		nic := 0
		if p.nic != nil {
			nic = p.nic.Attrs().Index
		}
		l := newLink(attrs, nic)
		if err := p.h.LinkAdd(l); err != nil {
			return err
		}
		return p.h.LinkDel(l)
	}
}

func qdisc(newQdisc func(netlink.QdiscAttrs) netlink.Qdisc) func(*probing) error {
	return func(p *probing) error {
		if p.nic == nil {
			return errors.New("needs veth")
		}
		q := newQdisc(netlink.QdiscAttrs{LinkIndex: p.nic.Attrs().Index, Handle: netlink.MakeHandle(7, 0), Parent: netlink.HANDLE_ROOT})
		if err := p.h.QdiscAdd(q); err != nil {
			return err
		}
		return p.h.QdiscDel(q)
	}
}

func tryFile(path string) func(*probing) error {
	return func(p *probing) error {
		return p.box.Do(func() error { _, err := os.Stat(path); return err })
	}
}

func tryFamily(name string) func(*probing) error {
	return func(p *probing) error {
		return p.box.Do(func() error { _, err := netlink.GenlFamilyGet(name); return err })
	}
}

func tryTun(p *probing) error {
	return p.box.Do(func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		req, err := unix.NewIfreq("probe")
		if err != nil {
			return err
		}
		req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		return unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	})
}

func tryESP(p *probing) error {
	h, err := netlink.NewHandleAt(netns.NsHandle(p.box.FD()), unix.NETLINK_XFRM)
	if err != nil {
		return err
	}
	defer h.Close()
	return h.XfrmStateAdd(&netlink.XfrmState{
		Src: net.IPv4(192, 0, 2, 2), Dst: net.IPv4(192, 0, 2, 1), Proto: netlink.XFRM_PROTO_ESP, Mode: netlink.XFRM_MODE_TUNNEL, Spi: 7,
		Aead: &netlink.XfrmStateAlgo{Name: "rfc4106(gcm(aes))", Key: make([]byte, 20), ICVLen: 128},
	})
}

func tryNftables(p *probing) error {
	c, err := nftables.New(nftables.WithNetNSFd(p.box.FD()))
	if err != nil {
		return err
	}
	c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "probe"})
	return c.Flush()
}

func tryEBPF(p *probing) error {
	if err := features.HaveProgramType(ebpf.SchedCLS); err != nil {
		return fmt.Errorf("eBPF programs: %w", err)
	}
	return qdisc(func(a netlink.QdiscAttrs) netlink.Qdisc {
		a.Handle, a.Parent = netlink.MakeHandle(0xffff, 0), netlink.HANDLE_CLSACT
		return &netlink.GenericQdisc{QdiscAttrs: a, QdiscType: "clsact"}
	})(p)
}

func trySocketEBPF(*probing) error {
	if err := features.HaveProgramType(ebpf.CGroupSockAddr); err != nil {
		return fmt.Errorf("eBPF programs at sockets: %w", err)
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	if !bytes.Contains(append([]byte("\n"), groups...), []byte("\n0::")) {
		return errors.New("no control groups v2")
	}
	return nil
}

// localType matches the host's own addresses (xt_addrtype.h).
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
