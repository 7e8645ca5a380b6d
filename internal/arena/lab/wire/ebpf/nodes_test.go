//go:build linux

package ebpf

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/linux"
)

// twoNodes are nodes whose uplink leads nowhere.
func twoNodes(t *testing.T) *wire.Fabric {
	t.Helper()
	f := &wire.Fabric{MTU: 1500, Overhead: 50, PodNetwork: netip.MustParsePrefix("10.244.0.0/16")}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	for i := range 2 {
		box, err := linux.NewNetNS(fmt.Sprintf("node%d", i+1))
		if errors.Is(err, unix.EPERM) {
			t.Skip("this user may make no network namespace; run as root: go test ./internal/arena/lab/wire")
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = box.Close() })
		n := &wire.Node{
			Index: i, Name: box.Name, NS: box,
			Addr:    netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 10, 0, byte(i + 2)}), 16),
			PodCIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(i), 0}), 24),
		}
		f.Nodes = append(f.Nodes, n)
		h, err := box.Netlink()
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		attrs := netlink.NewLinkAttrs()
		attrs.Name = wire.UplinkName
		link := &netlink.Veth{LinkAttrs: attrs, PeerName: "nowhere"}
		if err := errors.Join(h.LinkAdd(link), h.AddrAdd(link, &netlink.Addr{IPNet: wire.IPNet(n.Addr)}), h.LinkSetUp(link)); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// attached are the programs at an interface of the node, by direction.
func attached(t *testing.T, n *wire.Node, device string) (ingress, egress int) {
	t.Helper()
	h, err := n.NS.Netlink()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	link, err := h.LinkByName(device)
	if err != nil {
		t.Fatal(err)
	}
	for parent, count := range map[uint32]*int{netlink.HANDLE_MIN_INGRESS: &ingress, netlink.HANDLE_MIN_EGRESS: &egress} {
		filters, err := h.FilterList(link, parent)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range filters {
			if _, ok := f.(*netlink.BpfFilter); ok {
				*count++
			}
		}
	}
	return ingress, egress
}

// mayLoad skips where the user may load no programs.
func mayLoad(t *testing.T) { load(t, ciliumObject, []string{"to_overlay"}, nil) }

// Without kube-proxy replacement Cilium has no program at the uplink; at the
// tunnel it always has two.
func TestCiliumAtDevices(t *testing.T) {
	mayLoad(t)
	for name, c := range map[string]struct {
		transport wire.Transport
		replaced  bool
		device    string
		want      int // each way
	}{
		"routes":              {CiliumRoutes, false, wire.UplinkName, 0},
		"routes, node ports":  {CiliumRoutes, true, wire.UplinkName, 1},
		"tunnel":              {CiliumVXLAN, false, wire.UplinkName, 0},
		"tunnel, node ports":  {CiliumVXLAN, true, wire.UplinkName, 1},
		"the tunnel's device": {CiliumVXLAN, false, "cilium_vxlan", 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := twoNodes(t)
			if err := ciliumSetup(t.Context(), f, wire.Params{"kube-proxy-replacement": c.replaced}); err != nil {
				t.Fatal(err)
			}
			if err := c.transport.Setup(t.Context(), f, nil); err != nil {
				t.Fatal(err)
			}
			if ingress, egress := attached(t, f.Nodes[0], c.device); ingress != c.want || egress != c.want {
				t.Errorf("%d and %d programs at %s, want %d each way", ingress, egress, c.device, c.want)
			}
		})
	}
}

// Programs at sockets and at every node look at the same Services and at the
// same memory of what sockets have asked for; every node forgets connections.
func TestCalicoNodes(t *testing.T) {
	mayLoad(t)
	f := twoNodes(t)
	if err := CalicoVeth.Setup(t.Context(), f, nil); err != nil {
		t.Fatal(err)
	}
	c, _ := wire.FindShared[*calicoEBPF](f)
	first, second := c.nodes[f.Nodes[0]], c.nodes[f.Nodes[1]]
	if a, b := mapID(t, first.Maps["socket_flows"]), mapID(t, second.Maps["socket_flows"]); a != b {
		t.Errorf("socket_flows are maps %d and %d", a, b)
	}
	if a, b := mapID(t, first.Maps["conntrack"]), mapID(t, second.Maps["conntrack"]); a == b {
		t.Errorf("both nodes have conntrack %d", a)
	}
	if err := c.Sync(t.Context(), f, aTable); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*calicoNode{first, second} {
		if got := entries(t, n.Maps["backends"]); got != 2 {
			t.Errorf("%d backends, want 2", got)
		}
		send(t, n.Programs["to_host"], frame(unix.IPPROTO_TCP, "10.244.0.2:40000", "10.96.0.2:80"))
		if got := entries(t, n.Maps["conntrack"]); got != 2 {
			t.Errorf("%d entries of a translated connection, want 2", got)
		}
	}
	c.socket = &sockets{Collection: first.Collection} // no control group is needed for this
	if err := c.Forget(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	c.socket = nil
	for _, n := range []*calicoNode{first, second} {
		if got := entries(t, n.Maps["conntrack"]); got != 0 {
			t.Errorf("%d entries are not forgotten", got)
		}
	}
	for _, piece := range []wire.Transport{CalicoDevice, CalicoNotrack} {
		if err := piece.Setup(t.Context(), f, wire.Params{"device": wire.UplinkName}); err != nil {
			t.Errorf("%s: %v", piece.Name, err)
		}
	}
}

func mapID(t *testing.T, m *ebpf.Map) ebpf.MapID {
	t.Helper()
	info, err := m.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	return id
}
