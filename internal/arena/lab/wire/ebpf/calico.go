//go:build linux

package ebpf

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

//go:embed bpf/calico.o
var calicoObject []byte

// calicoL3Object holds the same programs for devices without an Ethernet header.
//
//go:embed bpf/calico_l3.o
var calicoL3Object []byte

// calicoEBPF is shared by the pieces of Calico's eBPF dataplane. It holds every node's maps of
// bpf/calico.c, which Felix fills in the product.
type calicoEBPF struct {
	nodes  map[*wire.Node]*calicoNode
	socket *sockets // nil until there is a Service mechanism
	pods   uint32   // numbers given to pods so far
}

type calicoNode struct {
	*ebpf.Collection // the uplink's programs and all maps of the node
	services         calicoServices
}

// calicoServices holds a node's maps of Services and the entries written to them.
type calicoServices struct {
	frontends, backends *ebpf.Map

	keys []calicoFrontendKey
	last uint32 // last number given; no number is used twice
}

// The structures of bpf/calico.c.
type (
	calicoRoute       struct{ Flags, Next uint32 }
	calicoFrontendKey struct {
		Length uint32
		Addr   [4]byte
		Port   [2]byte
		Proto  uint8
		Source [4]byte
		_      uint8
	}
	calicoFrontend   struct{ ID, Count, Local, Affinity, Flags uint32 }
	calicoBackendKey struct{ ID, Ordinal uint32 }
)

// Flags of a route.
const (
	calicoWorkload = 1
	calicoLocal    = 2
	calicoHost     = 4
	calicoInPool   = 8
)

// calicoGateway is the pods' gateway on every node; calicoMAC is the MAC address of the node's
// end of every pod's link (cni-plugin/pkg/dataplane/linux).
var (
	calicoGateway = netip.MustParseAddr("169.254.1.1")
	calicoMAC     = net.HardwareAddr{0xee, 0xee, 0xee, 0xee, 0xee, 0xee}
)

// calicoBoth lists the programs of both directions.
var calicoBoth = []string{"to_host", "from_host"}

func calicoNodeOf(c *ebpf.Collection) *calicoNode {
	return &calicoNode{Collection: c, services: calicoServices{frontends: c.Maps["frontends"], backends: c.Maps["backends"]}}
}

// shareMaps returns the node's maps, for programs that are loaded later.
func (n *calicoNode) shareMaps() map[string]*ebpf.Map {
	shared := map[string]*ebpf.Map{}
	for name, m := range n.Maps {
		if name[0] != '.' {
			shared[name] = m
		}
	}
	return shared
}

var CalicoVeth = wire.Attach{
	Name:    "ptp-ebpf",
	Summary: "a routed veth with eBPF programs at tc, there and at the uplink, as Calico's eBPF dataplane has",
	Setup: func(ctx context.Context, f *wire.Fabric, _ wire.Params) error {
		c := &calicoEBPF{nodes: map[*wire.Node]*calicoNode{}}
		wire.Share(f, c)
		f.OnDown(c.close)
		return f.OnUplinks(ctx, func(n *wire.Node, h *netlink.Handle, uplink netlink.Link) error {
			// The sockets of all nodes are in one control group, so one map holds the
			// addresses that they connected to.
			shared := map[string]*ebpf.Map{}
			if first := c.nodes[f.Nodes[0]]; first != nil {
				shared["socket_flows"] = first.Maps["socket_flows"]
			}
			node, err := loadEBPF(calicoObject, calicoBoth, map[string]any{"workload": false}, shared)
			if err != nil {
				return err
			}
			c.nodes[n] = calicoNodeOf(node)
			for _, peer := range f.Nodes {
				flags := uint32(calicoHost)
				if peer == n {
					flags |= calicoLocal
				} else if err := calicoPut(node, peer.PodCIDR, calicoRoute{calicoWorkload | calicoInPool, 0}); err != nil {
					return err
				}
				if err := calicoPut(node, netip.PrefixFrom(peer.Addr.Addr(), 32), calicoRoute{flags, 0}); err != nil {
					return err
				}
			}
			return calicoPrograms(h, uplink.Attrs().Index, node)
		})
	},
	Plug: calicoPlug,
}

