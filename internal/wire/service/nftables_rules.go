//go:build linux

package service

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"

	"github.com/cnibench/cnibench/internal/wire"
)

// What kube-proxy 1.31 to 1.34 gives to `nft -f -` for Services that have
// nothing but a ClusterIP (pkg/proxy/nftables/proxier.go, setupNFTables and
// syncProxyRules).

// nftablesBase is the table without Services and without the element of
// nodeport-ips. A kube-proxy that knows the ServiceCIDRs (1.33 and later) also
// drops packets to addresses of the ServiceCIDRs that have no Service.
const nftablesBase = `add table ip kube-proxy { comment "rules for kube-proxy" ; }
add chain ip kube-proxy filter-prerouting-pre-dnat { type filter hook prerouting priority -110 ; }
add chain ip kube-proxy filter-output-pre-dnat { type filter hook output priority -110 ; }
add chain ip kube-proxy filter-input { type filter hook input priority 0 ; }
add chain ip kube-proxy filter-forward { type filter hook forward priority 0 ; }
add chain ip kube-proxy filter-output { type filter hook output priority 0 ; }
add chain ip kube-proxy nat-prerouting { type nat hook prerouting priority -100 ; }
add chain ip kube-proxy nat-output { type nat hook output priority -100 ; }
add chain ip kube-proxy nat-postrouting { type nat hook postrouting priority 100 ; }
add chain ip kube-proxy nodeport-endpoints-check
add chain ip kube-proxy service-endpoints-check
add chain ip kube-proxy firewall-check
add chain ip kube-proxy services
add chain ip kube-proxy masquerading
add chain ip kube-proxy cluster-ips-check
add chain ip kube-proxy mark-for-masquerade
add chain ip kube-proxy reject-chain { comment "helper for @no-endpoint-services / @no-endpoint-nodeports" ; }
add set ip kube-proxy cluster-ips { type ipv4_addr ; comment "Active ClusterIPs" ; }
add set ip kube-proxy nodeport-ips { type ipv4_addr ; comment "IPs that accept NodePort traffic" ; }
add map ip kube-proxy no-endpoint-services { type ipv4_addr . inet_proto . inet_service : verdict ; comment "vmap to drop or reject packets to services with no endpoints" ; }
add map ip kube-proxy no-endpoint-nodeports { type inet_proto . inet_service : verdict ; comment "vmap to drop or reject packets to service nodeports with no endpoints" ; }
add map ip kube-proxy firewall-ips { type ipv4_addr . inet_proto . inet_service : verdict ; comment "destinations that are subject to LoadBalancerSourceRanges" ; }
add map ip kube-proxy service-ips { type ipv4_addr . inet_proto . inet_service : verdict ; comment "ClusterIP, ExternalIP and LoadBalancer IP traffic" ; }
add map ip kube-proxy service-nodeports { type inet_proto . inet_service : verdict ; comment "NodePort traffic" ; }
add rule ip kube-proxy filter-input ct state new jump nodeport-endpoints-check
add rule ip kube-proxy filter-input ct state new jump service-endpoints-check
add rule ip kube-proxy filter-forward ct state new jump service-endpoints-check
add rule ip kube-proxy filter-output ct state new jump service-endpoints-check
add rule ip kube-proxy filter-prerouting-pre-dnat ct state new jump firewall-check
add rule ip kube-proxy filter-output-pre-dnat ct state new jump firewall-check
add rule ip kube-proxy nat-output jump services
add rule ip kube-proxy nat-prerouting jump services
add rule ip kube-proxy nat-postrouting jump masquerading
add rule ip kube-proxy filter-forward ct state new jump cluster-ips-check
add rule ip kube-proxy filter-output ct state new jump cluster-ips-check
add rule ip kube-proxy mark-for-masquerade mark set mark or 0x4000
add rule ip kube-proxy masquerading mark and 0x4000 == 0 return
add rule ip kube-proxy masquerading mark set mark xor 0x4000
add rule ip kube-proxy masquerading masquerade fully-random
add rule ip kube-proxy cluster-ips-check ip daddr @cluster-ips reject comment "Reject traffic to invalid ports of ClusterIPs"
add rule ip kube-proxy reject-chain reject
add rule ip kube-proxy service-endpoints-check ip daddr . meta l4proto . th dport vmap @no-endpoint-services
add rule ip kube-proxy nodeport-endpoints-check ip daddr @nodeport-ips meta l4proto . th dport vmap @no-endpoint-nodeports
add rule ip kube-proxy firewall-check ip daddr . meta l4proto . th dport vmap @firewall-ips
add rule ip kube-proxy services ip daddr . meta l4proto . th dport vmap @service-ips
add rule ip kube-proxy services ip daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports
`

