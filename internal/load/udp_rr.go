package load

import (
	"encoding/binary"
	"net/netip"
)

// UDPRR sends a datagram and waits for one. A request carries its number, as
// much of it as 8 bytes and both sizes hold, and the server repeats it, so that
// a datagram that the network doubled is no answer to the next request. A
// request that is given up takes its socket with it.
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
