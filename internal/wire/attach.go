//go:build linux

package wire

import "net/netip"

// cniVersion is the specification that Debian 12's plugins (1.1.1) speak.
const cniVersion = "1.0.0"

// bridge puts pods on a Linux bridge that is their gateway, with the
// configuration that flannel's CNI plugin delegates to the bridge plugin.
var bridge = Attach{
	Name:    "bridge",
	Summary: "a veth to a Linux bridge on the node that is the pods' gateway",
	Params:  []string{"name", "hairpin", "promisc"},
	Plugins: []string{"bridge", "host-local"},
	Conf: func(f *Fabric, n *Node, p Params) map[string]any {
		return list("bridge", map[string]any{
			"type":             "bridge",
			"bridge":           p.Text("name", "cni0"),
			"mtu":              f.PodMTU(),
			"hairpinMode":      p.Bool("hairpin", true),
			"promiscMode":      p.Bool("promisc", false),
			"isDefaultGateway": true,
			"ipMasq":           false,
			"ipam":             podIPAM(n),
		})
	},
}

// ptp gives each pod a veth to the node, which routes to it by a host route,
// as Calico's workload interfaces do.
var ptp = Attach{
	Name:    "ptp",
	Summary: "a veth to the node and a host route to the pod",
	Plugins: []string{"ptp", "host-local"},
	Conf: func(f *Fabric, n *Node, _ Params) map[string]any {
		ipam := podIPAM(n)
		ipam["routes"] = []map[string]string{{"dst": "0.0.0.0/0"}}
		return list("ptp", map[string]any{"type": "ptp", "mtu": f.PodMTU(), "ipMasq": false, "ipam": ipam})
	},
}

// macvlan puts pods straight on the uplink with MAC addresses of their own.
var macvlan = Attach{
	Name:    "macvlan",
	Summary: "a macvlan interface of the node's uplink, no stack of the node between",
	Params:  []string{"mode"},
	Plugins: []string{"macvlan", "host-local"},
	Conf: func(f *Fabric, n *Node, p Params) map[string]any {
		return list("macvlan", map[string]any{
			"type": "macvlan", "master": UplinkName, "mode": p.Text("mode", "bridge"), "mtu": f.PodMTU(), "ipam": uplinkIPAM(n),
		})
	},
}

// ipvlan puts pods straight on the uplink with the uplink's MAC address.
var ipvlan = Attach{
	Name:    "ipvlan",
	Summary: "an ipvlan interface of the node's uplink, no stack of the node between",
	Params:  []string{"mode"},
	Plugins: []string{"ipvlan", "host-local"},
	Conf: func(f *Fabric, n *Node, p Params) map[string]any {
		mode, ipam := p.Text("mode", "l2"), uplinkIPAM(n)
		if mode != "l2" {
			// In l3 modes pods see no broadcasts, so nobody would answer ARP
			// for them on the segment: they get the node's pod network, which
			// the other nodes route to (Documentation/networking/ipvlan.rst).
			ipam = podIPAM(n)
			ipam["routes"] = []map[string]string{{"dst": "0.0.0.0/0"}}
		}
		return list("ipvlan", map[string]any{"type": "ipvlan", "master": UplinkName, "mode": mode, "mtu": f.PodMTU(), "ipam": ipam})
	},
}

func list(name string, plugin map[string]any) map[string]any {
	return map[string]any{"cniVersion": cniVersion, "name": name, "plugins": []map[string]any{plugin}}
}

// podIPAM hands out the node's pod network.
func podIPAM(n *Node) map[string]any {
	return map[string]any{"type": "host-local", "ranges": [][]map[string]string{{{"subnet": n.PodCIDR.String()}}}}
}

// uplinkIPAM hands out the addresses of the underlay that are set apart for
// the pods of this node.
func uplinkIPAM(n *Node) map[string]any {
	return map[string]any{"type": "host-local", "ranges": [][]map[string]string{{{
		"subnet":     n.Addr.Masked().String(),
		"rangeStart": n.HostRange[0].String(),
		"rangeEnd":   n.HostRange[1].String(),
		"gateway":    gatewayOf(n.Addr).String(),
	}}}}
}

// gatewayOf is the first address of the subnet.
func gatewayOf(p netip.Prefix) netip.Addr { return p.Masked().Addr().Next() }
