//go:build linux

package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/text"
)

// IPVS has the kernel's virtual server translate packets for Services: a
// look-up in a hash, and a dummy interface that makes their addresses the
// node's own.
var IPVS = wire.Service{
	Name:    "ipvs",
	Summary: "IP virtual server, with the addresses of all Services on a dummy interface",
	Params:  []string{"form"},
	Setup: func(ctx context.Context, f *wire.Fabric, p wire.Params) (wire.Proxy, error) {
		form, err := text.Find("ipvs form", p.Text("form", "kube-router"), ipvsForms(), func(x ipvsForm) string { return x.name })
		if err != nil {
			return nil, err
		}
		proxy := &ipvsProxy{form: form}
		err = f.Parallel(ctx, func(ctx context.Context, n *wire.Node) error { return proxy.prepare(ctx, n, f.PodNetwork) })
		if err != nil {
			return nil, fmt.Errorf("ipvs: %w", err)
		}
		return proxy, proxy.Sync(ctx, f, nil)
	},
}

// ipvsForm says what a product does around IPVS that another does differently.
type ipvsForm struct {
	name   string
	device string
	// up brings the device up and gives each address a route of its own, from
	// which the node's own packets take its address as their source.
	up    bool
	scope netlink.Scope // of the addresses
	// sysctls beside those of both products.
	sysctls []sysctlValue
	sets    string // for ipset restore, once
	// rules are for iptables-restore, once.
	rules func(pods, own netip.Prefix, node netip.Addr) string
	// chains are for iptables-restore with every table of Services; nil has none.
	chains func(table []wire.ServicePort, pods, own netip.Prefix) string
	// members are the sets' elements, for ipset restore.
	members func(table []wire.ServicePort, own netip.Prefix, node netip.Addr) []byte
}

func ipvsForms() []ipvsForm {
	return []ipvsForm{
		{
			name: "kube-router", device: "kube-dummy-if", up: true, scope: unix.RT_SCOPE_LINK,
			// pkg/controllers/proxy/network_services_controller.go, Run
			sysctls: []sysctlValue{
				{"net.ipv4.vs.conn_reuse_mode", "0"}, {"net.ipv4.conf.all.arp_ignore", "1"}, {"net.ipv4.conf.all.arp_announce", "2"},
			},
			sets: kubeRouterSets, rules: kubeRouterRules, members: kubeRouterMembers,
		},
		{
			// No sysctls of its own: NewProxier leaves conn_reuse_mode as it is from Linux 5.9 on, and
			// answers to ARP without strictARP.
			name: "kube-proxy", device: "kube-ipvs0",
			sets: kubeProxySets, rules: func(netip.Prefix, netip.Prefix, netip.Addr) string { return kubeProxyIPVSJumps },
			chains: kubeProxyIPVSChains, members: kubeProxyMembers,
		},
	}
}

type ipvsProxy struct {
	wire.Tracked // the virtual server forgets its connections with their Service: expire_nodest_conn
	form         ipvsForm
}

// sysctlValue is a sysctl of a node.
type sysctlValue struct{ key, value string }

// ipvsSysctls are those that both products set (kube-router
// pkg/controllers/proxy/network_services_controller.go, Run; kube-proxy
// pkg/proxy/ipvs/proxier.go, NewProxier).
var ipvsSysctls = []sysctlValue{
	{"net.ipv4.vs.conntrack", "1"}, {"net.ipv4.vs.expire_nodest_conn", "1"}, {"net.ipv4.vs.expire_quiescent_template", "1"},
}

// prepare sets up a node that has no Services yet.
func (x *ipvsProxy) prepare(ctx context.Context, n *wire.Node, pods netip.Prefix) error {
	if err := n.Feed(ctx, nil, nil, "ipvsadm", "-C"); err != nil { // loads the module, without which there are no sysctls
		return err
	}
	for _, s := range slices.Concat(ipvsSysctls, x.form.sysctls) {
		if err := n.NS.SetSysctl(s.key, s.value); err != nil {
			return err
		}
	}
	if err := n.Feed(ctx, []byte(x.form.sets), nil, "ipset", "restore"); err != nil {
		return err
	}
	return x.restore(ctx, n, x.form.rules(pods, n.PodCIDR, n.Addr.Addr()))
}

