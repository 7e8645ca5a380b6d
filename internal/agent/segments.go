package agent

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"time"
)

// TCPProbe is a question how large TCP's segments to an echo are.
type TCPProbe struct {
	Target netip.AddrPort `json:"target"`
	// Bytes are sent, and come back, before the segments are looked at again;
	// 0 is 256 KiB, the most 16 MiB.
	Bytes int `json:"bytes,omitempty"`
	// Timeout bounds all of it, a minute at most; 0 is 5 s.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
}

const (
	defaultTCPBytes   = 256 << 10
	maxTCPBytes       = 16 << 20
	defaultTCPTimeout = 5 * time.Second
)

func (p *TCPProbe) complete() error {
	p.Bytes, p.Timeout = cmp.Or(p.Bytes, defaultTCPBytes), cmp.Or(p.Timeout, defaultTCPTimeout)
	switch {
	case !p.Target.IsValid() || p.Target.Port() == 0:
		return fmt.Errorf("target %q: want an address and a port", p.Target)
	case p.Bytes < 0 || p.Bytes > maxTCPBytes:
		return fmt.Errorf("bytes %d: want at most %d", p.Bytes, maxTCPBytes)
	case p.Timeout < 0 || p.Timeout > maxProbeTimeout:
		return fmt.Errorf("timeout %v: want at most %v", p.Timeout, maxProbeTimeout)
	}
	return nil
}

// Segments are the sizes of TCP's packets on one connection, from TCP_INFO
// (tcp(7)) at the side that asked. Bytes.
type Segments struct {
	// Kind is OK if all bytes came back; TimedOut after a connection that was
	// made is what a path does that swallows large packets.
	Kind   Kind   `json:"kind"`
	Detail string `json:"detail,omitempty"`
	// FirstMSS is the payload of a full segment right after the handshake,
	// which follows from both interfaces' and routes' MTU; LastMSS after the
	// transfer, when the path has had its say.
	FirstMSS int `json:"first_mss"`
	LastMSS  int `json:"last_mss"`
	// FirstPacket and LastPacket are the IP packets of such segments.
	FirstPacket int `json:"first_packet"`
	LastPacket  int `json:"last_packet"`
	// Retransmits are segments sent again.
	Retransmits int `json:"retransmits"`
}

// Segments asks for the size of TCP's segments to an echo. That it was not
// reached is a result, not an error.
func (c *Client) Segments(ctx context.Context, p TCPProbe) (Segments, error) {
	return call[Segments](ctx, c, opSegments, p, p.Timeout)
}
