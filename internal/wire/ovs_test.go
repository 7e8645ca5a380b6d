//go:build linux

package wire

import (
	"net/netip"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// antreaAll is every flow of the second of three nodes with one pod.
func antreaAll() []string {
	f := three()
	n := f.Nodes[1]
	flows := append(antreaMisses(), antreaFlows(n, antreaBase)...)
	flows = append(flows, antreaFlows(n, antreaProxyBase)...)
	flows = append(flows, antreaFlows(n, antreaTunnelBase, "{port}", "1")...)
	flows = append(flows, antreaPeers(f, n, antreaPeerTunnel)...)
	addr := n.PodAddr(0)
	return append(flows, antreaFlows(n, antreaPodFlows, "{port}", "3", "{ip}", addr.String(), "{mac}", podMAC(addr).String())...)
}

func antreaTable() []ServicePort {
	local, remote := netip.MustParseAddrPort("10.244.1.2:80"), netip.MustParseAddrPort("10.244.2.3:80")
	vip := netip.MustParseAddr("10.96.0.10")
	return []ServicePort{
		{Name: "default/web:http", ClusterIP: vip, Protocol: "TCP", Port: 8080, Backends: []netip.AddrPort{local, remote}},
		{Name: "default/web:quic", ClusterIP: vip, Protocol: "UDP", Port: 8080, Backends: []netip.AddrPort{remote}},
	}
}

func TestAntreaFlows(t *testing.T) {
	flows := antreaAll()
	if i := strings.Index(strings.Join(flows, "\n"), "{"); i >= 0 {
		t.Errorf("a blank was not filled in")
	}
	named := regexp.MustCompile(`(table=|goto_table:|resubmit:)[A-Z]`)
	for _, flow := range flows {
		if named.MatchString(flow) {
			t.Errorf("a table that the pipeline does not have: %s", flow)
		}
	}
	golden(t, "antrea.flows", []byte(strings.Join(flows, "\n")+"\n"))
	golden(t, "antrea-services.bundle", antreaServiceBundle(three().Nodes[1], antreaTable()))
}

// ovs-ofctl itself understands every flow.
func TestAntreaFlowsParse(t *testing.T) {
	ofctl, err := exec.LookPath("ovs-ofctl")
	if err != nil {
		t.Skip("no ovs-ofctl; apt-get install openvswitch-switch")
	}
	flows := antreaAll()
	for line := range strings.Lines(string(antreaServiceBundle(three().Nodes[1], antreaTable()))) {
		if flow, ok := strings.CutPrefix(line, "flow add "); ok {
			flows = append(flows, strings.TrimSpace(flow))
		}
	}
	cmd := exec.Command(ofctl, "-O", "OpenFlow15", "parse-flows", "-")
	cmd.Stdin = strings.NewReader(strings.Join(flows, "\n") + "\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if n := strings.Count(string(out), "FLOW_MOD"); n != len(flows) {
		t.Errorf("%d flows parsed of %d: %s", n, len(flows), out)
	}
}

func TestOVNNames(t *testing.T) {
	f := three()
	o := &ovnNet{group: func(n *Node) string { return "ovn.default." + n.Name }}
	want := []string{
		"--", "lsp-add", "join", "node-node3",
		"--", "lsp-set-addresses", "node-node3", "0a:58:64:40:00:04 100.64.0.4",
		"--", "lr-policy-add", "ovn-cluster", "30000", "ip4.dst == 10.10.0.4", "reroute", "100.64.0.4",
		"--", "pg-add", "ovn.default.node3",
		"--", "lr-policy-add", "ovn-cluster", "29000", "ip4.src == $ovn.default.node3_ip4", "reroute", "100.64.0.4",
	}
	if diff := cmp.Diff(want, ovnNode(o, f.Nodes[2])); diff != "" {
		t.Error(diff)
	}
	vip := []string{"--", "lb-add", "cluster-tcp-loadbalancer", "10.96.0.10:8080", "10.244.1.2:80,10.244.2.3:80", "tcp"}
	if diff := cmp.Diff(vip, ovnVIP(antreaTable()[0])); diff != "" {
		t.Error(diff)
	}
}

// A command that adds a batch of Services stays far below the kernel's limit
// for arguments, a quarter of an 8 MiB stack.
func TestOVNBatch(t *testing.T) {
	bytes := 0
	for range ovnBatch {
		for _, arg := range ovnVIP(antreaTable()[0]) {
			bytes += len(arg) + 1 + 8
		}
	}
	if bytes > 1<<20 {
		t.Errorf("%d bytes of arguments", bytes)
	}
}
