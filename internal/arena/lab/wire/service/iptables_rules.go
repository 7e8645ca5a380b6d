//go:build linux

package service

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base32"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// What kube-proxy 1.26 to 1.34 writes for Services that have nothing but a
// ClusterIP (pkg/proxy/iptables/proxier.go). The jumps are made once, the rest
// with every Sync. 0x4000 marks packets to masquerade (--iptables-masquerade-bit 14).

// manyEndpoints is the number of endpoints from which kube-proxy leaves out comments
// (largeClusterEndpointsThreshold).
const manyEndpoints = 1000

// iptablesJumps are the chains that packets are sent through, the first rule
// of their hooks, in the order in which kube-proxy inserts them.
//
//go:embed kube_proxy_jumps.iptables
var iptablesJumps string

// iptablesFilter is the filter table without its jumps. No Service here lacks
// endpoints, so KUBE-SERVICES is empty.
//
//go:embed kube_proxy_filter.iptables
var iptablesFilter string

// natPreamble is what the nat table begins with.
//
//go:embed kube_proxy_nat.iptables
var natPreamble string

const natNodePorts = `-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
`

// iptablesRules returns the input of iptables-restore --noflush that replaces all
// Services by those of the table. Traffic from pods, the cluster CIDR, to a Service
// is not masqueraded. before are the chains of Services that an earlier call
// wrote; now are the chains of this call.
func iptablesRules(table []wire.ServicePort, pods netip.Prefix, before map[string]bool) (text []byte, now map[string]bool) {
	var chains, rules bytes.Buffer
	for _, name := range []string{"KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-POSTROUTING", "KUBE-MARK-MASQ"} {
		chain(&chains, name)
	}
	rules.WriteString(natPreamble)
	now = map[string]bool{}
	named := endpoints(table) <= manyEndpoints
	for i := range table {
		serviceRules(&chains, &rules, &table[i], pods, named, now)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if !now[name] {
			chain(&chains, name)
			fmt.Fprintf(&rules, "-X %s\n", name)
		}
	}
	rules.WriteString(natNodePorts)

	var out bytes.Buffer
	out.WriteString(iptablesFilter)
	out.WriteString("*nat\n")
	out.Write(chains.Bytes())
	out.Write(rules.Bytes())
	out.WriteString("COMMIT\n")
	return out.Bytes(), now
}

func endpoints(table []wire.ServicePort) int {
	n := 0
	for i := range table {
		n += len(table[i].Backends)
	}
	return n
}

// serviceRules sends packets for the Service to its own chain, which chooses
// among the endpoints' chains, which rewrite the destination.
func serviceRules(chains, rules *bytes.Buffer, s *wire.ServicePort, pods netip.Prefix, named bool, now map[string]bool) {
	protocol := strings.ToLower(s.Protocol)
	service := "KUBE-SVC-" + longHash(s.Name+protocol)
	match := fmt.Sprintf(`-m comment --comment "%s cluster IP" -m %s -p %s -d %s --dport %d`, s.Name, protocol, protocol, s.ClusterIP, s.Port)
	fmt.Fprintf(rules, "-A KUBE-SERVICES %s -j %s\n", match, service)
	chain(chains, service)
	now[service] = true
	fmt.Fprintf(rules, "-A %s %s ! -s %s -j KUBE-MARK-MASQ\n", service, match, pods)
	comment := func(format string, args ...any) string {
		if !named {
			return ""
		}
		return "-m comment --comment " + fmt.Sprintf(format, args...) + " "
	}
	for i, backend := range s.Backends {
		to := "KUBE-SEP-" + longHash(s.Name+protocol+backend.String())
		chance := ""
		if rest := len(s.Backends) - i; rest > 1 {
			chance = fmt.Sprintf("-m statistic --mode random --probability %0.10f ", 1/float64(rest))
		}
		fmt.Fprintf(rules, "-A %s %s%s-j %s\n", service, comment(`"%s -> %s"`, s.Name, backend), chance, to)
	}
	for _, backend := range s.Backends {
		to := "KUBE-SEP-" + longHash(s.Name+protocol+backend.String())
		chain(chains, to)
		now[to] = true
		fmt.Fprintf(rules, "-A %s %s-s %s -j KUBE-MARK-MASQ\n", to, comment("%s", s.Name), backend.Addr())
		fmt.Fprintf(rules, "-A %s %s-m %s -p %s -j DNAT --to-destination %s\n", to, comment("%s", s.Name), protocol, protocol, backend)
	}
}

func chain(b *bytes.Buffer, name string) { fmt.Fprintf(b, ":%s - [0:0]\n", name) }

// longHash returns the part of a chain's name that tells Services and endpoints
// apart (portProtoHash).
func longHash(s string) string { return hash32(s)[:16] }

func hash32(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base32.StdEncoding.EncodeToString(sum[:])
}