// calicoPrograms attaches the programs of both directions to an interface.
func calicoPrograms(h *netlink.Handle, index int, programs *ebpf.Collection) error {
	if err := classify(h, index, netlink.HANDLE_MIN_INGRESS, "to_host", programs.Programs["to_host"]); err != nil {
		return err
	}
	return classify(h, index, netlink.HANDLE_MIN_EGRESS, "from_host", programs.Programs["from_host"])
}

// calicoPut writes the route of an address into the programs' map.
func calicoPut(node *ebpf.Collection, p netip.Prefix, r calicoRoute) error {
	if err := node.Maps["routes"].Put(ciliumPrefix{Length: uint32(p.Bits()), Addr: p.Addr().As4()}, r); err != nil {
		return fmt.Errorf("eBPF routes: %w", err)
	}
	return nil
}

func (c *calicoEBPF) close() error {
	for _, n := range c.nodes {
		n.Close()
	}
	if c.socket != nil {
		return c.socket.close()
	}
	return nil
}

// calicoOf returns what the attachment ptp-ebpf shares with other pieces.
func calicoOf(f *wire.Fabric, piece string) (*calicoEBPF, error) {
	c, ok := wire.FindShared[*calicoEBPF](f)
	if !ok {
		return nil, fmt.Errorf("%s: works with the attachment ptp-ebpf only", piece)
	}
	return c, nil
}

func calicoPlug(_ context.Context, f *wire.Fabric, pod *wire.Pod, _ wire.Params) (addr netip.Addr, err error) {
	c, err := calicoOf(f, "ptp-ebpf")
	if err != nil {
		return addr, err
	}
	node := pod.Node
	addr = node.PodAddr(pod.Nth)
	c.pods++
	h, err := node.NS.Netlink()
	if err != nil {
		return addr, err
	}
	defer h.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = fmt.Sprintf("cali%d", c.pods), f.PodMTU(), calicoMAC
	if err := h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: podInterface, PeerNamespace: netlink.NsFd(pod.NS.FD())}); err != nil {
		return addr, fmt.Errorf("veth: %w", err)
	}
	link, err := h.LinkByName(attrs.Name)
	if err != nil {
		return addr, err
	}
	index := link.Attrs().Index
	maps := c.nodes[node]
	constants := map[string]any{"workload": true, "counters_index": c.pods}
	programs, err := loadEBPF(calicoObject, calicoBoth, constants, maps.shareMaps())
	if err != nil {
		return addr, err
	}
	f.OnDown(func() error { programs.Close(); return nil })
	if err := calicoPut(maps.Collection, netip.PrefixFrom(addr, 32), calicoRoute{calicoWorkload | calicoLocal | calicoInPool, uint32(index)}); err != nil {
		return addr, err
	}
	if err := calicoPrograms(h, index, programs); err != nil {
		return addr, err
	}
	if err := h.LinkSetUp(link); err != nil {
		return addr, err
	}
	if err := h.RouteAdd(&netlink.Route{LinkIndex: index, Dst: wire.IPNet(netip.PrefixFrom(addr, 32)), Scope: netlink.SCOPE_LINK}); err != nil {
		return addr, fmt.Errorf("route to the pod: %w", err)
	}
	if err := podLink(pod, podInterface, addr, calicoGateway, f.PodMTU()); err != nil {
		return addr, err
	}
	if err := calicoNeighbour(pod); err != nil {
		return addr, err
	}
	if c.socket != nil {
		return addr, c.socket.serve(pod.NS)
	}
	return addr, nil
}

// calicoNeighbour writes the gateway's MAC address into the pod's neighbour table. In Calico the
// node answers ARP for the gateway (proxy_arp). A node does so only if it has a default route,
// and the lab's nodes have none.
func calicoNeighbour(pod *wire.Pod) error {
	h, err := pod.NS.Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(podInterface)
	if err != nil {
		return err
	}
	err = h.NeighSet(&netlink.Neigh{
		LinkIndex: link.Attrs().Index, State: netlink.NUD_PERMANENT, Type: unix.RTN_UNICAST,
		IP: calicoGateway.AsSlice(), HardwareAddr: calicoMAC,
	})
	if err != nil {
		return fmt.Errorf("neighbour %s: %w", calicoGateway, err)
	}
	return nil
}

