package trace

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/sysmon"
)

// innerPrefixes lists how the names of interfaces begin that carry pods' packets inside a
// node. They would count packets twice.
var innerPrefixes = []string{
	"lo", "veth", "cali", "cni", "flannel", "docker", "br-", "virbr", "lxc", "cilium", "tunl", "vxlan", "geneve", "wg", "wireguard",
	"ovn", "ovs", "antrea", "weave", "datapath", "kube-", "dummy", "nodelocaldns", "ipip", "gre", "erspan", "sit", "ip6", "tap", "vpp",
}

// uplink returns the interface that connects the node to others: the one with the most bytes
// whose name has none of the innerPrefixes.
func uplink(rec *sysmon.Recording) string {
	total := map[string]float64{}
	for _, family := range []string{receiveFamily, transmitFamily} {
		f, ok := rec.Family(family)
		if !ok {
			continue
		}
		for _, series := range f.Series {
			device := series.Labels["device"]
			if slices.ContainsFunc(innerPrefixes, func(prefix string) bool { return strings.HasPrefix(device, prefix) }) {
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
