//go:build linux

package ovs

import (
	_ "embed"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// antreaPipeline lists the tables of Antrea's pipeline, which are numbered in this order
// (antrea-io/antrea v1.15.0 pkg/agent/openflow/pipeline.go and framework.go,
// getRequiredTables, with the features that are on by default). A packet that matches no
// flow goes on to the next table, unless the table's line says that it is dropped.
//
//go:embed antrea.tables
var antreaPipeline string

// antreaTables holds the lines of antreaPipeline: a table's name and, if a packet that matches
// no flow does not go on to the next table, what happens to it.
var antreaTables = strings.Split(strings.TrimSpace(antreaPipeline), "\n")

// Antrea's OpenFlow ports (pkg/agent/config/node_config.go: DefaultTunOFPort,
// HostGatewayOFPort) and the MAC address of every gateway behind a
// tunnel (pkg/agent/openflow/client.go, GlobalVirtualMAC).
const (
	antreaTunnelPort = 1
	antreaVirtualMAC = "aa:bb:cc:dd:ee:ff"
)

var antreaTableName = regexp.MustCompile(`(table=|goto_table:|resubmit:)([A-Z][A-Za-z0-9]*)`)

// antreaNumbers replaces the names of tables in a flow by their numbers, since ovs-ofctl knows
// no names.
func antreaNumbers(flow string) string {
	return antreaTableName.ReplaceAllStringFunc(flow, func(ref string) string {
		part := antreaTableName.FindStringSubmatch(ref)
		for i, t := range antreaTables {
			if name, _, _ := strings.Cut(t, " "); name != part[2] {
				continue
			}
			if part[1] == "resubmit:" {
				return fmt.Sprintf("resubmit(,%d)", i)
			}
			return fmt.Sprintf("%s%d", part[1], i)
		}
		return ref // unknown: ovs-ofctl will refuse it
	})
}

// antreaFlows returns the flows of a template. It replaces {gw} and {gwmac} by the node's
// gateway, {pods} by the range of its pods' addresses, {node} by its own address, and each
// first text of pairs by the second.
func antreaFlows(n *wire.Node, text string, pairs ...string) []string {
	pairs = append(pairs,
		"{gw}", wire.GatewayOf(n.PodCIDR).String(), "{gwmac}", antreaGatewayMAC(n).String(),
		"{pods}", n.PodCIDR.Masked().String(), "{node}", n.Addr.Addr().String(),
	)
	var flows []string
	for line := range strings.Lines(strings.NewReplacer(pairs...).Replace(text)) {
		if line = strings.TrimSpace(line); line != "" {
			flows = append(flows, antreaNumbers(line))
		}
	}
	return flows
}

// antreaMisses returns the flows for packets that match no other flow.
func antreaMisses() []string {
	var flows []string
	for i, t := range antreaTables {
		_, action, ends := strings.Cut(t, " ")
		if !ends {
			action = fmt.Sprintf("goto_table:%d", i+1)
		}
		flows = append(flows, fmt.Sprintf("table=%d,priority=0,actions=%s", i, action))
	}
	return flows
}

// antreaGatewayMAC returns the MAC address of the node's antrea-gw0. Antrea draws a random one;
// here it is made from the node's number.
func antreaGatewayMAC(n *wire.Node) net.HardwareAddr {
	return net.HardwareAddr{0x0a, 0, 0, 1, byte(n.Index >> 8), byte(n.Index)}
}

// antreaBase holds the flows of every node's bridge (podConnectivityInitFlows of
// pkg/agent/openflow/pod_connectivity_test.go, ingressClassifierFlows and
// skipPolicyRuleCheckFlows of network_policy.go, externalFlows of pipeline.go;
// flows that send packets to the agent are left out, because the lab has no agent).
//
//go:embed antrea.flows
var antreaBase string

// antreaProxyBase holds AntreaProxy's flows of every bridge that do not depend on Services
// (serviceInitFlows of pkg/agent/openflow/service_test.go). It lacks the flow with which the
// agent rejects packets for Services without endpoints.
//
//go:embed antrea_proxy.flows
var antreaProxyBase string

// antreaPodFlows holds the flows of a pod (Test_client_InstallPodFlows of
// pkg/agent/openflow/client_test.go).
const antreaPodFlows = `
table=ARPSpoofGuard,priority=200,arp,in_port={port},arp_spa={ip},arp_sha={mac},actions=goto_table:ARPResponder
table=Classifier,priority=190,in_port={port},actions=set_field:0x3/0xf->reg0,goto_table:SpoofGuard
table=SpoofGuard,priority=200,ip,in_port={port},dl_src={mac},nw_src={ip},actions=goto_table:UnSNAT
table=L3Forwarding,priority=200,ip,reg0=0x200/0x200,nw_dst={ip},actions=set_field:{gwmac}->eth_src,set_field:{mac}->eth_dst,goto_table:L3DecTTL
table=L2ForwardingCalc,priority=200,dl_dst={mac},actions=set_field:{port}->reg1,set_field:0x200000/0x600000->reg0,goto_table:IngressSecurityClassifier
`

// antreaTunnelFlow accepts packets from a tunnel port (tunnelClassifierFlow of
// pkg/agent/openflow/pipeline.go).
const antreaTunnelFlow = `
table=Classifier,priority=200,in_port={port},actions=set_field:0x1/0xf->reg0,set_field:0x200/0x200->reg0,goto_table:UnSNAT
`

// antreaTunnelBase holds the further flows of a bridge with a tunnel.
const antreaTunnelBase = antreaTunnelFlow + `
table=L2ForwardingCalc,priority=200,dl_dst=` + antreaVirtualMAC + `,actions=set_field:{port}->reg1,set_field:0x200000/0x600000->reg0,goto_table:IngressSecurityClassifier
`

// The flows of another node (Test_client_InstallNodeFlows of
// pkg/agent/openflow/client_test.go): an ARP answer for its gateway's address, and the route to
// its pods, through the tunnel or through this node's own network stack.
const (
	antreaPeerARP = `
table=ARPResponder,priority=200,arp,arp_tpa={peergw},arp_op=1,actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],set_field:` + antreaVirtualMAC + `->eth_src,set_field:2->arp_op,move:NXM_NX_ARP_SHA[]->NXM_NX_ARP_THA[],set_field:` + antreaVirtualMAC + `->arp_sha,move:NXM_OF_ARP_SPA[]->NXM_OF_ARP_TPA[],set_field:{peergw}->arp_spa,IN_PORT
table=EgressMark,priority=210,ip,nw_dst={peer},actions=set_field:0x20/0xf0->reg0,goto_table:L2ForwardingCalc
`
	antreaPeerTunnel = antreaPeerARP + `
table=L3Forwarding,priority=200,ip,nw_dst={peerpods},actions=set_field:{gwmac}->eth_src,set_field:` + antreaVirtualMAC + `->eth_dst,set_field:{peer}->tun_dst,set_field:0x10/0xf0->reg0,goto_table:L3DecTTL
`
	antreaPeerGateway = antreaPeerARP + `
table=L3Forwarding,priority=200,ip,nw_dst={peerpods},actions=set_field:{gwmac}->eth_dst,set_field:0x20/0xf0->reg0,goto_table:L3DecTTL
`
)

// antreaPeers returns the template's flows for every other node.
func antreaPeers(f *wire.Fabric, n *wire.Node, text string) []string {
	var flows []string
	for _, peer := range f.Nodes {
		if peer != n {
			flows = append(flows, antreaFlows(n, text,
				"{peer}", peer.Addr.Addr().String(), "{peerpods}", peer.PodCIDR.Masked().String(), "{peergw}", wire.GatewayOf(peer.PodCIDR).String())...)
		}
	}
	return flows
}

// antreaEndpoint returns an IPv4 address as a register holds it.
func antreaEndpoint(a netip.Addr) string {
	b := a.As4()
	return fmt.Sprintf("0x%02x%02x%02x%02x", b[0], b[1], b[2], b[3])
}
