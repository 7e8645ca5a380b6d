//go:build linux

package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/testutil/wiretest"
)

func backends(list ...string) []netip.AddrPort {
	var out []netip.AddrPort
	for _, s := range list {
		out = append(out, netip.MustParseAddrPort(s))
	}
	return out
}

// kubeProxyTests are two Services of kube-proxy's own tests
// (TestOverallIPTablesRules, TestOverallNFTablesRules), by which the names of
// chains can be compared, and one of UDP.
func kubeProxyTests() []wire.ServicePort {
	return []wire.ServicePort{
		{Name: "ns1/svc1:p80", ClusterIP: netip.MustParseAddr("172.30.0.41"), Protocol: "TCP", Port: 80, Backends: backends("10.180.0.1:80")},
		{Name: "ns4/svc4:p80", ClusterIP: netip.MustParseAddr("172.30.0.44"), Protocol: "TCP", Port: 80, Backends: backends("10.180.0.4:80", "10.180.0.5:80")},
		{Name: "ns7/svc7:p53", ClusterIP: netip.MustParseAddr("172.30.0.44"), Protocol: "UDP", Port: 53, Backends: backends("10.180.0.1:5353")},
	}
}

var clusterCIDR = netip.MustParsePrefix("10.0.0.0/8")

// These lines are kube-proxy's expected output in its own tests, v1.34.4.
func TestAsKubeProxyWrites(t *testing.T) {
	iptables, _ := iptablesRules(kubeProxyTests(), clusterCIDR, nil)
	for rules, want := range map[string][]string{
		string(iptables): {
			`-A KUBE-SERVICES -m comment --comment "ns1/svc1:p80 cluster IP" -m tcp -p tcp -d 172.30.0.41 --dport 80 -j KUBE-SVC-XPGD46QRK7WJZT7O`,
			`-A KUBE-SVC-XPGD46QRK7WJZT7O -m comment --comment "ns1/svc1:p80 cluster IP" -m tcp -p tcp -d 172.30.0.41 --dport 80 ! -s 10.0.0.0/8 -j KUBE-MARK-MASQ`,
			`-A KUBE-SVC-XPGD46QRK7WJZT7O -m comment --comment "ns1/svc1:p80 -> 10.180.0.1:80" -j KUBE-SEP-SXIVWICOYRO3J4NJ`,
			`-A KUBE-SEP-SXIVWICOYRO3J4NJ -m comment --comment ns1/svc1:p80 -s 10.180.0.1 -j KUBE-MARK-MASQ`,
			`-A KUBE-SEP-SXIVWICOYRO3J4NJ -m comment --comment ns1/svc1:p80 -m tcp -p tcp -j DNAT --to-destination 10.180.0.1:80`,
			`-A KUBE-SVC-4SW47YFZTEDKD3PK -m comment --comment "ns4/svc4:p80 -> 10.180.0.4:80" -m statistic --mode random --probability 0.5000000000 -j KUBE-SEP-UKSFD7AGPMPPLUHC`,
			`-A KUBE-SVC-4SW47YFZTEDKD3PK -m comment --comment "ns4/svc4:p80 -> 10.180.0.5:80" -j KUBE-SEP-C6EBXVWJJZMIWKLZ`,
			`-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT`,
		},
		string(nftablesRules(kubeProxyTests(), clusterCIDR, netip.MustParseAddr("192.168.0.2"))): {
			`add rule ip kube-proxy service-ULMVA6XW-ns1/svc1/tcp/p80 ip daddr 172.30.0.41 ip saddr != 10.0.0.0/8 jump mark-for-masquerade`,
			`add rule ip kube-proxy service-ULMVA6XW-ns1/svc1/tcp/p80 numgen random mod 1 vmap { 0 : goto endpoint-5OJB2KTY-ns1/svc1/tcp/p80__10.180.0.1/80 }`,
			`add rule ip kube-proxy endpoint-5OJB2KTY-ns1/svc1/tcp/p80__10.180.0.1/80 ip saddr 10.180.0.1 jump mark-for-masquerade`,
			`add rule ip kube-proxy endpoint-5OJB2KTY-ns1/svc1/tcp/p80__10.180.0.1/80 meta l4proto tcp dnat to 10.180.0.1:80`,
			`add element ip kube-proxy cluster-ips { 172.30.0.41 }`,
			`add element ip kube-proxy service-ips { 172.30.0.41 . tcp . 80 : goto service-ULMVA6XW-ns1/svc1/tcp/p80 }`,
			`add rule ip kube-proxy service-LAUZTJTB-ns4/svc4/tcp/p80 numgen random mod 2 vmap { 0 : goto endpoint-UNZV3OEC-ns4/svc4/tcp/p80__10.180.0.4/80 , 1 : goto endpoint-5RFCDDV7-ns4/svc4/tcp/p80__10.180.0.5/80 }`,
			`add element ip kube-proxy nodeport-ips { 192.168.0.2 }`,
			`add rule ip kube-proxy masquerading mark and 0x4000 == 0 return`,
		},
	} {
		lines := strings.Split(rules, "\n")
		for _, line := range want {
			if !slices.Contains(lines, line) {
				t.Errorf("no line %s", line)
			}
		}
	}
}

