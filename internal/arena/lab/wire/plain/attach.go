//go:build linux

// Package plain has the pieces without encapsulation or programs of their own:
// the standard CNI plugins, direct routes, masquerading, kernel parameters.
// Next: routes.go.
package plain

import (
	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// cniVersion is the version of the CNI specification that Debian 12's plugins
// (1.1.1) implement.
const cniVersion = "1.0.0"

// Bridge puts pods on a Linux bridge that is their gateway, with the
// configuration that flannel's CNI plugin delegates to the bridge plugin.
var Bridge = wire.Attach{
	Name:    "bridge",
	Summary: "a veth to a Linux bridge on the node that is the pods' gateway",
	Params:  []string{"name", "hairpin", "promisc"},
	Conf: func(f *wire.Fabric, n *wire.Node, p wire.Params) map[string]any {
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

// PTP gives each pod a veth to the node, which routes to it by a host route,
// as Calico's workload interfaces do.
var PTP = wire.Attach{
	Name:    "ptp",
	Summary: "a veth to the node and a host route to the pod",
	Conf: func(f *wire.Fabric, n *wire.Node, _ wire.Params) map[string]any {
		ipam := podIPAM(n)
		ipam["routes"] = []map[string]string{{"dst": "0.0.0.0/0"}}
		return list("ptp", map[string]any{"type": "ptp", "mtu": f.PodMTU(), "ipMasq": false, "ipam": ipam})
	},
}

// Macvlan puts pods straight on the uplink with MAC addresses of their own.
var Macvlan = wire.Attach{
	Name:    "macvlan",
	Summary: "a macvlan interface of the node's uplink, no stack of the node between",
	Params:  []string{"mode"},
	Conf: func(f *wire.Fabric, n *wire.Node, p wire.Params) map[string]any {
		return list("macvlan", map[string]any{
			"type": "macvlan", "master": wire.UplinkName, "mode": p.Text("mode", "bridge"), "mtu": f.PodMTU(), "ipam": uplinkIPAM(n),
		})
	},
}

// IPvlan puts pods straight on the uplink with the uplink's MAC address.
var IPvlan = wire.Attach{
	Name:    "ipvlan",
	Summary: "an ipvlan interface of the node's uplink, no stack of the node between",
	Params:  []string{"mode"},
	Conf: func(f *wire.Fabric, n *wire.Node, p wire.Params) map[string]any {
		mode, ipam := p.Text("mode", "l2"), uplinkIPAM(n)
		if mode != "l2" {
			// In l3 modes pods see no broadcasts, so nobody would answer ARP
			// for them on the segment: they get the node's pod network, which
			// the other nodes route to (Documentation/networking/ipvlan.rst).
			ipam = podIPAM(n)
			ipam["routes"] = []map[string]string{{"dst": "0.0.0.0/0"}}
		}
		return list("ipvlan", map[string]any{"type": "ipvlan", "master": wire.UplinkName, "mode": mode, "mtu": f.PodMTU(), "ipam": ipam})
	},
}

func list(name string, plugin map[string]any) map[string]any {
	return map[string]any{"cniVersion": cniVersion, "name": name, "plugins": []map[string]any{plugin}}
}

// podIPAM hands out the node's pod network.
func podIPAM(n *wire.Node) map[string]any {
	return map[string]any{"type": "host-local", "ranges": [][]map[string]string{{{"subnet": n.PodCIDR.String()}}}}
}

// uplinkIPAM hands out the addresses of the underlay that are set apart for
// the pods of this node.
func uplinkIPAM(n *wire.Node) map[string]any {
	return map[string]any{"type": "host-local", "ranges": [][]map[string]string{{{
		"subnet":     n.Addr.Masked().String(),
		"rangeStart": n.HostRange[0].String(),
		"rangeEnd":   n.HostRange[1].String(),
		"gateway":    wire.GatewayOf(n.Addr).String(),
	}}}}
}
