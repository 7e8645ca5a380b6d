//go:build linux

package ovs

import (
	"context"
	"encoding/json"
	"net/netip"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/testutil/wiretest"
)

// antreaAll is every flow of the second of three nodes with one pod.
func antreaAll() []string {
	f := wiretest.Three()
	n := f.Nodes[1]
	flows := append(antreaMisses(), antreaFlows(n, antreaBase)...)
	flows = append(flows, antreaFlows(n, antreaProxyBase)...)
	flows = append(flows, antreaFlows(n, antreaTunnelBase, "{port}", "1")...)
	flows = append(flows, antreaPeers(f, n, antreaPeerTunnel)...)
	addr := n.PodAddr(0)
	return append(flows, antreaFlows(n, antreaPodFlows, "{port}", "3", "{ip}", addr.String(), "{mac}", podMAC(addr).String())...)
}

func antreaTable() []wire.ServicePort {
	local, remote := netip.MustParseAddrPort("10.244.1.2:80"), netip.MustParseAddrPort("10.244.2.3:80")
	vip := netip.MustParseAddr("10.96.0.10")
	return []wire.ServicePort{
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
	wiretest.Golden(t, "antrea.flows", []byte(strings.Join(flows, "\n")+"\n"))
	wiretest.Golden(t, "antrea-services.bundle", antreaServiceBundle(wiretest.Three().Nodes[1], antreaTable()))
}

// ovs-ofctl itself understands every flow.
func TestAntreaFlowsParse(t *testing.T) {
	ofctl, err := exec.LookPath("ovs-ofctl")
	if err != nil {
		t.Skip("no ovs-ofctl; apt-get install openvswitch-switch")
	}
	flows := antreaAll()
	for line := range strings.Lines(string(antreaServiceBundle(wiretest.Three().Nodes[1], antreaTable()))) {
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
	f := wiretest.Three()
	o := &ovnNet{group: func(n *wire.Node) string { return "ovn.default." + n.Name }}
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
	vips, err := json.Marshal(ovnVIPs("tcp", antreaTable()))
	if err != nil {
		t.Fatal(err)
	}
	const update = `{"op":"update","row":{"vips":["map",[["10.96.0.10:8080","10.244.1.2:80,10.244.2.3:80"]]]},"table":"Load_Balancer","where":[["name","==","cluster-tcp-loadbalancer"]]}`
	if diff := cmp.Diff(update, string(vips)); diff != "" {
		t.Error(diff)
	}
}

// Whoever knows how much there is to do says how long it may take.
func TestPatient(t *testing.T) {
	limited, cancel := context.WithTimeout(t.Context(), 5*ovsTimeout)
	defer cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		want time.Duration
	}{"limited": {limited, 5 * ovsTimeout}, "endless": {t.Context(), ovsTimeout}} {
		ctx, cancel := withTimeout(c.ctx)
		end, _ := ctx.Deadline()
		if left := time.Until(end); left > c.want || left < c.want-time.Minute {
			t.Errorf("%s: ends in %v, want %v", name, left, c.want)
		}
		cancel()
		if ctx.Err() == nil {
			t.Errorf("%s: can't be cancelled", name)
		}
	}
	o := &ovnNet{central: &ovSwitch{dir: "/run/x"}}
	if argv := strings.Join(o.command("sync"), " "); strings.Contains(argv, "timeout") {
		t.Errorf("%s has an end of its own", argv)
	}
}

func TestOVSDBReply(t *testing.T) {
	for text, want := range map[string]string{
		`{"id":1,"result":[{"count":1},{"count":1}],"error":null}`:                                                 "",
		`{"id":1,"result":[{"count":1},{"error":"constraint violation","details":"no such column"}],"error":null}`: "constraint violation: no such column",
		`{"id":1,"result":null,"error":"unknown database"}`:                                                        "unknown database",
		`{"id":1,"resu`: "ovsdb-server's answer",
		``:              "EOF",
	} {
		err := ovsdbReply(strings.NewReader(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

func FuzzOVSDBReply(f *testing.F) {
	f.Add(`{"id":1,"result":[{"count":1}],"error":null}`)
	f.Add(`{"id":1,"result":[null,{"error":"x"}],"error":{"y":1}}`)
	f.Fuzz(func(t *testing.T, text string) { _ = ovsdbReply(strings.NewReader(text)) })
}
