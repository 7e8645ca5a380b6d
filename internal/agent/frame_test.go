package agent

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// ip4 returns an IPv4 packet of that protocol; off is the flags and the offset.
func ip4(protocol byte, off uint16, payload []byte) []byte {
	b := make([]byte, 20, 20+len(payload))
	b[0], b[9] = 0x45, protocol
	binary.BigEndian.PutUint16(b[2:], uint16(20+len(payload)))
	binary.BigEndian.PutUint16(b[6:], off)
	return append(b, payload...)
}

func udpTo(port uint16, payload []byte) []byte {
	b := make([]byte, 8, 8+len(payload))
	binary.BigEndian.PutUint16(b, 40000)
	binary.BigEndian.PutUint16(b[2:], port)
	return append(b, payload...)
}

func inEthernet(etherType uint16, b []byte) []byte {
	head := make([]byte, 14)
	binary.BigEndian.PutUint16(head[12:], etherType)
	return append(head, b...)
}

// of is n bytes that begin with the given ones.
func of(n int, begin ...byte) []byte { return append(begin, make([]byte, n-len(begin))...) }

func TestDescribe(t *testing.T) {
	tcp, udp := ip4(protoTCP, 0x4000, of(20)), ip4(protoUDP, 0x4000, udpTo(7000, of(100)))
	esp := ip4(protoESP, 0, of(60))
	for _, tt := range []struct {
		name      string
		etherType uint16
		b         []byte
		want      string
		fragment  bool
	}{
		{"tcp", etherIPv4, tcp, "tcp", false},
		{"udp", etherIPv4, udp, "udp", false},
		{"arp", etherARP, of(28), "arp", false},
		{"icmp", etherIPv4, ip4(protoICMP, 0, of(8)), "icmp", false},
		{"first fragment", etherIPv4, ip4(protoUDP, 0x2000, udpTo(7000, of(100))), "udp", true},
		{"later fragment", etherIPv4, ip4(protoUDP, 0x00b9, of(100)), "fragment", true},
		{"flannel's vxlan", etherIPv4, ip4(protoUDP, 0, udpTo(8472, append(of(8, 8), inEthernet(etherIPv4, udp)...))), "vxlan/udp", false},
		{"vxlan's port, no vxlan", etherIPv4, ip4(protoUDP, 0, udpTo(8472, of(8))), "udp", false},
		{"esp in vxlan", etherIPv4, ip4(protoUDP, 0, udpTo(4789, append(of(8, 8), inEthernet(etherIPv4, esp)...))), "vxlan/esp", false},
		{"geneve with options", etherIPv4, ip4(protoUDP, 0, udpTo(6081, append(of(16, 2, 0, 0x65, 0x58), inEthernet(etherIPv4, tcp)...))), "geneve/tcp", false},
		{"geneve, cut", etherIPv4, ip4(protoUDP, 0, udpTo(6081, of(8, 63))), "geneve", false},
		{"ipip", etherIPv4, ip4(protoIPIP, 0, tcp), "ipip/tcp", false},
		{"gre, bare IP", etherIPv4, ip4(protoGRE, 0, append(of(4, 0, 0, 8, 0), udp...)), "gre/udp", false},
		{"gre, Ethernet", etherIPv4, ip4(protoGRE, 0, append(of(4, 0, 0, 0x65, 0x58), inEthernet(etherIPv4, udp)...)), "gre/udp", false},
		{"esp", etherIPv4, esp, "esp", false},
		{"esp behind NAT", etherIPv4, ip4(protoUDP, 0, udpTo(4500, of(60, 1))), "esp", false},
		{"ike behind NAT", etherIPv4, ip4(protoUDP, 0, udpTo(4500, of(60))), "ike", false},
		{"wireguard's hello", etherIPv4, ip4(protoUDP, 0, udpTo(51820, of(148, 1))), "wireguard", false},
		{"wireguard's data", etherIPv4, ip4(protoUDP, 0, udpTo(51871, of(96, 4))), "wireguard", false},
		{"no wireguard", etherIPv4, ip4(protoUDP, 0, udpTo(51820, of(147, 1))), "udp", false},
		{"flannel's tun", etherIPv4, ip4(protoUDP, 0, udpTo(8285, tcp)), "tun-udp/tcp", false},
		{"stt", etherIPv4, ip4(protoTCP, 0, of(20, 0x9c, 0x40, 0x1d, 0x2f)), "stt", false},
		{"ipv6", etherIPv6, of(60, 0x60, 0, 0, 0, 0, 20, protoTCP), "tcp", false},
		{"ipip for ever", etherIPv4, ip4(protoIPIP, 0, ip4(protoIPIP, 0, ip4(protoIPIP, 0, ip4(protoIPIP, 0, ip4(protoIPIP, 0, tcp))))), "ipip/ipip/ipip/ipip/ipip", false},
		{"empty", etherIPv4, nil, "other", false},
		{"a long header", etherIPv4, of(20, 0x4f), "ipv4", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := describe(tt.etherType, tt.b)
			if got.label != tt.want || got.fragment != tt.fragment {
				t.Errorf("got %+v, want %s, fragment %v", got, tt.want, tt.fragment)
			}
		})
	}
}

// FuzzDescribe reads any bytes as a packet: it ends, and has a name for them.
func FuzzDescribe(f *testing.F) {
	f.Add(uint16(etherIPv4), ip4(protoUDP, 0, udpTo(4789, append(of(8, 8), inEthernet(etherIPv4, ip4(protoGRE, 0, of(8)))...))))
	f.Add(uint16(etherIPv6), of(48, 0x60, 0, 0, 0, 0, 20, protoUDP))
	f.Fuzz(func(t *testing.T, etherType uint16, b []byte) {
		if p := describe(etherType, b); p.label == "" || strings.Contains(p.label, "//") {
			t.Errorf("%+v", p)
		}
	})
}

func TestSniffedTakes(t *testing.T) {
	marker := []byte("0123456789abcdef")
	s := newSniffed()
	asked := Sniff{Markers: map[string][]byte{"here": marker, "nowhere": bytes.Repeat([]byte{7}, 16)}, LargeFrom: 1500}
	s.take(etherIPv4, ip4(protoUDP, 0, udpTo(7000, marker)), 44, asked)
	s.take(etherIPv4, ip4(protoUDP, 0x2000, udpTo(7000, marker)), 1500, asked)
	c := s.clone()
	s.take(etherARP, of(28), 28, asked)
	if c.Packets != 2 || c.Fragments != 1 || c.Largest != 1500 || c.Bytes != 1544 || c.Marked["here"]["udp"] != 2 || c.Marked["nowhere"] != nil || c.Large["udp"] != 1 || c.Protocols["arp"] != 0 {
		t.Errorf("%+v", c)
	}
}
