//go:build linux

package service

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/netip"
	"strings"

	"github.com/cnibench/cnibench/internal/wire"
)

// kube-router v2.1.0, pkg/controllers/proxy/network_services_controller.go:
// setupIpvsFirewall, syncIpvsFirewall, ensureMasqueradeIptablesRule.

const kubeRouterSets = `create kube-router-local-ips hash:ip timeout 0
create kube-router-svip hash:ip timeout 0
create kube-router-svip-prt hash:ip,port timeout 0
`

// kubeRouterRules lets only packets for known Services pass, and hides traffic
// from outside the node's pods to outside them behind the node.
func kubeRouterRules(_, own netip.Prefix, node netip.Addr) string {
	return fmt.Sprintf(`*filter
:KUBE-ROUTER-SERVICES - [0:0]
-A KUBE-ROUTER-SERVICES -m comment --comment "allow icmp echo requests to service IPs" -p icmp --icmp-type echo-request -j ACCEPT
-A KUBE-ROUTER-SERVICES -m comment --comment "allow icmp ttl exceeded messages to service IPs" -p icmp --icmp-type time-exceeded -j ACCEPT
-A KUBE-ROUTER-SERVICES -m comment --comment "allow icmp destination unreachable messages to service IPs" -p icmp --icmp-type destination-unreachable -j ACCEPT
-A KUBE-ROUTER-SERVICES -m comment --comment "allow input traffic to ipvs services" -m set --match-set kube-router-svip-prt dst,dst -j ACCEPT
-A KUBE-ROUTER-SERVICES -m comment --comment "reject all unexpected traffic to service IPs" -m set ! --match-set kube-router-local-ips dst -j REJECT --reject-with icmp-port-unreachable
-I INPUT -m comment --comment "handle traffic to IPVS service IPs in custom chain" -m set --match-set kube-router-svip dst -j KUBE-ROUTER-SERVICES
COMMIT
*nat
-A POSTROUTING -m ipvs --ipvs --vdir ORIGINAL --vmethod MASQ -m comment --comment "" ! -s %s ! -d %s -j SNAT --to-source %s --random-fully
COMMIT
`, own, own, node)
}

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

const kubeProxySets = `create KUBE-LOOP-BACK hash:ip,port,ip
create KUBE-CLUSTER-IP hash:ip,port
create KUBE-EXTERNAL-IP hash:ip,port
create KUBE-EXTERNAL-IP-LOCAL hash:ip,port
create KUBE-LOAD-BALANCER hash:ip,port
create KUBE-HEALTH-CHECK-NODE-PORT bitmap:port range 0-65535
create KUBE-IPVS-IPS hash:ip
`

// kubeProxyIPVSJumps are the chains that packets are sent through
// (iptablesJumpChain).
//
//go:embed kube_proxy_ipvs_jumps.iptables
var kubeProxyIPVSJumps string

// kubeProxyIPVSChains returns the chains as every change writes them anew, with
// the rules of those sets that are not empty (writeIptablesRules).
func kubeProxyIPVSChains(table []wire.ServicePort, pods, own netip.Prefix) string {
	loopBack, masquerade, accept := "", "", ""
	if len(local(table, own)) > 0 {
		loopBack = `-A KUBE-POSTROUTING -m comment --comment "Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose" -m set --match-set KUBE-LOOP-BACK dst,dst,src -j MASQUERADE
`
	}
	if len(table) > 0 {
		masquerade = fmt.Sprintf(`-A KUBE-SERVICES -m comment --comment "Kubernetes service cluster ip + port for masquerade purpose" -m set --match-set KUBE-CLUSTER-IP dst,dst ! -s %s -j KUBE-MARK-MASQ
`, pods)
		accept = "-A KUBE-SERVICES -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT\n"
	}
	return `*nat
:KUBE-SERVICES - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-NODE-PORT - [0:0]
:KUBE-LOAD-BALANCER - [0:0]
:KUBE-MARK-MASQ - [0:0]
-A KUBE-SERVICES -s 127.0.0.0/8 -j RETURN
` + loopBack + masquerade + `-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODE-PORT
-A KUBE-LOAD-BALANCER -j KUBE-MARK-MASQ
` + accept + `-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MARK --xor-mark 0x4000
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000
COMMIT
*filter
:KUBE-FORWARD - [0:0]
:KUBE-NODE-PORT - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
:KUBE-SOURCE-RANGES-FIREWALL - [0:0]
:KUBE-IPVS-FILTER - [0:0]
:KUBE-IPVS-OUT-FILTER - [0:0]
-A KUBE-SOURCE-RANGES-FIREWALL -j DROP
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A KUBE-NODE-PORT -m comment --comment "Kubernetes health check node port" -m set --match-set KUBE-HEALTH-CHECK-NODE-PORT dst -j ACCEPT
-A KUBE-IPVS-FILTER -m set --match-set KUBE-LOAD-BALANCER dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-CLUSTER-IP dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-EXTERNAL-IP dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-EXTERNAL-IP-LOCAL dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-HEALTH-CHECK-NODE-PORT dst -j RETURN
-A KUBE-IPVS-FILTER -m conntrack --ctstate NEW -m set --match-set KUBE-IPVS-IPS dst -j REJECT
COMMIT
`
}

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
