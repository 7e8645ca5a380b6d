package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// exchange is a request and its response as the interface saw them.
type exchange struct {
	Out time.Time // the first segment of the request
	In  time.Time // the last segment of the response
}

// exchanges reads a capture of the client's interface (pcap) and matches
// request and response on every connection to server: they take turns, so a
// response is what comes between two requests. Packets without payload, of
// other connections and of other protocols are left out; so are requests
// without a response. A capture that ends within a packet is read up to there.
func exchanges(r io.Reader, server netip.AddrPort) ([]exchange, error) {
	packets, err := pcapgo.NewReader(bufio.NewReaderSize(r, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	if packets.LinkType() != layers.LinkTypeEthernet {
		return nil, fmt.Errorf("capture: link type %v; want Ethernet", packets.LinkType())
	}
	var eth layers.Ethernet
	var ip layers.IPv4
	var tcp layers.TCP
	parser := gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &eth, &ip, &tcp)
	parser.IgnoreUnsupported = true
	var decoded []gopacket.LayerType
	open := map[netip.AddrPort]exchange{} // by client
	var list []exchange
	end := func(x exchange) {
		if !x.In.IsZero() {
			list = append(list, x)
		}
	}
	for {
		data, info, err := packets.ReadPacketData()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("capture: %w", err)
		}
		// What the headers don't say the parser leaves out, with an error.
		if err := parser.DecodeLayers(data, &decoded); err != nil || len(decoded) < 3 || decoded[2] != layers.LayerTypeTCP {
			continue
		}
		// By the headers: the capture keeps the beginning of a packet only.
		if int(ip.Length)-4*int(ip.IHL)-4*int(tcp.DataOffset) <= 0 {
			continue
		}
		src, dst := endpoint(ip.SrcIP, tcp.SrcPort), endpoint(ip.DstIP, tcp.DstPort)
		switch server {
		case dst:
			if x, asked := open[src]; !asked || !x.In.IsZero() {
				end(x)
				open[src] = exchange{Out: info.Timestamp}
			}
		case src:
			if x, asked := open[dst]; asked {
				x.In = info.Timestamp
				open[dst] = x
			}
		}
	}
	for _, x := range open {
		end(x)
	}
	return list, nil
}

func endpoint(ip []byte, port layers.TCPPort) netip.AddrPort {
	addr, _ := netip.AddrFromSlice(ip) // always four bytes
	return netip.AddrPortFrom(addr, uint16(port))
}
