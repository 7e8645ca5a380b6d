package agent

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"
)

// Whole is a question whether a packet of that size crosses to an echo in one
// piece: it is sent with the don't-fragment bit, past what the kernel has
// learned of the path's MTU, and the echo answers with a small one.
type Whole struct {
	Target netip.AddrPort `json:"target"`
	Size   int            `json:"size"` // of the IP packet, bytes
	// Timeout bounds each of Tries packets; 0 is 300 ms.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	Tries   int           `json:"tries,omitempty"` // of packets that nobody answers; 0 is 2
}

const (
	udpHeader  = 8
	measureLen = 1 + 8 + 4 // what asks, a number, and the size in the answer
	maxTries   = 10

	defaultWholeTimeout = 300 * time.Millisecond
	defaultWholeTries   = 2
)

func (w *Whole) complete() error {
	w.Timeout, w.Tries = cmp.Or(w.Timeout, defaultWholeTimeout), cmp.Or(w.Tries, defaultWholeTries)
	least := w.headers() + measureLen
	switch {
	case !w.Target.IsValid() || w.Target.Port() == 0:
		return fmt.Errorf("target %q: want an address and a port", w.Target)
	case w.Size < least || w.Size > 65535:
		return fmt.Errorf("size %d: want %d to 65535 bytes", w.Size, least)
	case w.Timeout < 0 || w.Timeout > maxProbeTimeout || w.Tries < 0 || w.Tries > maxTries:
		return fmt.Errorf("timeout %v, tries %d: want at most %v and %d", w.Timeout, w.Tries, maxProbeTimeout, maxTries)
	}
	return nil
}

// headers returns the bytes of the packet before its payload.
func (w *Whole) headers() int {
	if w.Target.Addr().Unmap().Is4() {
		return 20 + udpHeader
	}
	return 40 + udpHeader
}

// measured returns the echo's answer to a datagram that asks for its size.
func measured(datagram []byte) []byte {
	if len(datagram) < measureLen {
		return nil
	}
	answer := make([]byte, measureLen)
	copy(answer, datagram)
	answer[0] = reply
	binary.BigEndian.PutUint32(answer[9:], uint32(len(datagram)))
	return answer
}

// Whole asks whether a packet of that size crosses in one piece. That it does
// not is a result, not an error: TooBig where somebody said so, TimedOut where
// it vanished. A tunnel can still have cut it up on its way: who must know
// watches the underlay for fragments.
func (c *Client) Whole(ctx context.Context, w Whole) (Answer, error) {
	return call[Answer](ctx, c, opWhole, w, maxTries*w.Timeout)
}

// Crosses tells whether a packet of that size crosses to an echo in one piece.
// watch sniffs at the sender's end of the underlay; nil says that nobody does.
// Fragments that it sees may be somebody else's, and packets that it missed
// may have been fragments: either has the question asked once more.
func (c *Client) Crosses(ctx context.Context, watch *Client, w Whole) (bool, error) {
	var before, after Sniffed
	look := func(at *Sniffed) (err error) {
		if watch != nil {
			*at, err = watch.Sniffed(ctx)
		}
		return err
	}
	if err := look(&before); err != nil {
		return false, err
	}
	for retried := false; ; retried = true {
		a, err := c.Whole(ctx, w)
		if err != nil {
			return false, err
		}
		switch a.Kind {
		case OK:
		case TooBig, TimedOut:
			return false, nil
		default:
			return false, fmt.Errorf("a packet of %d bytes to %s: %s: %s", w.Size, w.Target, a.Kind, a.Detail)
		}
		if err := look(&after); err != nil {
			return false, err
		}
		missed, cut := after.Missed(before), after.Fragments > before.Fragments
		switch {
		case missed == nil && !cut:
			return true, nil
		case retried && missed != nil:
			return false, fmt.Errorf("whether a packet of %d bytes to %s was cut up: %w", w.Size, w.Target, missed)
		case retried:
			return false, nil
		}
		before = after
	}
}
