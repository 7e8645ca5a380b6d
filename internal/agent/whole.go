package agent

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"
)

// SizeProbe asks whether a packet of that size reaches an echo unfragmented. The packet
// has the don't-fragment bit, and the kernel sends it even if it has learned a smaller MTU
// of the path. The echo answers with a small packet.
type SizeProbe struct {
	Target netip.AddrPort `json:"target"`
	Size   int            `json:"size"` // of the IP packet, bytes
	// Timeout bounds each of Tries packets; 0 is 300 ms.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	Tries   int           `json:"tries,omitempty"` // how often an unanswered packet is sent; 0 is 2
}

const (
	udpHeader  = 8
	measureLen = 1 + 8 + 4 // bytes: measure or reply, a random number, the size
	maxTries   = 10

	defaultWholeTimeout = 300 * time.Millisecond
	defaultWholeTries   = 2
)

func (w *SizeProbe) complete() error {
	w.Timeout, w.Tries = cmp.Or(w.Timeout, defaultWholeTimeout), cmp.Or(w.Tries, defaultWholeTries)
	minimum := w.headers() + measureLen
	switch {
	case !w.Target.IsValid() || w.Target.Port() == 0:
		return fmt.Errorf("target %q: want an address and a port", w.Target)
	case w.Size < minimum || w.Size > 65535:
		return fmt.Errorf("size %d: want %d to 65535 bytes", w.Size, minimum)
	case w.Timeout < 0 || w.Timeout > maxProbeTimeout || w.Tries < 0 || w.Tries > maxTries:
		return fmt.Errorf("timeout %v, tries %d: want at most %v and %d", w.Timeout, w.Tries, maxProbeTimeout, maxTries)
	}
	return nil
}

// headers returns the bytes of the packet before its payload.
func (w *SizeProbe) headers() int {
	if w.Target.Addr().Unmap().Is4() {
		return 20 + udpHeader
	}
	return 40 + udpHeader
}

// answerSize returns the echo's answer to a datagram that asks for its size.
func answerSize(datagram []byte) []byte {
	if len(datagram) < measureLen {
		return nil
	}
	answer := make([]byte, measureLen)
	copy(answer, datagram)
	answer[0] = reply
	binary.BigEndian.PutUint32(answer[9:], uint32(len(datagram)))
	return answer
}

// ProbeSize asks whether a packet of that size reaches an echo. The Kind of the answer is
// OK, TooBig if a kernel on the way refused the packet, or TimedOut if the packet was
// lost. A tunnel can still have fragmented it: Crosses finds that out.
func (c *Client) ProbeSize(ctx context.Context, w SizeProbe) (Answer, error) {
	return call[Answer](ctx, c, opWhole, w, maxTries*w.Timeout)
}

// Crosses reports whether a packet of that size reaches an echo unfragmented. watch, if
// not nil, has a sniffer at the sender's end of the underlay.
func (c *Client) Crosses(ctx context.Context, watch *Client, w SizeProbe) (bool, error) {
	var ends []*Watch
	if watch != nil {
		ends = []*Watch{{agent: watch}}
	}
	got, err := c.Cross(ctx, ends, w)
	return got.Whole(), err
}

// Crossing is what became of a packet that must not be fragmented.
type Crossing struct {
	Kind Kind // OK, TooBig or TimedOut
	// Cut are the ends, by their index, at which fragments were seen.
	Cut []int
}

// Whole reports whether the packet arrived and nobody saw fragments.
func (x Crossing) Whole() bool { return x.Kind == OK && len(x.Cut) == 0 }

// Cross sends a packet of that size to an echo while the ends watch for fragments.
// Fragments may be of other packets, and packets that a sniffer missed may be fragments:
// where the packet arrived, Cross then sends once more.
func (c *Client) Cross(ctx context.Context, ends []*Watch, w SizeProbe) (x Crossing, err error) {
	before, err := readAllCounts(ctx, ends)
	if err != nil {
		return x, err
	}
	for retried := false; ; retried = true {
		a, err := c.ProbeSize(ctx, w)
		if err != nil {
			return x, err
		}
		if a.Kind != OK && a.Kind != TooBig && a.Kind != TimedOut {
			return x, fmt.Errorf("a packet of %d bytes to %s: %s: %s", w.Size, w.Target, a.Kind, a.Detail)
		}
		x = Crossing{Kind: a.Kind}
		after, err := readAllCounts(ctx, ends)
		if err != nil {
			return x, err
		}
		var missed error
		for i := range ends {
			if after[i].Fragments > before[i].Fragments {
				x.Cut = append(x.Cut, i)
			}
			missed = cmp.Or(missed, after[i].CheckDrops(before[i]))
		}
		switch {
		case a.Kind != OK || missed == nil && len(x.Cut) == 0:
			return x, nil
		case retried && missed != nil:
			return x, fmt.Errorf("whether a packet of %d bytes to %s was cut up: %w", w.Size, w.Target, missed)
		case retried:
			return x, nil
		}
		before = after
	}
}

// LargestWhole returns the largest size that crosses, or 0. On a slow machine a size
// may cross and yet fail the hasty question. So the smallest size that failed is
// asked again patiently; if it crosses, the larger sizes are asked patiently too.
func LargestWhole(minimum, maximum int, hasty, patient func(size int) (bool, error)) (int, error) {
	found, err := largest(minimum, maximum, hasty)
	if err != nil || found == maximum {
		return found, err
	}
	next := max(minimum, found+1)
	if crosses, err := patient(next); err != nil || !crosses {
		return found, err
	}
	return largest(next, maximum, patient)
}

// largest returns the largest size from least to most for which ok is true; 0 if ok
// is false for least. ok must be true up to some size and false beyond.
func largest(minimum, maximum int, ok func(size int) (bool, error)) (int, error) {
	if fits, err := ok(maximum); err != nil || fits {
		return maximum, err // the usual case
	}
	if fits, err := ok(minimum); err != nil || !fits {
		return 0, err
	}
	for maximum-minimum > 1 { // ok(minimum), not ok(maximum)
		middle := minimum + (maximum-minimum)/2
		fits, err := ok(middle)
		if err != nil {
			return 0, err
		}
		if fits {
			minimum = middle
		} else {
			maximum = middle
		}
	}
	return minimum, nil
}
