//go:build linux

package wire

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: %s", file, diff)
	}
}

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
func kubeProxyTests() []ServicePort {
	return []ServicePort{
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
	golden(t, "kube-proxy.iptables", text)

	// A second table takes the first's chains away, not its own.
	text, left := iptablesRules(kubeProxyTests()[:1], clusterCIDR, now)
	for name := range now {
		if gone := strings.Contains(string(text), "-X "+name+"\n"); gone == left[name] {
			t.Errorf("%s: deleted %v, still used %v", name, gone, left[name])
		}
	}
}

// Comments are left out where there are many endpoints, but not those that
// kube-proxy keeps.
func TestIPTablesRulesOfManyEndpoints(t *testing.T) {
	var table []ServicePort
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
	golden(t, "kube-proxy.nft", nftablesRules(kubeProxyTests(), clusterCIDR, netip.MustParseAddr("192.168.0.2")))
}

// One node's view of IPVS: what its programs read.
func TestIPVSRules(t *testing.T) {
	own, node := netip.MustParsePrefix("10.180.0.4/32"), netip.MustParseAddr("192.168.0.2")
	for _, form := range ipvsForms() {
		var b strings.Builder
		b.WriteString("# iptables\n" + form.rules(clusterCIDR, own, node))
		b.WriteString("# ipset, once\n" + form.sets)
		b.WriteString("# ipset\n" + string(form.members(kubeProxyTests(), own, node)))
		b.WriteString("# ipvsadm\n" + string(ipvsServers(kubeProxyTests())))
		golden(t, "ipvs-"+form.name+".txt", []byte(b.String()))
	}
}
