package tune

import "strings"

// brNetfilter keeps bridged packets away from the firewall.
var brNetfilter = Setting{
	Name:    "br-netfilter",
	Summary: "bridged packets are not handed to iptables",
	Why:     "a bridge with br_netfilter sends every frame through the IP hooks, also between pods of one node",
	Studies: []string{"2024"},
	Source:  "kernel Documentation/networking/ip-sysctl.rst, bridge-nf-call-iptables",
	Cost:    "NetworkPolicies and Services do not apply between pods of one bridge",
	Avoid:   "if kube-proxy serves Services to pods on a bridge (flannel, bridge CNI): that needs it on; routed pods (Calico, Cilium) do not",
	Scope:   ScopeNamespace,
	Plan: func(f *Facts, _ Params) (Proposal, error) {
		var keys []key
		for _, table := range []string{"iptables", "ip6tables", "arptables"} {
			keys = append(keys, key{"net.bridge.bridge-nf-call-" + table, "0", false})
		}
		p, err := planKeys(f, keys)
		if asNotApplicable(err) != nil {
			err = notApplicable("br_netfilter is not loaded, so bridged packets do not pass iptables")
		}
		if err != nil {
			return p, err
		}
		for _, c := range p.Changes {
			if strings.Contains(c.Name, "iptables") && !c.Done() && !f.m.Namespace {
				p.Advice = append(p.Advice, "with kube-proxy and pods on a bridge leave it on; else a pod cannot reach a Service whose pod is on the same node")
				break
			}
		}
		return p, nil
	},
}
