//go:build linux

package ebpf

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

//go:embed bpf/cilium.o
var ciliumObject []byte

// cilium is shared by the pieces of Cilium's datapath. It holds every node's maps of
// bpf/cilium.c, which the agent fills in the product, and the settings that the agent compiles
// into the programs.
type cilium struct {
	settings map[string]any
	nodes    map[*wire.Node]*ciliumNode
	tunnel   bool     // set by the transport; false: routes
	socket   *sockets // nil: Services at tc
	hubble   string   // the reader of flow events
	pods     uint32   // numbers given to pods so far
}

type ciliumNode struct {
	*ebpf.Collection                // the node's own programs and all its maps
	constants        map[string]any // of the node, for programs that are loaded later
	observer         *observer      // nil if nobody reads the node's flow events
	services         serviceMaps
}

// The structures of bpf/cilium.c.
type (
	ciliumEndpoint struct {
		Ifindex  uint32
		ID, Host uint16
		Identity uint32
		MAC      [6]byte
		NodeMAC  [6]byte
	}
	ciliumPrefix struct {
		Length uint32
		Addr   [4]byte
	}
	ciliumRemote struct {
		Identity uint32
		Tunnel   [4]byte
	}
	ciliumPolicyKey struct {
		Length, Identity uint32
		Egress, Proto    uint8
		Port             [2]byte
	}
	ciliumPolicy struct {
		Proxy, Deny    uint16
		_              uint32
		Packets, Bytes uint64
	}
)

// firstIdentity is the first identity that is not reserved.
const firstIdentity = 256

// Reserved identities (pkg/identity/numericidentity.go).
const (
	ciliumHost  = 1
	ciliumWorld = 2
)

var CiliumVeth = wire.Attach{
	Name:    "veth-ebpf",
	Summary: "a veth whose traffic eBPF programs at tc take to its destination, as Cilium does",
	Params:  ciliumParams,
	Setup:   ciliumSetup,
	Plug: func(_ context.Context, f *wire.Fabric, pod *wire.Pod, _ wire.Params) (netip.Addr, error) {
		return ciliumPlug(f, pod, vethDevice)
	},
}

var ciliumParams = []string{"host-routing", "kube-proxy-replacement", "masquerade", "monitor-aggregation", "monitor-interval", "hubble"}

// ciliumOf returns what the pieces of Cilium share.
func ciliumOf(f *wire.Fabric, piece string) (*cilium, error) {
	c, ok := wire.FindShared[*cilium](f)
	if !ok {
		return nil, fmt.Errorf("%s: works with the attachments veth-ebpf and netkit-ebpf only", piece)
	}
	return c, nil
}

// ciliumSetup reads the settings; the transport loads the nodes' programs.
func ciliumSetup(_ context.Context, f *wire.Fabric, p wire.Params) error {
	aggregation := map[string]uint32{"none": 0, "low": 1, "medium": 3, "maximum": 4}
	level, known := aggregation[p.Text("monitor-aggregation", "medium")]
	if !known {
		return fmt.Errorf("veth-ebpf: monitor-aggregation %q: want none, low, medium or maximum", p["monitor-aggregation"])
	}
	c := &cilium{nodes: map[*wire.Node]*ciliumNode{}, hubble: p.Text("hubble", hubbleAgent)}
	if c.hubble != hubbleOff && c.hubble != hubbleAgent && c.hubble != hubbleRelay {
		return fmt.Errorf("veth-ebpf: hubble %q: want %s, %s or %s", c.hubble, hubbleOff, hubbleAgent, hubbleRelay)
	}
	c.settings = map[string]any{
		"host_routing":   p.Bool("host-routing", false),
		"node_port":      p.Bool("kube-proxy-replacement", false),
		"masquerade":     p.Bool("masquerade", false),
		"per_packet_lb":  true,
		"notify":         true, // even if nobody reads them (TraceNotification)
		"aggregation":    level,
		"report_seconds": uint32(p.Int("monitor-interval", 5)),
	}
	if !p.Bool("kube-proxy-replacement", false) {
		c.settings["snat"] = uint32(1) // without this map, as in the agent
	}
	wire.Share(f, c)
	f.OnDown(c.close)
	for _, n := range f.Nodes {
		// As the agent does (pkg/datapath/loader/base.go): replies may arrive on another
		// interface than the kernel's routes expect.
		if err := n.NS.SetSysctl("net.ipv4.conf.all.rp_filter", "0"); err != nil {
			return err
		}
	}
	return nil
}

