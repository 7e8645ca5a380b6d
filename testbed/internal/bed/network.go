//go:build linux

package bed

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const bridgeName = "nodes"

// controlNetwork makes the bridge of the nodes in this, the control plane's,
// network namespace.
func controlNetwork() error {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("control plane: lo: %w", err)
	}
	// Without one of its own it would take that of a node.
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridgeName, HardwareAddr: hardwareAddr(controlAddr)}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("control plane: bridge: %w", err)
	}
	if err := netlink.AddrAdd(bridge, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(controlAddr, nodePrefix.Bits()))}); err != nil {
		return fmt.Errorf("control plane: address %s: %w", controlAddr, err)
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("control plane: bridge: %w", err)
	}
	return sysctls(map[string]string{"net/ipv4/ip_forward": "1"})
}

// connectNode gives the network namespace of the process two links on the bridge: eth0
// with the node's address and a default route, and an eth1 that is down, for products
// that want a device of their own.
func connectNode(n Node, pid int) error {
	for _, l := range []netlink.Veth{
		{LinkAttrs: netlink.LinkAttrs{Name: n.Name}, PeerName: "eth0", PeerHardwareAddr: hardwareAddr(n.Addr)},
		{LinkAttrs: netlink.LinkAttrs{Name: n.Name + SecondLink}, PeerName: "eth1"},
	} {
		l.PeerNamespace = netlink.NsPid(pid)
		if err := connect(&l); err != nil {
			return fmt.Errorf("%s: %s: %w", n.Name, l.PeerName, err)
		}
	}
	return inNode(pid, func(h *netlink.Handle) error {
		for _, name := range []string{"lo", "eth0"} {
			link, err := h.LinkByName(name)
			if err == nil {
				err = h.LinkSetUp(link)
			}
			if err != nil {
				return fmt.Errorf("%s: %s: %w", n.Name, name, err)
			}
			if name == "lo" {
				continue
			}
			if err := h.AddrAdd(link, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(n.Addr, nodePrefix.Bits()))}); err != nil {
				return fmt.Errorf("%s: address %s: %w", n.Name, n.Addr, err)
			}
			if err := h.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: controlAddr.AsSlice()}); err != nil {
				return fmt.Errorf("%s: default route: %w", n.Name, err)
			}
		}
		return nil
	})
}

// SecondLink ends the name of a node's second link at the bridge.
const SecondLink = "-eth1"

// connect makes a link to a node, at the bridge, in the place of an old one: a node that
// was stopped a moment ago may still have its end.
func connect(link *netlink.Veth) error {
	bridge, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return err
	}
	link.MasterIndex = bridge.Attrs().Index
	if old, err := netlink.LinkByName(link.Name); err == nil {
		if err := netlink.LinkDel(old); err != nil {
			return fmt.Errorf("the old one: %w", err)
		}
	}
	if err := netlink.LinkAdd(link); err != nil {
		return err
	}
	outer, err := netlink.LinkByName(link.Name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(outer)
}

// routePods makes this namespace and every running node send each pod to its
// node, or stop to.
func routePods(nodes []Node, pids map[string]int, on bool) error {
	here, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer here.Close()
	if err := routeTo(here, nodes, "", on); err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	for _, n := range nodes {
		if pids[n.Name] == 0 {
			continue
		}
		err := inNode(pids[n.Name], func(h *netlink.Handle) error { return routeTo(h, nodes, n.Name, on) })
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return nil
}

func routeTo(h *netlink.Handle, nodes []Node, self string, on bool) error {
	for _, n := range nodes {
		if n.Name == self {
			continue
		}
		route := &netlink.Route{Dst: ipNet(n.PodCIDR), Gw: n.Addr.AsSlice()}
		if on {
			if err := h.RouteReplace(route); err != nil {
				return fmt.Errorf("route to %s: %w", n.PodCIDR, err)
			}
		} else if err := h.RouteDel(route); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("remove route to %s: %w", n.PodCIDR, err)
		}
	}
	return nil
}

// removeLink removes a link of a node, if it has it.
func removeLink(pid int, name string) error {
	return inNode(pid, func(h *netlink.Handle) error {
		link, err := h.LinkByName(name)
		if errors.As(err, new(netlink.LinkNotFoundError)) {
			return nil
		}
		if err != nil {
			return err
		}
		return h.LinkDel(link)
	})
}

// inNode runs f with a handle on the network namespace of a process.
func inNode(pid int, f func(h *netlink.Handle) error) error {
	ns, err := netns.GetFromPid(pid)
	if err != nil {
		return fmt.Errorf("network namespace of process %d: %w", pid, err)
	}
	defer func() { _ = ns.Close() }() // only read from
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("network namespace of process %d: %w", pid, err)
	}
	defer h.Close()
	return f(h)
}

// hardwareAddr is the same for a node whenever it is started, so that its
// neighbours know it still.
func hardwareAddr(addr netip.Addr) net.HardwareAddr {
	return append(net.HardwareAddr{0x02, 0x77}, addr.AsSlice()...)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// sysctls sets settings of this network namespace.
func sysctls(values map[string]string) error {
	for name, value := range values {
		if err := os.WriteFile("/proc/sys/"+name, []byte(value), 0o644); err != nil {
			return fmt.Errorf("sysctl %s=%s: %w", name, value, err)
		}
	}
	return nil
}

// conflistName sorts before those of products, which must find none.
const conflistName = "10-testbed-routes.conflist"

// conflist is the CNI configuration of a node for the standard plugins: a
// bridge, addresses from the node's range, host ports.
func conflist(n Node) string {
	return fmt.Sprintf(`{
  "cniVersion": "0.4.0",
  "name": "testbed-routes",
  "plugins": [
    {
      "type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
      "ipam": {"type": "host-local", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`, n.PodCIDR)
}

// writeConflist puts the configuration below the root of a node.
func writeConflist(root string, n Node) error {
	path := filepath.Join(root, "etc/cni/net.d", conflistName)
	if err := os.WriteFile(path+".new", []byte(conflist(n)), 0o644); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	// containerd 1.6 looks at the folder when something changes in it, and may
	// be too early the first time.
	now := time.Now()
	return os.Chtimes(path, now, now)
}

func removeConflist(root string) error {
	err := os.Remove(filepath.Join(root, "etc/cni/net.d", conflistName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
