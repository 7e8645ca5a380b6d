// Package stream sends as much as a path carries, over TCP or UDP, and counts what
// arrives: a Sink receives and counts, a Sender connects to a Sink, sends in slices
// and asks the Sink for its counts at the borders of each slice. Goodput therefore
// comes from the receiver's count and the receiver's clock. The package knows no
// arena and no workload. Next: sink_linux.go, then sender_linux.go.
package stream

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cnibench/cnibench/internal/unit"
)

// Protocol is what a Sender sends by.
type Protocol string

// The protocols.
const (
	TCP Protocol = "tcp"
	UDP Protocol = "udp"
)

// Config says what a Sender sends, and where to.
type Config struct {
	Protocol    Protocol
	Target      netip.AddrPort // of a Sink
	Connections int            // each has a sending thread of its own; 0 is 1
	// Size is what one write takes in bytes: of TCP a block (0 is 128 KiB), of UDP the
	// payload of a packet (0 is 1400).
	Size int
	// Window is the most that may be under way on a TCP connection, in bytes
	// (TCP_WINDOW_CLAMP at the receiver); 0 leaves the window to the kernel.
	Window   int
	ZeroCopy bool          // TCP: send from page cache (sendfile) instead of copying from memory
	Rate     unit.BitRate  // UDP: payload over all connections; 0 sends as fast as possible
	Wait     time.Duration // how long to try to connect, for a Sink that is just starting
}

// Defaults and limits of sizes in bytes.
const (
	blockSize  = 128 << 10
	packetSize = 1400
	mostBlock  = 16 << 20
	mostPacket = 65507
	mostStream = 1024 // connections
)

// ErrConfig is in the chain of every error about a Config: wrong usage.
var ErrConfig = errors.New("wrong stream settings")

// complete checks c and fills in its defaults.
func (c Config) complete() (Config, error) {
	wrong := func(format string, args ...any) (Config, error) {
		return c, fmt.Errorf("stream: %w: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	least, most := 1, mostBlock
	switch c.Protocol {
	case TCP:
		c.Size = cmp.Or(c.Size, blockSize)
		if c.Rate != 0 {
			return wrong("a rate is for UDP only; TCP sends what the path takes")
		}
	case UDP:
		c.Size = cmp.Or(c.Size, packetSize)
		least, most = headerSize, mostPacket
		if c.Window != 0 || c.ZeroCopy {
			return wrong("a window and zero copy are for TCP only")
		}
	default:
		return wrong("protocol %q; there are tcp and udp", c.Protocol)
	}
	c.Connections = cmp.Or(c.Connections, 1)
	switch {
	case !c.Target.IsValid() || c.Target.Port() == 0:
		return wrong("the target needs an address and a port")
	case c.Connections < 1 || c.Connections > mostStream:
		return wrong("%d connections; from 1 to %d are possible", c.Connections, mostStream)
	case c.Size < least || c.Size > most:
		return wrong("%d bytes a write; %s takes from %d to %d", c.Size, c.Protocol, least, most)
	case c.Window < 0 || c.Rate < 0 || c.Wait < 0:
		return wrong("a negative window, rate or time")
	}
	return c, nil
}

// Slice is what arrived within one slice.
type Slice struct {
	Elapsed     time.Duration // between the Sink's two counts, by the Sink's clock
	Bytes       int64         // application bytes received
	Connections []int64       // the same by connection, in no particular order; TCP only
	Retransmits int64         // TCP: segments sent again within the slice (TCP_INFO tcpi_total_retrans)
	Packets     int64         // UDP: received
	Lost        int64         // UDP: sent between the first and the last packet of the slice, and not received
	Jitter      time.Duration // UDP: RFC 3550's, at the end of the slice, the mean over connections
	CPU         time.Duration // that this process used meanwhile, on all its threads
	Interrupted bool          // the slice ended early because its context did
}

// Goodput is what was received per second.
func (s Slice) Goodput() unit.BitRate {
	if s.Elapsed <= 0 {
		return 0
	}
	return unit.BitRate(float64(s.Bytes) * 8 / s.Elapsed.Seconds())
}

// Loss is the share of the packets that was lost, 0 to 1.
func (s Slice) Loss() float64 {
	if s.Packets+s.Lost <= 0 {
		return 0
	}
	return float64(s.Lost) / float64(s.Packets+s.Lost)
}

// This is how the two sides talk. Every TCP connection to a Sink opens with a
// preamble. A control connection then gets a line with the session's token, and for
// every byte that it sends a line with the counts, both JSON. A data connection
// names its session's token and is counted from the next byte on. A UDP packet
// opens with a header that names the token.
const (
	preambleSize = 16 // kind, token, window as big-endian uint32
	controlKind  = "CNB?"
	dataKind     = "CNB>"

	// headerSize is the header of a UDP packet: token, connection (uint32, with four
	// unused bytes), sequence number from 0 (uint64), time of the send by the
	// sender's steady clock in nanoseconds (int64), all big-endian.
	headerSize = 32
)

// token names a session.
type token [8]byte

func (t token) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(t[:])), nil }

func (t *token) UnmarshalText(text []byte) error {
	if n, err := hex.Decode(t[:], text); err != nil || n != len(t) || len(text) != 2*len(t) {
		return fmt.Errorf("%q is no session's token", text)
	}
	return nil
}

// greeting is the first line that a Sink sends.
type greeting struct {
	Token token `json:"token"`
}

// counts are a session's, since it began.
type counts struct {
	At          int64   `json:"at"` // the Sink's steady clock, nanoseconds
	Bytes       int64   `json:"bytes"`
	Connections []int64 `json:"connections,omitempty"` // bytes by TCP connection
	Packets     int64   `json:"packets,omitempty"`
	Sent        int64   `json:"sent,omitempty"`   // UDP: packets up to the highest sequence number of each connection
	Jitter      float64 `json:"jitter,omitempty"` // nanoseconds
}