func (c *cilium) close() error {
	for _, n := range c.nodes {
		if n.observer != nil {
			n.observer.close()
		}
		n.Close()
	}
	if c.socket != nil {
		return c.socket.close()
	}
	return nil
}

// load loads the node's own programs and its maps.
func (c *cilium) load(n *wire.Node, programs []string, uplink, tunnel int) (*ciliumNode, error) {
	constants := map[string]any{"tunnel_mode": c.tunnel, "tunnel_device": uint32(tunnel), "uplink": uint32(uplink)}
	loaded, err := loadEBPF(ciliumObject, programs, c.with(constants), nil)
	if err != nil {
		return nil, err
	}
	node := &ciliumNode{Collection: loaded, constants: constants, services: serviceMapsOf(loaded)}
	c.nodes[n] = node
	// The node's own addresses are endpoints too; those of other nodes are remote identities.
	host := ciliumEndpoint{Host: 1, Identity: ciliumHost}
	for _, a := range []netip.Addr{n.Addr.Addr(), ciliumRouter(n)} {
		if err := node.Maps["endpoints"].Put(a.As4(), host); err != nil {
			return nil, err
		}
		if err := node.remote(netip.PrefixFrom(a, 32), ciliumHost, netip.Addr{}); err != nil {
			return nil, err
		}
	}
	if err := node.remote(netip.PrefixFrom(netip.IPv4Unspecified(), 0), ciliumWorld, netip.Addr{}); err != nil {
		return nil, err
	}
	if c.hubble == hubbleOff {
		return node, nil
	}
	node.observer, err = observe(node.Maps["events"], c.hubble == hubbleRelay)
	return node, err
}

// with returns the settings and further constants.
func (c *cilium) with(constants ...map[string]any) map[string]any {
	all := maps.Clone(c.settings)
	for _, set := range constants {
		maps.Copy(all, set)
	}
	return all
}

// remote writes the identity of a remote prefix into the node's address cache.
func (n *ciliumNode) remote(p netip.Prefix, identity uint32, tunnel netip.Addr) error {
	r := ciliumRemote{Identity: identity}
	if tunnel.IsValid() {
		r.Tunnel = tunnel.As4()
	}
	return n.Maps["ipcache"].Put(ciliumPrefix{Length: uint32(p.Bits()), Addr: p.Addr().As4()}, r)
}

// ciliumRouter returns the node's own address in its pod network, the gateway of
// its pods (cilium_host).
func ciliumRouter(n *wire.Node) netip.Addr { return wire.GatewayOf(n.PodCIDR) }

// podDevice makes a pair of interfaces and returns the node's end and the MAC address of the
// pod's end.
type podDevice func(h *netlink.Handle, name string, pod *wire.Pod, mtu int) (node netlink.Link, mac net.HardwareAddr, attach func(*ebpf.Program) error, err error)

// podInterface is the name of the pod's end.
const podInterface = "eth0"

func vethDevice(h *netlink.Handle, name string, pod *wire.Pod, mtu int) (netlink.Link, net.HardwareAddr, func(*ebpf.Program) error, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = name, mtu
	mac := net.HardwareAddr{0x0a, 0xcb, 0x01, byte(pod.Node.Index), byte(pod.Nth >> 8), byte(pod.Nth)}
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: podInterface, PeerHardwareAddr: mac, PeerNamespace: netlink.NsFd(pod.NS.FD())}
	if err := h.LinkAdd(pair); err != nil {
		return nil, nil, nil, fmt.Errorf("veth: %w", err)
	}
	link, err := h.LinkByName(name)
	if err != nil {
		return nil, nil, nil, err
	}
	return link, mac, func(p *ebpf.Program) error {
		return classify(h, link.Attrs().Index, netlink.HANDLE_MIN_INGRESS, "from_container", p)
	}, nil
}

