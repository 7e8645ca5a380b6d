package agent

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"time"
)

// TCPProbe asks how large TCP's segments to an echo are.
type TCPProbe struct {
	Target netip.AddrPort `json:"target"`
	// Bytes is how much is sent to the echo and back before LastMSS is read; 0 is
	// 256 KiB, the limit is 16 MiB.
	Bytes int `json:"bytes,omitempty"`
	// Timeout bounds the whole probe, a minute at most; 0 is 5 s.
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

// Segments are the sizes, in bytes, of the packets that the connecting side may send on one
// TCP connection, as its TCP_INFO (tcp(7)) has them.
type Segments struct {
	// Kind is OK if all bytes came back. TimedOut with a FirstMSS means that the path
	// drops large packets.
	Kind   Kind   `json:"kind"`
	Detail string `json:"detail,omitempty"`
	// FirstMSS is the payload of a full segment right after the handshake, which follows
	// from the MTU of both interfaces and routes. LastMSS is the payload after the
	// transfer, when the kernel has learned the path's MTU.
	FirstMSS int `json:"first_mss"`
	LastMSS  int `json:"last_mss"`
	// FirstPacket and LastPacket are the sizes of these segments' IP packets.
	FirstPacket int `json:"first_packet"`
	LastPacket  int `json:"last_packet"`
	// Retransmits are segments sent again.
	Retransmits int `json:"retransmits"`
}

// Segments asks for the size of TCP's segments to an echo. If the echo does not answer,
// that is a result and not an error.
func (c *Client) Segments(ctx context.Context, p TCPProbe) (Segments, error) {
	return call[Segments](ctx, c, opSegments, p, p.Timeout)
}
