//go:build linux

package ebpf

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/arena/lab/wire/plain"
	"github.com/cnibench/cnibench/internal/linux"
)

// A node that masquerades tracks what it forwards, and with Felix's rules it
// tracks only what is for itself.
func TestCalicoNotrack(t *testing.T) {
	for name, c := range map[string]struct {
		rules bool
		local bool // for the node itself
		to    string
		want  int // connections
	}{
		"forwarded":            {false, false, "10.2.0.2:9", 1},
		"forwarded, untracked": {true, false, "10.2.0.2:9", 0},
		"to the node":          {true, true, "10.1.0.1:9", 1},
	} {
		t.Run(name, func(t *testing.T) {
			node := twoNodes(t).Nodes[0]
			masqueraded := &wire.Fabric{Nodes: []*wire.Node{node}, PodNetwork: netip.MustParsePrefix("10.0.0.0/8")}
			if err := errors.Join(node.NS.SetSysctl("net.ipv4.ip_forward", "1"), plain.Masquerade.Setup(t.Context(), masqueraded, nil)); err != nil {
				t.Fatal(err)
			}
			if c.rules {
				if err := notrackForwarded(node); err != nil {
					t.Fatal(err)
				}
			}
			from := behind(t, node, "10.1.0.1/24", "10.1.0.2/24")
			where := behind(t, node, "10.2.0.1/24", "10.2.0.2/24")
			if c.local {
				where = node.NS
			}
			var server net.PacketConn
			err := where.Do(func() (err error) {
				server, err = net.ListenPacket("udp", c.to)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			err = from.Do(func() error {
				conn, err := net.Dial("udp", c.to)
				if err != nil {
					return err
				}
				_, err = conn.Write([]byte("hello"))
				return errors.Join(err, conn.Close())
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := server.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := server.ReadFrom(make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
			h, err := netlink.NewHandleAt(netns.NsHandle(node.NS.FD()), unix.NETLINK_NETFILTER)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			flows, err := h.ConntrackTableList(netlink.ConntrackTable, unix.AF_INET)
			if err != nil {
				t.Fatal(err)
			}
			if len(flows) != c.want {
				t.Errorf("%d connections are tracked, want %d: %v", len(flows), c.want, flows)
			}
		})
	}
}

// behind returns a namespace behind the node, which is its gateway.
func behind(t *testing.T, node *wire.Node, gateway, addr string) *linux.NetNS {
	t.Helper()
	box, err := linux.NewNetNS("behind-" + addr[:4])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close() })
	h, err := node.NS.Netlink()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	inside, err := box.Netlink()
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	at, own := netip.MustParsePrefix(gateway), netip.MustParsePrefix(addr)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "to-" + addr[:4]
	link := &netlink.Veth{LinkAttrs: attrs, PeerName: podInterface, PeerNamespace: netlink.NsFd(box.FD())}
	if err := errors.Join(h.LinkAdd(link), h.AddrAdd(link, &netlink.Addr{IPNet: wire.IPNet(at)}), h.LinkSetUp(link)); err != nil {
		t.Fatal(err)
	}
	peer, err := inside.LinkByName(podInterface)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(inside.AddrAdd(peer, &netlink.Addr{IPNet: wire.IPNet(own)}), inside.LinkSetUp(peer),
		inside.RouteAdd(&netlink.Route{LinkIndex: peer.Attrs().Index, Gw: at.Addr().AsSlice()})); err != nil {
		t.Fatal(err)
	}
	return box
}

// Without an Ethernet header a connection is tracked all the same, and the
// node's stack takes the packet on.
func TestCalicoWithoutEthernet(t *testing.T) {
	device := load(t, calicoL3Object, calicoBoth, nil)
	// A test run has every packet begin with an Ethernet header: bytes 12 and
	// 13, here of the source address, are then its type.
	f := frame(unix.IPPROTO_TCP, "8.0.0.2:40000", "10.244.0.2:80")[14:]
	if got := binary.BigEndian.Uint16(f[12:]); got != unix.ETH_P_IP {
		t.Fatalf("type %#x", got)
	}
	if verdict, _ := send(t, device.Programs["to_host"], f); verdict != verdictPass {
		t.Errorf("verdict %#x, want %#x", verdict, verdictPass)
	}
	key := [16]byte{0: unix.IPPROTO_TCP, 4: 8, 7: 2, 8: 10, 9: 244, 11: 2}
	binary.BigEndian.PutUint16(key[12:], 40000)
	binary.BigEndian.PutUint16(key[14:], 80)
	value, err := device.Maps["conntrack"].LookupBytes(key)
	if err != nil || value == nil {
		t.Errorf("no entry of the connection (error %v)", err)
	}
}