// ciliumPlug makes a pod an endpoint. It gives the pod an interface with two programs, and writes
// the entries into every node's maps that the node's agent would write.
func ciliumPlug(f *wire.Fabric, pod *wire.Pod, device podDevice) (addr netip.Addr, err error) {
	c, err := ciliumOf(f, "attachment")
	if err != nil {
		return addr, err
	}
	node := c.nodes[pod.Node]
	if node == nil {
		return addr, errors.New("the attachment needs an eBPF transport; give the contender lab.transport ebpf-vxlan or ebpf-routes")
	}
	addr = pod.Node.PodAddr(pod.Nth)
	c.pods++
	id, identity := c.pods, firstIdentity+c.pods
	h, err := pod.Node.NS.Netlink()
	if err != nil {
		return addr, err
	}
	defer h.Close()
	name := fmt.Sprintf("lxc%d", id)
	link, mac, attach, err := device(h, name, pod, f.PodMTU())
	if err != nil {
		return addr, err
	}
	index, nodeMAC := link.Attrs().Index, link.Attrs().HardwareAddr

	var mac8 [8]byte
	copy(mac8[:], nodeMAC)
	constants := map[string]any{
		"endpoint_id": id, "endpoint_identity": identity, "endpoint_addr": addr.As4(), "endpoint_node_mac": mac8,
	}
	programs, err := loadEBPF(ciliumObject, []string{"from_container", "to_container", "from_stack"}, c.with(node.constants, constants), node.shareMaps())
	if err != nil {
		return addr, err
	}
	f.OnDown(func() error { programs.Close(); return nil })
	for egress := range uint8(2) { // no policy: all peers are allowed in both directions
		if err := programs.Maps["policy"].Put(ciliumPolicyKey{Length: 40, Egress: egress}, ciliumPolicy{}); err != nil {
			return addr, fmt.Errorf("policy: %w", err)
		}
	}
	if err := node.Maps["policy_calls"].Put(id, programs.Programs["to_container"]); err != nil {
		return addr, fmt.Errorf("policy_calls: %w", err)
	}
	e := ciliumEndpoint{Ifindex: uint32(index), ID: uint16(id), Identity: identity, MAC: mac6(mac), NodeMAC: mac6(nodeMAC)}
	if err := node.Maps["endpoints"].Put(addr.As4(), e); err != nil {
		return addr, fmt.Errorf("endpoints: %w", err)
	}
	for other, maps := range c.nodes {
		var tunnel netip.Addr
		if other != pod.Node {
			tunnel = pod.Node.Addr.Addr()
		}
		if err := maps.remote(netip.PrefixFrom(addr, 32), identity, tunnel); err != nil {
			return addr, fmt.Errorf("ipcache: %w", err)
		}
	}
	if err := attach(programs.Programs["from_container"]); err != nil {
		return addr, err
	}
	if !c.tunnel && c.settings["host_routing"] == false { // packets of other nodes arrive through the kernel's stack
		if err := classify(h, index, netlink.HANDLE_MIN_EGRESS, "from_stack", programs.Programs["from_stack"]); err != nil {
			return addr, err
		}
	}
	if err := h.LinkSetUp(link); err != nil {
		return addr, err
	}
	// The node's own route to the pod; in Cilium it goes through cilium_host.
	if len(mac) > 0 {
		if err := h.NeighSet(&netlink.Neigh{LinkIndex: index, State: netlink.NUD_PERMANENT, Type: unix.RTN_UNICAST, IP: addr.AsSlice(), HardwareAddr: mac}); err != nil {
			return addr, fmt.Errorf("neighbour: %w", err)
		}
	}
	if err := h.RouteAdd(&netlink.Route{LinkIndex: index, Dst: wire.IPNet(netip.PrefixFrom(addr, 32)), Scope: netlink.SCOPE_LINK}); err != nil {
		return addr, fmt.Errorf("route to the pod: %w", err)
	}
	if err := podLink(pod, podInterface, addr, ciliumRouter(pod.Node), f.PodMTU()); err != nil {
		return addr, err
	}
	if c.socket != nil {
		return addr, c.socket.serve(pod.NS)
	}
	return addr, nil
}

func mac6(m net.HardwareAddr) (a [6]byte) {
	copy(a[:], m)
	return a
}

// shareMaps returns the node's maps, for programs that are loaded later, without those that each
// endpoint has for itself.
func (n *ciliumNode) shareMaps() map[string]*ebpf.Map {
	shared := map[string]*ebpf.Map{}
	for name, m := range n.Maps {
		if name != "policy" && name[0] != '.' {
			shared[name] = m
		}
	}
	return shared
}
