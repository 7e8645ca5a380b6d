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

// What kube-proxy 1.31 to 1.34 gives to `nft -f -` for Services that have
// nothing but a ClusterIP (pkg/proxy/nftables/proxier.go, setupNFTables and
// syncProxyRules).

// nftablesBase is the table without Services and without the element of
// nodeport-ips. A kube-proxy that knows the ServiceCIDRs (1.33 and later) also
// drops packets to addresses of the ServiceCIDRs that have no Service.
//
//go:embed kube_proxy.nft
var nftablesBase string

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
