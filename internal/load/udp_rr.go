package load

import (
	"encoding/binary"
	"net/netip"
)

// UDPRR sends a datagram and waits for a datagram. A request begins with its number (up
// to 8 bytes, as many as both sizes have), and the server repeats the number: so a
// datagram that the network duplicated does not answer the next request. When a request
// times out, its socket is closed.
type UDPRR struct{ Sizes }

// Name implements Exchange.
func (UDPRR) Name() string { return "udp-rr" }

func (UDPRR) network() string { return "udp" }

func (UDPRR) lasting() bool { return true }

func (e UDPRR) complete(netip.AddrPort) (Exchange, error) {
	sizes, err := e.Sizes.complete(MaxDatagram)
	return UDPRR{sizes}, err
}

func (e UDPRR) protocol() protocol {
	return &datagram{
		out: make([]byte, max(e.Request, 8)), size: e.Request, response: e.Response,
		number: min(8, e.Request, e.Response),
	}
}

type datagram struct {
	out            []byte // at least 8 bytes, size of which are sent
	size, response int
	number         int // bytes of the request's number that the response repeats
}

func (d *datagram) request(seq uint64) []byte {
	binary.LittleEndian.PutUint64(d.out, seq)
	return d.out[:d.size]
}

func (d *datagram) feed(r *response, seq uint64, p []byte) (done bool, bad Kind) {
	if len(p) != d.response {
		return false, Malformed
	}
	for i := range d.number {
		if p[i] != byte(seq>>(8*i)) {
			return false, ""
		}
	}
	r.size = int64(len(p))
	return true, ""
}

func (d *datagram) stray() Kind { return "" }
