package trace

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/sysmon"
)

// inner are the beginnings of the names of interfaces that carry pods' packets
// inside a node, and would count them again.
var inner = []string{
	"lo", "veth", "cali", "cni", "flannel", "docker", "br-", "virbr", "lxc", "cilium", "tunl", "vxlan", "geneve", "wg", "wireguard",
	"ovn", "ovs", "antrea", "weave", "datapath", "kube-", "dummy", "nodelocaldns", "ipip", "gre", "erspan", "sit", "ip6", "tap", "vpp",
}

// uplink returns the interface that the node's own traffic crosses: of those that
// are not inner the one with the most bytes.
func uplink(rec *sysmon.Recording) string {
	total := map[string]float64{}
	for _, family := range []string{receiveFamily, transmitFamily} {
		f, ok := rec.Family(family)
		if !ok {
			continue
		}
		for _, series := range f.Series {
			device := series.Labels["device"]
			if slices.ContainsFunc(inner, func(prefix string) bool { return strings.HasPrefix(device, prefix) }) {
				continue
			}
			first, last := sysmon.Absent, sysmon.Absent
			for _, v := range series.Values {
				if first.IsAbsent() {
					first = v
				}
				if !v.IsAbsent() {
					last = v
				}
			}
			if grown := float64(last - first); grown >= 0 {
				total[device] += grown
			}
		}
	}
	best := ""
	for device, n := range total {
		if best == "" || n > total[best] || n == total[best] && device < best {
			best = device
		}
	}
	return best
}