func (x *ipvsProxy) restore(ctx context.Context, n *wire.Node, rules string) error {
	return (&iptablesProxy{backend: backendNFT}).restore(ctx, n, []byte(rules))
}

// Sync implements Proxy.
func (x *ipvsProxy) Sync(ctx context.Context, f *wire.Fabric, table []wire.ServicePort) error {
	err := f.Parallel(ctx, func(ctx context.Context, n *wire.Node) error {
		if err := n.Feed(ctx, nil, nil, "ipvsadm", "-C"); err != nil {
			return err
		}
		if err := x.addresses(n, table); err != nil {
			return err
		}
		if err := n.Feed(ctx, ipvsServers(table), nil, "ipvsadm", "-R"); err != nil {
			return err
		}
		if err := n.Feed(ctx, x.form.members(table, n.PodCIDR, n.Addr.Addr()), nil, "ipset", "restore"); err != nil {
			return err
		}
		if x.form.chains == nil {
			return nil
		}
		return x.restore(ctx, n, x.form.chains(table, f.PodNetwork, n.PodCIDR))
	})
	if err != nil {
		return fmt.Errorf("ipvs: %w", err)
	}
	return nil
}

// addresses replaces the dummy interface by one with the Services' addresses.
func (x *ipvsProxy) addresses(n *wire.Node, table []wire.ServicePort) error {
	return n.OnUplink(func(n *wire.Node, h *netlink.Handle, _ netlink.Link) error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = x.form.device
		if old, err := h.LinkByName(attrs.Name); err == nil {
			if err := h.LinkDel(old); err != nil {
				return fmt.Errorf("%s: %w", attrs.Name, err)
			}
		}
		device := &netlink.Dummy{LinkAttrs: attrs}
		if err := h.LinkAdd(device); err != nil {
			return fmt.Errorf("%s: %w", attrs.Name, err)
		}
		if x.form.up {
			if err := h.LinkSetUp(device); err != nil {
				return fmt.Errorf("%s: %w", attrs.Name, err)
			}
		}
		for _, addr := range addressesOf(table) {
			single := wire.IPNet(netip.PrefixFrom(addr, addr.BitLen()))
			if err := h.AddrAdd(device, &netlink.Addr{IPNet: single, Scope: int(x.form.scope)}); err != nil {
				return fmt.Errorf("%s: address %s: %w", attrs.Name, addr, err)
			}
			if !x.form.up {
				continue
			}
			err := h.RouteReplace(&netlink.Route{
				LinkIndex: device.Index, Dst: single, Src: n.Addr.Addr().AsSlice(),
				Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL, Scope: unix.RT_SCOPE_HOST, Protocol: unix.RTPROT_KERNEL,
			})
			if err != nil && !errors.Is(err, unix.EEXIST) {
				return fmt.Errorf("%s: route to %s: %w", attrs.Name, addr, err)
			}
		}
		return nil
	})
}

// addressesOf returns the Services' addresses, each once, in the table's order.
func addressesOf(table []wire.ServicePort) []netip.Addr {
	var list []netip.Addr
	seen := map[netip.Addr]bool{}
	for i := range table {
		if addr := table[i].ClusterIP; !seen[addr] {
			seen[addr] = true
			list = append(list, addr)
		}
	}
	return list
}

// ipvsServers returns what `ipvsadm -R` reads: round robin among the pods, with
// their addresses put in place of the Service's.
func ipvsServers(table []wire.ServicePort) []byte {
	var b bytes.Buffer
	for i := range table {
		s := &table[i]
		at := fmt.Sprintf("-%c %s:%d", strings.ToLower(s.Protocol)[0], s.ClusterIP, s.Port)
		fmt.Fprintf(&b, "-A %s -s rr\n", at)
		for _, backend := range s.Backends {
			fmt.Fprintf(&b, "-a %s -r %s -m -w 1\n", at, backend)
		}
	}
	return b.Bytes()
}

// local returns the backends that the node itself has, as ip,port,ip of a pod that
// talks to itself.
func local(table []wire.ServicePort, own netip.Prefix) []string {
	var list []string
	for i := range table {
		for _, backend := range table[i].Backends {
			if own.Contains(backend.Addr()) {
				list = append(list, fmt.Sprintf("%s,%s:%d,%s", backend.Addr(), strings.ToLower(table[i].Protocol), backend.Port(), backend.Addr()))
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