// nftablesRules returns one transaction that replaces all Services of the node
// with that address by those of the table. pods is the cluster CIDR, from which traffic to a
// Service is not masqueraded.
func nftablesRules(table []wire.ServicePort, pods netip.Prefix, node netip.Addr) []byte {
	var b bytes.Buffer
	// nft refuses to delete a table that does not exist.
	b.WriteString("add table ip kube-proxy\ndelete table ip kube-proxy\n")
	b.WriteString(nftablesBase)
	fmt.Fprintf(&b, "add element ip kube-proxy nodeport-ips { %s }\n", node)
	known := map[netip.Addr]bool{}
	for i := range table {
		s := &table[i]
		nftablesService(&b, s, pods)
		if !known[s.ClusterIP] {
			known[s.ClusterIP] = true
			fmt.Fprintf(&b, "add element ip kube-proxy cluster-ips { %s }\n", s.ClusterIP)
		}
	}
	return b.Bytes()
}

// nftablesService makes the chains of one Service and enters it into the map
// that finds it in one look-up.
func nftablesService(b *bytes.Buffer, s *wire.ServicePort, pods netip.Prefix) {
	protocol := strings.ToLower(s.Protocol)
	name := nftablesName(s.Name, protocol)
	service := "service-" + shortHash(name)
	var goTo []string
	for i, backend := range s.Backends {
		endpoint := fmt.Sprintf("endpoint-%s", shortHash(fmt.Sprintf("%s__%s/%d", name, backend.Addr(), backend.Port())))
		fmt.Fprintf(b, "add chain ip kube-proxy %s\n", endpoint)
		fmt.Fprintf(b, "add rule ip kube-proxy %s ip saddr %s jump mark-for-masquerade\n", endpoint, backend.Addr())
		fmt.Fprintf(b, "add rule ip kube-proxy %s meta l4proto %s dnat to %s\n", endpoint, protocol, backend)
		goTo = append(goTo, fmt.Sprintf("%d : goto %s", i, endpoint))
	}
	fmt.Fprintf(b, "add chain ip kube-proxy %s\n", service)
	fmt.Fprintf(b, "add rule ip kube-proxy %s ip daddr %s ip saddr != %s jump mark-for-masquerade\n", service, s.ClusterIP, pods)
	fmt.Fprintf(b, "add rule ip kube-proxy %s numgen random mod %d vmap { %s }\n", service, len(goTo), strings.Join(goTo, " , "))
	fmt.Fprintf(b, "add element ip kube-proxy service-ips { %s . %s . %d : goto %s }\n", s.ClusterIP, protocol, s.Port, service)
}

// nftablesName returns namespace/service/protocol/port of "namespace/service:port"
// (servicePortChainNameBase).
func nftablesName(name, protocol string) string {
	service, port, _ := strings.Cut(name, ":")
	return service + "/" + protocol + "/" + port
}

// shortHash puts a hash before the name, so that names that differ in a digit
// look different (hashAndTruncate).
func shortHash(name string) string { return hash32(name)[:8] + "-" + name }
