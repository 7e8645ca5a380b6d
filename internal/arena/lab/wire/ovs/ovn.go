//go:build linux

package ovs

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// Kube-OVN's names (dist/images/install.sh and pkg/controller/config.go of v1.12.8) for the
// cluster's router, the pods' switch, and the switch that connects the nodes.
const (
	ovnRouter     = "ovn-cluster"
	ovnPodSwitch  = "ovn-default"
	ovnJoinSwitch = "join"
)

// sbPort is the southbound database's TCP port.
const sbPort = 6642

// ovnNet is the OVN of a network: its databases and ovn-northd run on the first node, and an
// ovn-controller on every node.
type ovnNet struct {
	switches map[*wire.Node]*ovSwitch
	central  *ovSwitch

	// The transport sets what a pod gets from the switch that it is on.
	address func(*wire.Pod) netip.Prefix
	gateway netip.Addr
	group   func(*wire.Node) string // port group of the node's pods; nil if there is none
}

// OVN connects pods to a logical switch of OVN. The transport, ovn-overlay or ovn-localnet,
// chooses the switch and how it spans the nodes.
var OVN = wire.Attach{
	Name:    "ovn",
	Summary: "a veth to Open vSwitch, whose flows OVN writes from logical switches and routers (Kube-OVN)",
	Params:  []string{"datapath"},
	Setup: func(ctx context.Context, f *wire.Fabric, p wire.Params) error {
		datapath, err := p.OneOf("ovn", "datapath", "system", "netdev")
		if err != nil {
			return err
		}
		all, err := switches(ctx, f, datapath)
		if err != nil {
			return err
		}
		o := &ovnNet{switches: all, central: all[f.Nodes[0]]}
		wire.Share(f, o)
		if err := o.startCentral(ctx); err != nil {
			return err
		}
		return f.Parallel(ctx, func(ctx context.Context, n *wire.Node) error { return o.startController(ctx, n) })
	},
	Plug: func(ctx context.Context, f *wire.Fabric, pod *wire.Pod, _ wire.Params) (netip.Addr, error) {
		o, err := ovnOf(f)
		if err != nil {
			return netip.Addr{}, err
		}
		addr := o.address(pod)
		return addr.Addr(), o.plug(ctx, f, pod, addr)
	},
}

// ovnOf returns the network's OVN.
func ovnOf(f *wire.Fabric) (*ovnNet, error) {
	o, ok := wire.FindShared[*ovnNet](f)
	if !ok {
		return nil, fmt.Errorf("ovn: no OVN in this network; it comes with lab.attach ovn")
	}
	return o, nil
}

// startCentral starts the databases and ovn-northd. It sets Kube-OVN's options that this
// version of OVN knows (dist/images/start-db.sh,
// pkg/controller/controller.go).
func (o *ovnNet) startCentral(ctx context.Context) error {
	s := o.central
	for _, db := range []struct{ name, schema string }{{"ovnnb", nbSchema}, {"ovnsb", sbSchema}} {
		if err := s.database(ctx, db.name, db.schema); err != nil {
			return err
		}
		var remotes []string
		if db.name == "ovnsb" {
			remotes = append(remotes, fmt.Sprintf("--remote=ptcp:%d:%s", sbPort, s.node.Addr.Addr()))
		}
		if err := s.serve(ctx, db.name+".db", db.name+"_db.sock", remotes...); err != nil {
			return err
		}
	}
	if err := s.daemon("ovn-northd", "--ovnnb-db=unix:"+s.path("ovnnb_db.sock"), "--ovnsb-db=unix:"+s.path("ovnsb_db.sock"), "--unixctl="+s.path("ovn-northd.ctl")); err != nil {
		return err
	}
	// ovn-controller may crash (OVN 23.03) if ovn-northd has not written its first row to the
	// southbound database: wait for the row.
	return o.nbctl(ctx, "--wait=sb", "--", "init", "--", "set", "NB_Global", ".",
		"options:use_logical_dp_groups=true", "options:use_ct_inv_match=false",
		"options:ls_dnat_mod_dl_dst=true", "options:ls_ct_skip_dst_lport_ips=true")
}

// startController makes the node a chassis of OVN (dist/images/start-ovs.sh; Geneve
// with UDP checksums, --encap-checksum=true of kube-ovn-cni).
func (o *ovnNet) startController(ctx context.Context, n *wire.Node) error {
	s := o.switches[n]
	err := s.vsctl(ctx, "set", "Open_vSwitch", ".",
		fmt.Sprintf("external_ids:ovn-remote=%q", fmt.Sprintf("tcp:%s:%d", o.central.node.Addr.Addr(), sbPort)),
		"external_ids:ovn-remote-probe-interval=10000",
		"external_ids:ovn-openflow-probe-interval=180",
		"external_ids:ovn-encap-type=geneve",
		"external_ids:ovn-encap-ip="+n.Addr.Addr().String(),
		"external_ids:hostname="+n.Name,
		"external_ids:ovn-bridge="+integrationBridge)
	if err != nil {
		return err
	}
	return s.daemon("ovn-controller", "unix:"+s.path("db.sock"))
}

// plug makes the pod's logical port and its veth pair, and waits until every node has a path
// to the pod (pkg/controller/pod.go, pkg/daemon/ovs_linux.go).
func (o *ovnNet) plug(ctx context.Context, f *wire.Fabric, pod *wire.Pod, addr netip.Prefix) error {
	args := []string{"--", "lsp-add", ovnPodSwitch, pod.Name, "--", "lsp-set-addresses", pod.Name, fmt.Sprintf("%s %s", podMAC(addr.Addr()), addr.Addr())}
	if err := o.nbctl(ctx, args...); err != nil {
		return err
	}
	if o.group != nil {
		if err := o.joinGroup(ctx, pod); err != nil {
			return err
		}
	}
	name, err := podVeth(pod, addr, o.gateway, f.PodMTU(), o.central.kind)
	if err != nil {
		return err
	}
	s := o.switches[pod.Node]
	if _, err := s.port(ctx, integrationBridge, name, "external_ids:iface-id="+pod.Name, "external_ids:vendor=kube-ovn"); err != nil {
		return err
	}
	if err := s.vsctl(ctx, "wait-until", "Interface", name, "external_ids:ovn-installed=true"); err != nil {
		return fmt.Errorf("ovn: ovn-controller has not installed the flows of %s: %w", pod.Name, err)
	}
	return o.settle(ctx)
}

// joinGroup adds the pod to the port group of its node's pods: their packets to addresses
// outside OVN leave through that node.
func (o *ovnNet) joinGroup(ctx context.Context, pod *wire.Pod) error {
	uuid, err := o.central.run(ctx, nil, o.command("get", "Logical_Switch_Port", pod.Name, "_uuid")...)
	if err != nil {
		return err
	}
	return o.nbctl(ctx, "add", "Port_Group", o.group(pod.Node), "ports", strings.TrimSpace(uuid))
}

// nbctl changes the northbound database.
func (o *ovnNet) nbctl(ctx context.Context, args ...string) error {
	_, err := o.central.run(ctx, nil, o.command(args...)...)
	return err
}

// settle waits until every node's switch has followed the database.
func (o *ovnNet) settle(ctx context.Context) error {
	if err := o.nbctl(ctx, "--wait=hv", "sync"); err != nil {
		return fmt.Errorf("ovn: the nodes do not follow the database: %w", err)
	}
	return nil
}

func (o *ovnNet) command(args ...string) []string {
	return append([]string{"ovn-nbctl", "--db=unix:" + o.central.path("ovnnb_db.sock")}, args...)
}
