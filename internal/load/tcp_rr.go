package load

import "net/netip"

// TCPRR sends a request and waits for the response, over connections that stay open.
type TCPRR struct{ Sizes }

// Name implements Exchange.
func (TCPRR) Name() string { return "tcp-rr" }

func (TCPRR) network() string { return "tcp" }

func (TCPRR) lasting() bool { return true }

func (e TCPRR) complete(netip.AddrPort) (Exchange, error) {
	sizes, err := e.Sizes.complete(MaxMessage)
	return TCPRR{sizes}, err
}

func (e TCPRR) protocol() protocol { return newStream(e.Sizes) }
