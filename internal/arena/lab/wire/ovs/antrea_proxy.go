//go:build linux

package ovs

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// AntreaProxy makes Services as AntreaProxy does. A Service is a flow that sends the first
// packet of a connection to a group. The group has a bucket for each endpoint and chooses one;
// connection tracking in the switch keeps the choice. Antrea writes one Service after the
// other; this piece writes all in one bundle of OpenFlow messages.
var AntreaProxy = wire.Service{
	Name:    "antrea-proxy",
	Summary: "Services as flows and select groups of Open vSwitch, translated by its connection tracking (AntreaProxy)",
	Setup: func(ctx context.Context, f *wire.Fabric, _ wire.Params) (wire.Proxy, error) {
		all, err := switches(ctx, f, "system")
		return antreaServices{switches: all}, err
	},
}

type antreaServices struct {
	wire.Tracked
	switches map[*wire.Node]*ovSwitch
}

// antreaServiceCookie distinguishes the flows of Services from AntreaProxy's other flows.
const antreaServiceCookie = "0x1030000000001"

// Sync implements Proxy.
func (a antreaServices) Sync(ctx context.Context, f *wire.Fabric, table []wire.ServicePort) error {
	err := f.Parallel(ctx, func(ctx context.Context, n *wire.Node) error {
		s := a.switches[n]
		if _, err := s.run(ctx, antreaServiceBundle(n, table), "ovs-ofctl", "-O", "OpenFlow15", "bundle", integrationBridge, "-"); err != nil {
			return err
		}
		// Open vSwitch checks the kernel's cached flows against the new ones.
		_, err := s.run(ctx, nil, "ovs-appctl", "-t", s.path("ovs-vswitchd.ctl"), "revalidator/wait")
		return err
	})
	if err != nil {
		return fmt.Errorf("antrea-proxy: %w", err)
	}
	return nil
}

// antreaServiceBundle returns the messages that replace all Services of the node's bridge by
// those of the table (serviceLBFlows, endpointDNATFlow, podHairpinSNATFlow and
// serviceEndpointGroup of pkg/agent/openflow/pipeline.go, for Services of type
// ClusterIP without session affinity).
func antreaServiceBundle(n *wire.Node, table []wire.ServicePort) []byte {
	var b bytes.Buffer
	b.WriteString("group delete group_id=all\n")
	fmt.Fprintf(&b, "flow delete cookie=%s/-1\n", antreaServiceCookie)
	flow := func(format string, args ...any) {
		text := fmt.Sprintf("cookie=%s,", antreaServiceCookie) + fmt.Sprintf(format, args...)
		fmt.Fprintln(&b, "flow add "+antreaNumbers(text))
	}
	seen := map[string]bool{} // endpoints that have a flow already
	for i, svc := range table {
		group, proto := i+1, strings.ToLower(svc.Protocol)
		fmt.Fprintf(&b, "group add group_id=%d,type=select", group)
		for j, e := range svc.Backends {
			remote := ""
			if !n.PodCIDR.Contains(e.Addr()) {
				remote = "set_field:0x4000000/0x4000000->reg4,"
			}
			fmt.Fprint(&b, antreaNumbers(fmt.Sprintf(",bucket=bucket_id:%d,weight:100,actions=%sset_field:%s->reg3,set_field:0x%x/0xffff->reg4,resubmit:EndpointDNAT",
				j, remote, antreaEndpoint(e.Addr()), e.Port())))
		}
		b.WriteByte('\n')
		flow("table=ServiceLB,priority=200,%s,reg4=0x10000/0x70000,nw_dst=%s,tp_dst=%d,actions=set_field:0x200/0x200->reg0,set_field:0x20000/0x70000->reg4,set_field:0x%x->reg7,group:%d",
			proto, svc.ClusterIP, svc.Port, group, group)
		for _, e := range svc.Backends {
			if key := proto + e.String(); seen[key] {
				continue
			} else {
				seen[key] = true
			}
			flow("table=EndpointDNAT,priority=200,%s,reg3=%s,reg4=0x%x/0x7ffff,actions=ct(commit,table=AntreaPolicyEgressRule,zone=65520,nat(dst=%s),exec(set_field:0x10/0x10->ct_mark,move:NXM_NX_REG0[0..3]->NXM_NX_CT_MARK[0..3]))",
				proto, antreaEndpoint(e.Addr()), 0x20000|uint32(e.Port()), e)
			if key := e.Addr().String(); n.PodCIDR.Contains(e.Addr()) && !seen[key] {
				seen[key] = true
				flow("table=SNATMark,priority=190,ct_state=+new+trk,ip,nw_src=%s,nw_dst=%s,actions=ct(commit,table=SNAT,zone=65520,exec(set_field:0x20/0x20->ct_mark,set_field:0x40/0x40->ct_mark))", e.Addr(), e.Addr())
			}
		}
	}
	return b.Bytes()
}
