// Package stream sends as much as a path carries, over TCP or UDP, and counts what
// arrives. A Sink receives and counts. A Sender connects to a Sink, sends in slices,
// and asks the Sink for its counts at the begin and the end of each slice: goodput
// comes from the receiver's count and clock. The package knows no arena and no
// workload. Next: sink_linux.go and session_linux.go, then sender_linux.go;
// blocks_linux.go and packets_linux.go send.
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

// Protocol is the transport protocol of a stream.
type Protocol string

// The protocols.
const (
	TCP Protocol = "tcp"
	UDP Protocol = "udp"
)

// Config says what a Sender sends, and to which Sink.
type Config struct {
	Protocol    Protocol
	Target      netip.AddrPort // the Sink
	Connections int            // each has a sending thread of its own; 0 is 1
	// Size is the size of one write in bytes: over TCP of a block (0 is 128 KiB), over
	// UDP the payload of a packet (0 is 1400).
	Size int
	// Window is the most unacknowledged data on a TCP connection, in bytes
	// (TCP_WINDOW_CLAMP at the receiver); 0 leaves the window to the kernel.
	Window   int
	ZeroCopy bool // TCP: send from page cache (sendfile) instead of copying from memory
	// Rate is the most payload on all connections together, what TCP sends again included;
	// each has an equal share. 0 sends as fast as possible.
	Rate unit.BitRate
	Wait time.Duration // how long to try to connect, for a Sink that is just starting
}

// Defaults and limits of sizes in bytes.
const (
	blockSize  = 128 << 10
	packetSize = 1400
	maxBlock   = 16 << 20
	maxPacket  = 65507
	maxStream  = 1024 // connections
)

// ErrConfig is in the chain of every error about a Config: wrong usage.
var ErrConfig = errors.New("wrong stream settings")

// complete checks c and fills in its defaults.
func (c Config) complete() (Config, error) {
	wrong := func(format string, args ...any) (Config, error) {
		return c, fmt.Errorf("stream: %w: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	minimum, maximum := 1, maxBlock
	switch c.Protocol {
	case TCP:
		c.Size = cmp.Or(c.Size, blockSize)
	case UDP:
		c.Size = cmp.Or(c.Size, packetSize)
		minimum, maximum = headerSize, maxPacket
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
	case c.Connections < 1 || c.Connections > maxStream:
		return wrong("%d connections; from 1 to %d are possible", c.Connections, maxStream)
	case c.Size < minimum || c.Size > maximum:
		return wrong("a size of %d bytes; one write over %s takes from %d to %d", c.Size, c.Protocol, minimum, maximum)
	case c.Window < 0 || c.Rate < 0 || c.Wait < 0:
		return wrong("a negative window, rate or wait; 0 is the least")
	}
	return c, nil
}

// Slice is the result of one slice.
type Slice struct {
	Elapsed     time.Duration // between the Sink's two counts, by the Sink's clock
	Bytes       int64         // application bytes received
	Connections []int64       // bytes by connection, in no particular order; TCP only
	Retransmits int64         // TCP: segments sent again within the slice (TCP_INFO tcpi_total_retrans)
	Busy        time.Duration // TCP: for how long there was data to send, the sum over connections (TCP_INFO tcpi_busy_time)
	RwndLimited time.Duration // TCP: of Busy, for how long the receiver's window was full (tcpi_rwnd_limited)
	SndLimited  time.Duration // TCP: of Busy, for how long the send buffer was full (tcpi_sndbuf_limited)
	Segments    int64         // TCP: sent with data, those sent again too (tcpi_data_segs_out)
	Packets     int64         // UDP: received
	Lost        int64         // UDP: sent between the first and the last packet of the slice, and not received
	Jitter      time.Duration // UDP: as in RFC 3550, at the end of the slice, the mean over connections
	CPU         time.Duration // time of all threads of this process within the slice
	Interrupted bool          // the slice ended early because its context did
}

// Goodput returns the received bits per second.
func (s Slice) Goodput() unit.BitRate {
	if s.Elapsed <= 0 {
		return 0
	}
	return unit.BitRate(float64(s.Bytes) * 8 / s.Elapsed.Seconds())
}

// Loss returns the share of packets that were lost, 0 to 1.
func (s Slice) Loss() float64 {
	if s.Packets+s.Lost <= 0 {
		return 0
	}
	return float64(s.Lost) / float64(s.Packets+s.Lost)
}

// The protocol between Sender and Sink: every TCP connection begins with a preamble. On
// a control connection the Sink sends a line with the session's token, and then a line
// with the counts for every byte that it receives, both in JSON. On a data connection
// the preamble holds the token, and every byte after it counts. A UDP packet begins with
// a header that holds the token.
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
		return fmt.Errorf("%q is no token of a session: want %d hexadecimal digits", text, 2*len(t))
	}
	return nil
}

// greeting is the first line that a Sink sends on a control connection.
type greeting struct {
	Token token `json:"token"`
}

// counts are the counts of a session since it began.
type counts struct {
	At          int64   `json:"at"` // the Sink's steady clock, nanoseconds
	Bytes       int64   `json:"bytes"`
	Connections []int64 `json:"connections,omitempty"` // bytes by TCP connection
	Packets     int64   `json:"packets,omitempty"`
	Sent        int64   `json:"sent,omitempty"`   // UDP: packets up to the highest sequence number of each connection
	Jitter      float64 `json:"jitter,omitempty"` // nanoseconds
}
