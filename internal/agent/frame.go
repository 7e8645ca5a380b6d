package agent

import (
	"encoding/binary"
	"strings"
)

// EtherTypes (IEEE 802 numbers) and IP protocols (IANA) that a label knows.
const (
	etherIPv4 = 0x0800
	etherARP  = 0x0806
	etherIPv6 = 0x86dd
	etherTEB  = 0x6558 // transparent Ethernet bridging, as GRE and Geneve name it

	protoICMP   = 1
	protoIPIP   = 4
	protoTCP    = 6
	protoUDP    = 17
	protoIPv6   = 41
	protoGRE    = 47
	protoESP    = 50
	protoICMPv6 = 58
)

// Ports by which tunnels are known.
var (
	vxlanPorts = map[uint16]bool{4789: true, 8472: true, 6784: true} // RFC 7348; the kernel's default; Weave's

	portGeneve  uint16 = 6081 // RFC 8926
	portTunUDP  uint16 = 8285 // flannel's UDP backend: bare IP packets
	portNATT    uint16 = 4500 // ESP in UDP, RFC 3948
	portIKE     uint16 = 500
	portSTT     uint16 = 7471
	portSleeve  uint16 = 6783 // Weave's user-space encapsulation
	maxTunnels         = 4
	wireGuardHS        = map[byte]int{1: 148, 2: 92, 3: 64} // length of a handshake message by its type
)

// packet is the part of a packet on the underlay that its label describes.
type packet struct {
	label    string // tunnels from the outside in, then the innermost protocol: "tcp", "vxlan/udp", "esp"
	fragment bool   // by the outermost header, a part of a larger IPv4 packet
}

// describe reads the headers of a packet of that EtherType. The label ends before the
// first header that can't be read.
func describe(etherType uint16, b []byte) packet {
	p := packet{}
	if etherType == etherIPv4 && len(b) >= 20 {
		p.fragment = binary.BigEndian.Uint16(b[6:])&0x3fff != 0 // more fragments, or an offset
	}
	var layers []string
	for len(layers) <= maxTunnels {
		name, inner, rest := layer(etherType, b)
		layers = append(layers, name)
		if rest == nil {
			break
		}
		etherType, b = inner, rest
	}
	p.label = strings.Join(layers, "/")
	return p
}

// layer returns the name of the outermost layer. If that is a tunnel, inner is the
// EtherType of the packet that it carries, and rest that packet; else rest is nil.
func layer(etherType uint16, b []byte) (name string, inner uint16, rest []byte) {
	switch {
	case etherType == etherARP:
		return "arp", 0, nil
	case etherType == etherIPv4 && len(b) >= 20:
		head := int(b[0]&0x0f) * 4
		switch {
		case head < 20 || head > len(b):
			return "ipv4", 0, nil
		case binary.BigEndian.Uint16(b[6:])&0x1fff != 0:
			return "fragment", 0, nil // the transport's header is in the first fragment
		}
		return transport(b[9], b[head:])
	case etherType == etherIPv6 && len(b) >= 40:
		return transport(b[6], b[40:])
	}
	return "other", 0, nil
}

func transport(protocol byte, b []byte) (string, uint16, []byte) {
	switch protocol {
	case protoTCP:
		if len(b) >= 4 && ports(b)[1] == portSTT {
			return "stt", 0, nil
		}
		return "tcp", 0, nil
	case protoUDP:
		return datagram(b)
	case protoICMP, protoICMPv6:
		return "icmp", 0, nil
	case protoESP:
		return "esp", 0, nil
	case protoIPIP:
		return "ipip", etherIPv4, b
	case protoIPv6:
		return "sit", etherIPv6, b
	case protoGRE:
		if len(b) >= 4 && b[0] == 0 && b[1] == 0 { // no options
			return ethernet("gre", binary.BigEndian.Uint16(b[2:]), b[4:])
		}
		return "gre", 0, nil
	}
	return "other", 0, nil
}

func ports(b []byte) [2]uint16 {
	return [2]uint16{binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])}
}

func datagram(b []byte) (string, uint16, []byte) {
	if len(b) < 8 {
		return "udp", 0, nil
	}
	at, b := ports(b), b[8:]
	switch to := at[1]; {
	case vxlanPorts[to] && len(b) >= 8 && b[0]&0x08 != 0:
		return ethernet("vxlan", etherTEB, b[8:])
	case to == portGeneve && len(b) >= 8:
		if head := 8 + int(b[0]&0x3f)*4; len(b) >= head {
			return ethernet("geneve", binary.BigEndian.Uint16(b[2:]), b[head:])
		}
		return "geneve", 0, nil
	case to == portTunUDP && len(b) >= 20 && b[0]>>4 == 4:
		return "tun-udp", etherIPv4, b
	case to == portNATT && len(b) >= 4:
		if binary.BigEndian.Uint32(b) == 0 {
			return "ike", 0, nil
		}
		return "esp", 0, nil
	case to == portIKE:
		return "ike", 0, nil
	case to == portSleeve:
		return "sleeve", 0, nil
	case isWireGuard(b):
		return "wireguard", 0, nil
	}
	return "udp", 0, nil
}

// ethernet returns the layer of a tunnel whose protocol field is carries: Ethernet frames
// for etherTEB, else bare packets of that EtherType.
func ethernet(name string, carries uint16, b []byte) (string, uint16, []byte) {
	if carries != etherTEB {
		return name, carries, b
	}
	if len(b) < 14 {
		return name, 0, nil
	}
	return name, binary.BigEndian.Uint16(b[12:]), b[14:]
}

// isWireGuard recognises WireGuard's messages by their form, because operators choose
// the port: a type from 1 to 4, three zero bytes, and the length of that type
// (wireguard.com/protocol).
func isWireGuard(b []byte) bool {
	if len(b) < 32 || b[1]|b[2]|b[3] != 0 {
		return false
	}
	return b[0] == 4 || len(b) == wireGuardHS[b[0]]
}
