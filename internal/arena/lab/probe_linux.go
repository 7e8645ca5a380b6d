package lab

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/ns"
)

// probe is one row of what contenders may ask of a kernel: its name, the
// build option that brings it, and a try.
type probe struct {
	name, summary, option string
	try                   func(p *probing) error
}

// probing is the throw-away namespace in which features are tried.
type probing struct {
	box *ns.NS
	h   *netlink.Handle
	nic netlink.Link // a veth to be the master of other links
}

var probes = []probe{
	{"veth", "virtual Ethernet pairs", "CONFIG_VETH", link(func(a netlink.LinkAttrs, _ int) netlink.Link {
		return &netlink.Veth{LinkAttrs: a, PeerName: "probe-peer"}
	})},
	{"bridge", "Linux bridge", "CONFIG_BRIDGE", link(func(a netlink.LinkAttrs, _ int) netlink.Link { return &netlink.Bridge{LinkAttrs: a} })},
	{"macvlan", "macvlan interfaces", "CONFIG_MACVLAN", link(func(a netlink.LinkAttrs, nic int) netlink.Link {
		a.ParentIndex = nic
		return &netlink.Macvlan{LinkAttrs: a, Mode: netlink.MACVLAN_MODE_BRIDGE}
	})},
	{"ipvlan", "ipvlan interfaces", "CONFIG_IPVLAN", link(func(a netlink.LinkAttrs, nic int) netlink.Link {
		a.ParentIndex = nic
		return &netlink.IPVlan{LinkAttrs: a, Mode: netlink.IPVLAN_MODE_L2}
	})},
	{"vlan", "802.1Q VLANs", "CONFIG_VLAN_8021Q", link(func(a netlink.LinkAttrs, nic int) netlink.Link {
		a.ParentIndex = nic
		return &netlink.Vlan{LinkAttrs: a, VlanId: 7}
	})},
	{"dummy", "dummy interfaces", "CONFIG_DUMMY", link(func(a netlink.LinkAttrs, _ int) netlink.Link { return &netlink.Dummy{LinkAttrs: a} })},
	{"vxlan", "VXLAN (RFC 7348)", "CONFIG_VXLAN", link(func(a netlink.LinkAttrs, nic int) netlink.Link {
		return &netlink.Vxlan{LinkAttrs: a, VxlanId: 1, VtepDevIndex: nic, Port: 4789}
	})},
	{"geneve", "Geneve (RFC 8926)", "CONFIG_GENEVE", link(func(a netlink.LinkAttrs, _ int) netlink.Link {
		return &netlink.Geneve{LinkAttrs: a, ID: 1, Remote: net.IPv4(192, 0, 2, 1)}
	})},
	{"ipip", "IP in IP (RFC 2003)", "CONFIG_NET_IPIP", link(func(a netlink.LinkAttrs, _ int) netlink.Link {
		return &netlink.Iptun{LinkAttrs: a, Local: net.IPv4(192, 0, 2, 2), Remote: net.IPv4(192, 0, 2, 1)}
	})},
	{"gre", "GRE (RFC 2784)", "CONFIG_NET_IPGRE", link(func(a netlink.LinkAttrs, _ int) netlink.Link {
		return &netlink.Gretun{LinkAttrs: a, Local: net.IPv4(192, 0, 2, 2), Remote: net.IPv4(192, 0, 2, 1)}
	})},
	{"wireguard", "WireGuard in the kernel", "CONFIG_WIREGUARD", link(func(a netlink.LinkAttrs, _ int) netlink.Link { return &netlink.Wireguard{LinkAttrs: a} })},
	{"netkit", "netkit devices (Linux 6.7)", "CONFIG_NETKIT", link(func(a netlink.LinkAttrs, _ int) netlink.Link {
		return &netlink.Netkit{LinkAttrs: a, Mode: netlink.NETKIT_MODE_L3}
	})},
	{"tun", "TUN devices", "CONFIG_TUN", tryTun},
	{"esp", "IPsec ESP (RFC 4303)", "CONFIG_INET_ESP", tryESP},
	{"nftables", "nftables", "CONFIG_NF_TABLES", tryNftables},
	{"conntrack", "connection tracking", "CONFIG_NF_CONNTRACK", tryFile("/proc/sys/net/netfilter/nf_conntrack_max")},
	{"br_netfilter", "netfilter on bridges", "CONFIG_BRIDGE_NETFILTER", tryFile("/proc/sys/net/bridge/bridge-nf-call-iptables")},
	{"ipvs", "IP virtual server", "CONFIG_IP_VS", tryFamily("IPVS")},
	{"openvswitch", "Open vSwitch datapath in the kernel", "CONFIG_OPENVSWITCH", tryFamily("ovs_datapath")},
	{"ebpf-tc", "eBPF programs at tc", "CONFIG_NET_CLS_BPF", tryEBPF},
	{"tbf", "token bucket shaper (line rate)", "CONFIG_NET_SCH_TBF", qdisc(func(a netlink.QdiscAttrs) netlink.Qdisc {
		return &netlink.Tbf{QdiscAttrs: a, Rate: 125e6, Limit: 1 << 20, Buffer: netlink.Xmittime(125e6, 1<<17)}
	})},
	{"fq", "fair queue pacing", "CONFIG_NET_SCH_FQ", qdisc(func(a netlink.QdiscAttrs) netlink.Qdisc { return netlink.NewFq(a) })},
	{"netem", "network emulator", "CONFIG_NET_SCH_NETEM", qdisc(func(a netlink.QdiscAttrs) netlink.Qdisc {
		return netlink.NewNetem(a, netlink.NetemQdiscAttrs{Latency: 1})
	})},
}

// Probe tries every feature in a namespace that is thrown away. It needs to
// run inside the lab's container.
func Probe() ([]Feature, error) {
	box, err := ns.New("probe")
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
		f := Feature{Name: row.name, Summary: row.summary, Option: row.option, OK: true}
		if err := row.try(p); err != nil {
			f.OK, f.Error = false, explain(err)
		}
		list = append(list, f)
	}
	return list, nil
}

// explain says in words what the kernel's error number means here.
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

// link tries to make a link, and takes it away.
func link(make func(a netlink.LinkAttrs, nic int) netlink.Link) func(*probing) error {
	return func(p *probing) error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "probe"
		nic := 0
		if p.nic != nil {
			nic = p.nic.Attrs().Index
		}
		l := make(attrs, nic)
		if err := p.h.LinkAdd(l); err != nil {
			return err
		}
		return p.h.LinkDel(l)
	}
}

func qdisc(make func(netlink.QdiscAttrs) netlink.Qdisc) func(*probing) error {
	return func(p *probing) error {
		if p.nic == nil {
			return errors.New("needs veth")
		}
		q := make(netlink.QdiscAttrs{LinkIndex: p.nic.Attrs().Index, Handle: netlink.MakeHandle(7, 0), Parent: netlink.HANDLE_ROOT})
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
	return p.h.XfrmStateAdd(&netlink.XfrmState{
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
