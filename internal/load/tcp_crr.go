package load

import "net/netip"

// TCPCRR connects, sends a request, waits for the response, and closes.
type TCPCRR struct{ Sizes }

// Name implements Exchange.
func (TCPCRR) Name() string { return "tcp-crr" }

func (TCPCRR) network() string { return "tcp" }

func (TCPCRR) lasting() bool { return false }

func (e TCPCRR) complete(netip.AddrPort) (Exchange, error) {
	sizes, err := e.Sizes.complete(MaxMessage)
	return TCPCRR{sizes}, err
}

func (e TCPCRR) protocol() protocol { return newStream(e.Sizes) }