// CalicoDevice attaches the programs to another device of the node.
var CalicoDevice = wire.Transport{
	Name:    "ebpf-device",
	Summary: "eBPF programs of Calico at a tunnel's device, as at the uplink",
	Params:  []string{"device"},
	Setup: func(ctx context.Context, f *wire.Fabric, p wire.Params) error {
		c, err := calicoOf(f, "ebpf-device")
		if err != nil {
			return err
		}
		device := p.Text("device", "")
		return f.OnUplinks(ctx, func(n *wire.Node, h *netlink.Handle, _ netlink.Link) error {
			link, err := h.LinkByName(device)
			if err != nil {
				return fmt.Errorf("ebpf-device: %q: %w; give it the device of a tunnel or of the encryption piece", device, err)
			}
			object := calicoObject
			if len(link.Attrs().HardwareAddr) == 0 {
				object = calicoL3Object
			}
			programs, err := loadEBPF(object, calicoBoth, map[string]any{"workload": false}, c.nodes[n].shareMaps())
			if err != nil {
				return err
			}
			f.OnDown(func() error { programs.Close(); return nil })
			return calicoPrograms(h, link.Attrs().Index, programs)
		})
	},
}

// CalicoService is Calico's load balancer: it translates TCP when a socket connects, other
// protocols at tc.
var CalicoService = wire.Service{
	Name:    "ebpf-nat",
	Summary: "Services in eBPF maps: TCP when a socket connects, the rest per packet at tc (Calico)",
	Setup: func(_ context.Context, f *wire.Fabric, _ wire.Params) (wire.Proxy, error) {
		c, err := calicoOf(f, "ebpf-nat")
		if err != nil {
			return nil, err
		}
		programs := map[string]ebpf.AttachType{"connect_balancer": ebpf.AttachCGroupInet4Connect}
		c.socket, err = atSockets(f, calicoObject, programs, c.nodes[f.Nodes[0]].shareMaps())
		return c, err
	},
}

// Sync implements Proxy. The program at sockets uses the first node's maps. All programs of a
// node use one set of maps.
func (c *calicoEBPF) Sync(ctx context.Context, f *wire.Fabric, table []wire.ServicePort) error {
	return f.Parallel(ctx, func(ctx context.Context, n *wire.Node) error { return c.nodes[n].services.sync(ctx, table) })
}

// Forget implements Proxy.
func (c *calicoEBPF) Forget(ctx context.Context, f *wire.Fabric) error {
	if err := empty(c.socket.Maps["socket_flows"]); err != nil {
		return err
	}
	return forgetMaps(ctx, f, func(n *wire.Node) *ebpf.Collection { return c.nodes[n].Collection }, "conntrack")
}

// sync replaces all Services of a node by those of the table. It writes backends before the
// entries that point to them (felix/bpf/proxy/syncer.go).
func (s *calicoServices) sync(ctx context.Context, table []wire.ServicePort) error {
	if err := s.clear(); err != nil {
		return err
	}
	for _, port := range table {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.add(port); err != nil {
			return fmt.Errorf("add Service %s: %w", port.Name, err)
		}
	}
	return nil
}

func (s *calicoServices) add(port wire.ServicePort) error {
	s.last++
	for i, b := range port.Backends {
		if err := s.backends.Put(calicoBackendKey{s.last, uint32(i)}, serviceAddress{Addr: b.Addr().As4(), Port: bigPort(b.Port())}); err != nil {
			return fmt.Errorf("backend: %w", err)
		}
	}
	// Any source: the prefix ends before it.
	key := calicoFrontendKey{Length: 56, Addr: port.ClusterIP.As4(), Port: bigPort(port.Port), Proto: protocols[port.Protocol]}
	if err := s.frontends.Put(key, calicoFrontend{ID: s.last, Count: uint32(len(port.Backends))}); err != nil {
		return err
	}
	s.keys = append(s.keys, key)
	return nil
}

// clear deletes all Services.
func (s *calicoServices) clear() error {
	for _, key := range s.keys {
		var old calicoFrontend
		if err := s.frontends.Lookup(key, &old); err != nil {
			return err
		}
		if err := s.frontends.Delete(key); err != nil {
			return err
		}
		for i := range old.Count {
			if err := s.backends.Delete(calicoBackendKey{old.ID, i}); err != nil {
				return err
			}
		}
	}
	s.keys = nil
	return nil
}
