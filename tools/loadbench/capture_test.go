package main

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

var (
	testServer = netip.MustParseAddrPort("10.0.0.2:80")
	testStart  = time.Unix(1700000000, 0)
)

// segment is a TCP segment of a test's capture.
type segment struct {
	us       int // after testStart
	from, to string
	payload  int
}

// pcap writes segments as tcpdump does, each cut off after 96 bytes.
func pcap(t testing.TB, segments ...segment) []byte {
	t.Helper()
	var b bytes.Buffer
	w := pcapgo.NewWriterNanos(&b)
	if err := w.WriteFileHeader(96, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	for _, s := range segments {
		src, dst := netip.MustParseAddrPort(s.from), netip.MustParseAddrPort(s.to)
		ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: src.Addr().AsSlice(), DstIP: dst.Addr().AsSlice()}
		tcp := &layers.TCP{SrcPort: layers.TCPPort(src.Port()), DstPort: layers.TCPPort(dst.Port()), ACK: true}
		if err := tcp.SetNetworkLayerForChecksum(ip); err != nil {
			t.Fatal(err)
		}
		packet := gopacket.NewSerializeBuffer()
		err := gopacket.SerializeLayers(packet, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
			&layers.Ethernet{SrcMAC: make(net.HardwareAddr, 6), DstMAC: make(net.HardwareAddr, 6), EthernetType: layers.EthernetTypeIPv4},
			ip, tcp, gopacket.Payload(make([]byte, s.payload)))
		if err != nil {
			t.Fatal(err)
		}
		data := packet.Bytes()
		info := gopacket.CaptureInfo{
			Timestamp: testStart.Add(time.Duration(s.us) * time.Microsecond), Length: len(data), CaptureLength: min(96, len(data)),
		}
		if err := w.WritePacket(info, data[:info.CaptureLength]); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestExchanges(t *testing.T) {
	const a, b, server, other = "10.0.0.1:1001", "10.0.0.1:1002", "10.0.0.2:80", "10.0.0.2:81"
	tests := []struct {
		name     string
		segments []segment
		cut      int         // bytes that are missing at the end
		want     map[int]int // µs of the request to µs of its response
	}{
		{"one", []segment{{0, a, server, 50}, {30, server, a, 350}}, 0, map[int]int{0: 30}},
		{"acknowledgements don't count", []segment{{0, a, server, 0}, {5, server, a, 0}, {9, a, server, 50}, {10, server, a, 0}, {30, server, a, 350}, {31, a, server, 0}}, 0, map[int]int{9: 30}},
		{"in several segments", []segment{{0, a, server, 1400}, {2, a, server, 50}, {30, server, a, 1400}, {31, server, a, 700}, {50, a, server, 50}, {80, server, a, 20}}, 0, map[int]int{0: 31, 50: 80}},
		{"interleaved", []segment{{0, a, server, 50}, {1, b, server, 50}, {40, server, b, 350}, {60, server, a, 350}}, 0, map[int]int{0: 60, 1: 40}},
		{"another server", []segment{{0, a, other, 50}, {30, other, a, 350}}, 0, map[int]int{}},
		{"no response", []segment{{0, a, server, 50}}, 0, map[int]int{}},
		{"no request", []segment{{0, server, a, 350}}, 0, map[int]int{}},
		{"cut off", []segment{{0, a, server, 50}, {30, server, a, 350}, {40, a, server, 50}}, 7, map[int]int{0: 30}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := pcap(t, tt.segments...)
			list, err := exchanges(bytes.NewReader(file[:len(file)-tt.cut]), testServer)
			if err != nil {
				t.Fatal(err)
			}
			got := map[int]int{}
			for _, x := range list {
				got[int(x.Out.Sub(testStart).Microseconds())] = int(x.In.Sub(testStart).Microseconds())
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
	if _, err := exchanges(bytes.NewReader([]byte("no capture at all, but some text")), testServer); err == nil {
		t.Error("a text was taken for a capture")
	}
}

func FuzzExchanges(f *testing.F) {
	f.Add(pcap(f, segment{0, "10.0.0.1:1001", "10.0.0.2:80", 50}, segment{30, "10.0.0.2:80", "10.0.0.1:1001", 350}))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := exchanges(bytes.NewReader(b), testServer)
		for _, x := range list {
			if err != nil || x.Out.IsZero() || x.In.IsZero() {
				t.Errorf("%+v, %v", x, err)
			}
		}
	})
}
