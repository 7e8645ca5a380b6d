//go:build linux

package tunnel

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// ESP makes IPsec between the nodes. It writes states and policies into the kernel, with keys
// made for this network; no daemon negotiates keys. In mode transport it encrypts the UDP
// packets that a tunnel sends between nodes to a port; in mode tunnel it encrypts packets
// between pods of different nodes. The cipher is AES-GCM with an ICV of 128 bits (RFC 4106).
//
// Parameters:
//
//	mode            transport or tunnel
//	port            destination port of the tunnel's packets (mode transport)
//	ends            outer addresses in mode tunnel: nodes, or tunnels for the addresses of a
//	                tunnel's devices
//	key-bits        128 or 256
//	spi             SPI of the first node's states; the others' follow
//	shared-key      one key and SPI for all nodes, as in Cilium
//	reqid, replay-window (packets), esn (extended sequence numbers)
//
// Packet marks, for products whose programs use marks to select packets; 0 is no mark:
//
//	mark, mark-mask              packets to encrypt
//	node-in-mark                 adds the receiver's number (from 1) << 16 to mark
//	mark-in                      packets to decrypt
//	output-mark, output-mark-in  marks that packets get when they are encrypted or decrypted
var ESP = wire.Transport{
	Name:    "esp",
	Summary: "IPsec ESP in the kernel, around a tunnel's packets between nodes or around pods' packets",
	Params: []string{
		"mode", "port", "ends", "key-bits", "spi", "shared-key", "reqid", "replay-window", "esn",
		"mark", "mark-mask", "node-in-mark", "mark-in", "output-mark", "output-mark-in",
	},
	Setup: func(ctx context.Context, f *wire.Fabric, p wire.Params) error {
		e, err := newESP(f, p)
		if err != nil {
			return err
		}
		for _, n := range f.Nodes {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := e.setup(f, n); err != nil {
				return fmt.Errorf("%s: %w", n.Name, err)
			}
		}
		return nil
	},
}

// espSetting holds the parameters, and the keys of this network.
type espSetting struct {
	tunnel, tunnels, shared, nodeInMark, esn         bool
	port, spi, reqid, replay                         int
	mark, markMask, markIn, outputMark, outputMarkIn uint32
	keys                                             map[[2]*wire.Node][]byte // from, to
	cipher                                           string
}

const saltBytes = 4 // RFC 4106, section 8.1: after the key

func newESP(f *wire.Fabric, p wire.Params) (*espSetting, error) {
	mode, err := p.OneOf("esp", "mode", "transport", "tunnel")
	if err != nil {
		return nil, err
	}
	ends, err := p.OneOf("esp", "ends", "nodes", "tunnels")
	if err != nil {
		return nil, err
	}
	bits := p.Int("key-bits", 128)
	if bits != 128 && bits != 256 {
		return nil, fmt.Errorf("esp: key-bits is %d; AES-GCM here has 128 or 256", bits)
	}
	e := &espSetting{
		tunnel: mode == "tunnel", tunnels: ends == "tunnels",
		shared: p.Bool("shared-key", false), nodeInMark: p.Bool("node-in-mark", false), esn: p.Bool("esn", false),
		port: p.Int("port", 0), spi: p.Int("spi", wire.DefaultSPI), reqid: p.Int("reqid", 1), replay: p.Int("replay-window", 0),
		mark: uint32(p.Int("mark", 0)), markMask: uint32(p.Int("mark-mask", 0)), markIn: uint32(p.Int("mark-in", 0)),
		outputMark: uint32(p.Int("output-mark", 0)), outputMarkIn: uint32(p.Int("output-mark-in", 0)),
		keys: map[[2]*wire.Node][]byte{}, cipher: "rfc4106(gcm(aes))",
	}
	switch {
	case !e.tunnel && e.port == 0:
		return nil, fmt.Errorf("esp: mode transport needs the UDP port whose packets it wraps; give port")
	case e.esn && e.replay == 0:
		return nil, fmt.Errorf("esp: extended sequence numbers need a replay window; give replay-window above 0")
	}
	shared := newKey(bits)
	for _, from := range f.Nodes {
		for _, to := range f.Nodes {
			if e.keys[[2]*wire.Node{from, to}] = shared; !e.shared {
				e.keys[[2]*wire.Node{from, to}] = newKey(bits)
			}
		}
	}
	return e, nil
}

func newKey(bits int) []byte {
	key := make([]byte, bits/8+saltBytes)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	return key
}

// setup writes the node's states and policies.
func (e *espSetting) setup(f *wire.Fabric, n *wire.Node) error {
	h, err := netlink.NewHandleAt(netns.NsHandle(n.NS.FD()), unix.NETLINK_XFRM)
	if err != nil {
		return fmt.Errorf("esp: %w", err)
	}
	defer h.Close()
	for _, s := range e.states(f, n) {
		if err := h.XfrmStateAdd(&s); err != nil {
			return fmt.Errorf("esp: state from %s to %s, %s: %w; see `cnibench probe`", s.Src, s.Dst, s.Aead.Name, err)
		}
	}
	for _, p := range e.policies(f, n) {
		if err := h.XfrmPolicyAdd(&p); err != nil {
			return fmt.Errorf("esp: policy %s from %s to %s: %w", p.Dir, p.Src, p.Dst, err)
		}
	}
	return nil
}

