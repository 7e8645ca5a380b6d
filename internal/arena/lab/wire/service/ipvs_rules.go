//go:build linux

package service

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/netip"
	"strings"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// kube-router v2.1.0, pkg/controllers/proxy/network_services_controller.go:
// setupIpvsFirewall, syncIpvsFirewall, ensureMasqueradeIptablesRule.

//go:embed kube_router.sets
var kubeRouterSets string

// kubeRouterRules lets only packets for known Services pass, and hides traffic
// from outside the node's pods to outside them behind the node.
func kubeRouterRules(_, own netip.Prefix, node netip.Addr) string {
	return strings.NewReplacer("{pods}", own.String(), "{node}", node.String()).Replace(kubeRouterText)
}

//go:embed kube_router.iptables
var kubeRouterText string

func kubeRouterMembers(table []wire.ServicePort, _ netip.Prefix, node netip.Addr) []byte {
	var b bytes.Buffer
	flush(&b, "kube-router-local-ips", "kube-router-svip", "kube-router-svip-prt")
	fmt.Fprintf(&b, "add kube-router-local-ips %s timeout 0\n", node)
	for _, addr := range addressesOf(table) {
		fmt.Fprintf(&b, "add kube-router-svip %s timeout 0\n", addr)
	}
	for i := range table {
		s := &table[i]
		fmt.Fprintf(&b, "add kube-router-svip-prt %s,%s:%d timeout 0\n", s.ClusterIP, strings.ToLower(s.Protocol), s.Port)
	}
	return b.Bytes()
}

// kube-proxy v1.34.4, pkg/proxy/ipvs/proxier.go and ipset.go, without the sets
// and rules of NodePorts and load balancers, which are empty here, but for
// those that packets for a ClusterIP are compared with.

//go:embed kube_proxy.sets
var kubeProxySets string

// kubeProxyIPVSJumps are the chains that packets are sent through
// (iptablesJumpChain).
//
//go:embed kube_proxy_ipvs_jumps.iptables
var kubeProxyIPVSJumps string

// kubeProxyIPVSChains returns the chains as every change writes them anew, with
// the rules of those sets that are not empty (writeIptablesRules).
func kubeProxyIPVSChains(table []wire.ServicePort, pods, own netip.Prefix) string {
	chains := strings.ReplaceAll(kubeProxyIPVSText, "{pods}", pods.String())
	var kept strings.Builder
	for line := range strings.Lines(chains) {
		ofSet := strings.HasPrefix(line, "-A KUBE-SERVICES") && strings.Contains(line, "KUBE-CLUSTER-IP")
		if ofSet && len(table) == 0 || strings.Contains(line, "KUBE-LOOP-BACK") && len(local(table, own)) == 0 {
			continue
		}
		kept.WriteString(line)
	}
	return kept.String()
}

//go:embed kube_proxy_ipvs_chains.iptables
var kubeProxyIPVSText string

func kubeProxyMembers(table []wire.ServicePort, own netip.Prefix, _ netip.Addr) []byte {
	var b bytes.Buffer
	flush(&b, "KUBE-LOOP-BACK", "KUBE-CLUSTER-IP", "KUBE-IPVS-IPS")
	for _, entry := range local(table, own) {
		fmt.Fprintf(&b, "add KUBE-LOOP-BACK %s\n", entry)
	}
	for i := range table {
		s := &table[i]
		fmt.Fprintf(&b, "add KUBE-CLUSTER-IP %s,%s:%d\n", s.ClusterIP, strings.ToLower(s.Protocol), s.Port)
	}
	for _, addr := range addressesOf(table) {
		fmt.Fprintf(&b, "add KUBE-IPVS-IPS %s\n", addr)
	}
	return b.Bytes()
}

func flush(b *bytes.Buffer, sets ...string) {
	for _, name := range sets {
		fmt.Fprintf(b, "flush %s\n", name)
	}
}