func TestIPTablesRules(t *testing.T) {
	text, now := iptablesRules(kubeProxyTests(), clusterCIDR, nil)
	wiretest.Golden(t, "kube-proxy.iptables", text)

	// A second table takes the first's chains away, not its own.
	text, left := iptablesRules(kubeProxyTests()[:1], clusterCIDR, now)
	for name := range now {
		if gone := strings.Contains(string(text), "-X "+name+"\n"); gone == left[name] {
			t.Errorf("%s: deleted %v, still used %v", name, gone, left[name])
		}
	}
}

// chainsNode is a node that keeps the chains of its nat table as
// iptables-restore and nft do, and refuses one restore if told to.
type chainsNode struct {
	chains  map[string]bool
	refuses bool
}

func (c *chainsNode) Start(_ context.Context, cmd host.Command) (host.Process, error) {
	if c.refuses && cmd.Argv[0] != "nft" {
		c.refuses = false
		return nil, errors.New("killed")
	}
	text, err := io.ReadAll(cmd.Stdin)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		var name string
		line, _, _ = strings.Cut(line, " -")
		switch {
		case scan(line, ":%s", &name), scan(line, "add chain ip nat %s", &name):
			c.chains[name] = true
		case scan(line, "flush chain ip nat %s", &name) && !c.chains[name]:
			return nil, fmt.Errorf("no chain %s", name)
		case scan(line, "-X %s", &name), scan(line, "delete chain ip nat %s", &name):
			if !c.chains[name] {
				return nil, fmt.Errorf("no chain %s", name)
			}
			delete(c.chains, name)
		}
	}
	return ended{}, nil
}

func scan(line, format string, name *string) bool {
	n, _ := fmt.Sscanf(line, format, name)
	return n == 1
}

type ended struct{}

func (ended) Wait() error            { return nil }
func (ended) Signal(os.Signal) error { return nil }

// What one node could not do does not keep another table from any of them.
func TestIPTablesAfterFailure(t *testing.T) {
	for _, backend := range []string{backendNFT, backendLegacy} {
		f := wiretest.Three()
		var nodes []*chainsNode
		for _, n := range f.Nodes {
			c := &chainsNode{chains: map[string]bool{"KUBE-SERVICES": true}}
			nodes, n.Run = append(nodes, c), c
		}
		x := &iptablesProxy{backend: backend, written: make([]map[string]bool, len(f.Nodes))}
		sync := func(table []wire.ServicePort) error { return x.Sync(t.Context(), f, table) }
		for _, failing := range [][]wire.ServicePort{kubeProxyTests(), nil} {
			if err := sync(kubeProxyTests()[:1]); err != nil {
				t.Fatalf("%s: %v", backend, err)
			}
			nodes[1].refuses = true
			if err := sync(failing); err == nil || !strings.Contains(err.Error(), "node2: killed") {
				t.Errorf("%s: a node that refuses gave %v", backend, err)
			}
			if err := sync(nil); err != nil {
				t.Errorf("%s: after that, no Services: %v", backend, err)
			}
			for i, n := range nodes {
				for chain := range n.chains {
					if strings.HasPrefix(chain, "KUBE-SVC-") || strings.HasPrefix(chain, "KUBE-SEP-") {
						t.Errorf("%s: node%d still has %s", backend, i+1, chain)
					}
				}
			}
		}
	}
}