// end returns a node's address in the outer header.
func (e *espSetting) end(n *wire.Node) netip.Addr {
	if e.tunnels {
		return tunnelAddr(n)
	}
	return n.Addr.Addr()
}

// states returns the node's IPsec states for packets to and from each other node.
func (e *espSetting) states(f *wire.Fabric, n *wire.Node) []netlink.XfrmState {
	state := func(from, to *wire.Node) netlink.XfrmState {
		s := netlink.XfrmState{
			Src: e.end(from).AsSlice(), Dst: e.end(to).AsSlice(), Proto: netlink.XFRM_PROTO_ESP, Mode: e.mode(),
			Spi: e.spiOf(from), Reqid: e.reqid, ReplayWindow: e.replay, ESN: e.esn,
			Aead: &netlink.XfrmStateAlgo{Name: e.cipher, Key: e.keys[[2]*wire.Node{from, to}], ICVLen: 128},
		}
		if from == n {
			s.Mark, s.OutputMark = e.outMark(to), xfrmMark(e.outputMark, outputMask)
			return s
		}
		s.Mark, s.OutputMark = xfrmMark(e.markIn, e.markIn), xfrmMark(e.outputMarkIn, outputMask)
		return s
	}
	var list []netlink.XfrmState
	for _, peer := range f.Nodes {
		if peer != n {
			list = append(list, state(n, peer))
		}
	}
	for _, peer := range f.Nodes {
		if peer == n {
			continue
		}
		s := state(peer, n)
		if e.shared {
			// One state for all senders: the kernel finds it by receiver and SPI.
			s.Src = net.IPv4zero
			return append(list, s)
		}
		list = append(list, s)
	}
	return list
}

// policies returns the policies that select the packets to encrypt, and those that reject
// packets that should have been encrypted.
func (e *espSetting) policies(f *wire.Fabric, n *wire.Node) []netlink.XfrmPolicy {
	policy := func(dir netlink.Dir, from, to *wire.Node) netlink.XfrmPolicy {
		p := netlink.XfrmPolicy{Dir: dir, Tmpls: []netlink.XfrmPolicyTmpl{{
			Src: e.end(from).AsSlice(), Dst: e.end(to).AsSlice(), Proto: netlink.XFRM_PROTO_ESP, Mode: e.mode(), Reqid: e.reqid,
		}}}
		if dir == netlink.XFRM_DIR_OUT {
			p.Tmpls[0].Spi, p.Mark = e.spiOf(from), e.outMark(to)
		} else if e.shared {
			p.Tmpls[0].Src = net.IPv4zero // the same as in the state
		}
		if e.tunnel {
			p.Src, p.Dst = wire.IPNet(from.PodCIDR), wire.IPNet(to.PodCIDR)
		} else {
			p.Src, p.Dst = host32(from), host32(to)
			p.Proto, p.DstPort = unix.IPPROTO_UDP, e.port
		}
		return p
	}
	dirs := []netlink.Dir{netlink.XFRM_DIR_IN}
	if e.tunnel { // a decrypted packet is forwarded to a pod, which needs a policy
		dirs = append(dirs, netlink.XFRM_DIR_FWD)
	}
	var list []netlink.XfrmPolicy
	for _, peer := range f.Nodes {
		if peer == n {
			continue
		}
		list = append(list, policy(netlink.XFRM_DIR_OUT, n, peer))
		for _, dir := range dirs {
			list = append(list, policy(dir, peer, n))
		}
	}
	return list
}

func (e *espSetting) mode() netlink.Mode {
	if e.tunnel {
		return netlink.XFRM_MODE_TUNNEL
	}
	return netlink.XFRM_MODE_TRANSPORT
}

// spiOf returns the sender's SPI; it differs by sender unless all share a key.
func (e *espSetting) spiOf(from *wire.Node) int {
	if e.shared {
		return e.spi
	}
	return e.spi + from.Index
}

// outMark returns the mark of packets to the node that must be encrypted.
func (e *espSetting) outMark(to *wire.Node) *netlink.XfrmMark {
	mark, mask := e.mark, e.markMask
	if e.nodeInMark {
		mark |= uint32(to.Index+1) << 16
	}
	if mask == 0 {
		mask = mark
	}
	return xfrmMark(mark, mask)
}

// outputMask excludes the low byte of a packet's mark, which belongs to others
// (cilium/cilium pkg/datapath/linux/linux_defaults, OutputMarkMask).
const outputMask = 0xffffff00

func xfrmMark(mark, mask uint32) *netlink.XfrmMark {
	if mark == 0 {
		return nil
	}
	return &netlink.XfrmMark{Value: mark, Mask: mask}
}

func host32(n *wire.Node) *net.IPNet { return wire.IPNet(netip.PrefixFrom(n.Addr.Addr(), 32)) }