// Comments are left out where there are many endpoints, but not those that
// kube-proxy keeps.
func TestIPTablesRulesOfManyEndpoints(t *testing.T) {
	var table []wire.ServicePort
	for range manyEndpoints + 1 {
		table = append(table, kubeProxyTests()[0])
	}
	text, _ := iptablesRules(table, clusterCIDR, nil)
	for want, there := range map[string]bool{
		`-A KUBE-SVC-XPGD46QRK7WJZT7O -j KUBE-SEP-SXIVWICOYRO3J4NJ`:                                                                            true,
		`-A KUBE-SEP-SXIVWICOYRO3J4NJ -s 10.180.0.1 -j KUBE-MARK-MASQ`:                                                                         true,
		`-A KUBE-SERVICES -m comment --comment "ns1/svc1:p80 cluster IP" -m tcp -p tcp -d 172.30.0.41 --dport 80 -j KUBE-SVC-XPGD46QRK7WJZT7O`: true,
		`-A KUBE-SEP-SXIVWICOYRO3J4NJ -m comment --comment ns1/svc1:p80 -s 10.180.0.1 -j KUBE-MARK-MASQ`:                                       false,
	} {
		if strings.Contains(string(text), want+"\n") != there {
			t.Errorf("%s: want %v", want, there)
		}
	}
}

func TestNFTablesRules(t *testing.T) {
	wiretest.Golden(t, "kube-proxy.nft", nftablesRules(kubeProxyTests(), clusterCIDR, netip.MustParseAddr("192.168.0.2")))
}

// What kube-proxy writes for sets that are not empty is there only then, and
// only Kube-router touches what it does to ARP and to reused ports.
func TestIPVSForms(t *testing.T) {
	const loopBack, clusterIP = "--match-set KUBE-LOOP-BACK", "-A KUBE-SERVICES -m set --match-set KUBE-CLUSTER-IP"
	elsewhere := netip.MustParsePrefix("10.180.9.0/24")
	for _, c := range []struct {
		name               string
		table              []wire.ServicePort
		own                netip.Prefix
		loopBack, services bool
	}{
		{"no Services", nil, clusterCIDR, false, false},
		{"pods elsewhere", kubeProxyTests(), elsewhere, false, true},
		{"pods here", kubeProxyTests(), clusterCIDR, true, true},
	} {
		rules := kubeProxyIPVSChains(c.table, clusterCIDR, c.own)
		if got := strings.Contains(rules, loopBack); got != c.loopBack {
			t.Errorf("%s: a rule for KUBE-LOOP-BACK: %v, want %v", c.name, got, c.loopBack)
		}
		if got := strings.Contains(rules, clusterIP); got != c.services {
			t.Errorf("%s: a rule for KUBE-CLUSTER-IP: %v, want %v", c.name, got, c.services)
		}
	}
	got := map[string]string{}
	for _, form := range ipvsForms() {
		for _, s := range form.sysctls {
			got[form.name] += s.key + "=" + s.value + " "
		}
	}
	want := map[string]string{"kube-router": "net.ipv4.vs.conn_reuse_mode=0 net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// One node's view of IPVS: what its programs read.
func TestIPVSRules(t *testing.T) {
	own, node := netip.MustParsePrefix("10.180.0.4/32"), netip.MustParseAddr("192.168.0.2")
	for _, form := range ipvsForms() {
		var b strings.Builder
		b.WriteString("# iptables, once\n" + form.rules(clusterCIDR, own, node))
		b.WriteString("# ipset, once\n" + form.sets)
		if form.chains != nil {
			b.WriteString("# iptables\n" + form.chains(kubeProxyTests(), clusterCIDR, own))
		}
		b.WriteString("# ipset\n" + string(form.members(kubeProxyTests(), own, node)))
		b.WriteString("# ipvsadm\n" + string(ipvsServers(kubeProxyTests())))
		wiretest.Golden(t, "ipvs-"+form.name+".txt", []byte(b.String()))
	}
}
