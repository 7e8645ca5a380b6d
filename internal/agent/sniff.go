package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"github.com/cnibench/cnibench/internal/unit"
)

// Sniff asks for every packet that crosses an interface, in both directions,
// to be counted. Needs CAP_NET_RAW.
type Sniff struct {
	Device string `json:"device"`
	// Markers are byte strings to look for, by their names.
	Markers map[string][]byte `json:"markers,omitempty"`
	// LargeFrom is the length in bytes, link header left out, from which
	// packets are counted as large, too; 0 is every packet.
	LargeFrom int `json:"large_from,omitempty"`
}

// Sniffed is what a sniffer has seen since it was started.
type Sniffed struct {
	Packets   uint64            `json:"packets"`
	Bytes     uint64            `json:"bytes"`     // of the packets, link headers left out
	Largest   int               `json:"largest"`   // bytes of the largest packet, link header left out; over the MTU with segmentation offload
	Fragments uint64            `json:"fragments"` // IPv4 packets that are parts of larger ones
	Protocols map[string]uint64 `json:"protocols"` // packets by what they are: "tcp", "vxlan/udp", "esp", "wireguard", …
	// Large are those of at least LargeFrom bytes.
	Large map[string]uint64 `json:"large,omitempty"`
	// Marked are the packets that hold a marker, by its name and by what they are.
	Marked map[string]map[string]uint64 `json:"marked,omitempty"`
	// Dropped packets came faster than they were looked at.
	Dropped uint64 `json:"dropped,omitempty"`
}

// minMarker is long enough not to occur by chance.
const minMarker = 16

func (a *Sniff) complete() error {
	if a.Device == "" {
		return errors.New("no device given")
	}
	for name, m := range a.Markers {
		if len(m) < minMarker {
			return fmt.Errorf("marker %s: %d bytes; want %d or more", name, len(m), minMarker)
		}
	}
	return nil
}

// take counts one packet of that length, of which b is the beginning.
func (s *Sniffed) take(etherType uint16, b []byte, length int, asked Sniff) {
	p := describe(etherType, b)
	s.Packets++
	s.Bytes += uint64(length)
	s.Largest = max(s.Largest, length)
	if p.fragment {
		s.Fragments++
	}
	s.Protocols[p.label]++
	if length >= asked.LargeFrom {
		s.Large[p.label]++
	}
	for name, m := range asked.Markers {
		if !bytes.Contains(b, m) {
			continue
		}
		if s.Marked[name] == nil {
			s.Marked[name] = map[string]uint64{}
		}
		s.Marked[name][p.label]++
	}
}

// Missed returns an error if packets have been dropped since an earlier look.
func (s *Sniffed) Missed(before Sniffed) error {
	if s.Dropped == before.Dropped {
		return nil
	}
	return fmt.Errorf("the sniffer missed %s; try again while the machine has less to do", unit.Plural(int(s.Dropped-before.Dropped), "packet"))
}

func newSniffed() Sniffed {
	return Sniffed{Protocols: map[string]uint64{}, Large: map[string]uint64{}, Marked: map[string]map[string]uint64{}}
}

// clone returns a copy that no one counts in.
func (s *Sniffed) clone() Sniffed {
	c := *s
	c.Protocols, c.Large, c.Marked = maps.Clone(s.Protocols), maps.Clone(s.Large), map[string]map[string]uint64{}
	for name, by := range s.Marked {
		c.Marked[name] = maps.Clone(by)
	}
	return c
}

var (
	errSniffing    = errors.New("a sniffer runs already; stop it first")
	errNotSniffing = errors.New("no sniffer runs; start one first")
)

// ErrMayNotSniff says that the endpoint lacks the right to see packets,
// CAP_NET_RAW.
var ErrMayNotSniff = errors.New("no right to see packets")

// sniffing is the answer to opSniff.
type sniffing struct {
	Denied string `json:"denied,omitempty"` // the system's words
}

func (s *server) sniff(_ context.Context, args Sniff) (sniffing, error) {
	s.sniffMu.Lock()
	defer s.sniffMu.Unlock()
	if s.sniffer != nil {
		return sniffing{}, errSniffing
	}
	made, err := newSniffer(args)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return sniffing{Denied: err.Error()}, nil
	case err != nil:
		return sniffing{}, err
	}
	s.sniffer = made
	return sniffing{}, nil
}

// sniffed tells what was seen until now; Stop ends the sniffer.
func (s *server) sniffed(_ context.Context, args sniffedArgs) (Sniffed, error) {
	s.sniffMu.Lock()
	defer s.sniffMu.Unlock()
	if s.sniffer == nil {
		return Sniffed{}, errNotSniffing
	}
	seen, err := s.sniffer.seen()
	if args.Stop {
		s.sniffer.close()
		s.sniffer = nil
	}
	return seen, err
}

// stopSniffing ends the sniffer that nobody has stopped.
func (s *server) stopSniffing() {
	s.sniffMu.Lock()
	defer s.sniffMu.Unlock()
	if s.sniffer != nil {
		s.sniffer.close()
		s.sniffer = nil
	}
}

type sniffedArgs struct {
	Stop bool `json:"stop,omitempty"`
}

// Sniff starts counting the packets of an interface. Only one sniffer runs at
// a time. The error is ErrMayNotSniff where the endpoint has not the right to.
func (c *Client) Sniff(ctx context.Context, s Sniff) error {
	got, err := call[sniffing](ctx, c, opSniff, s, 0)
	if got.Denied != "" {
		return c.wrap(opSniff, fmt.Errorf("%w: %s", ErrMayNotSniff, got.Denied))
	}
	return err
}

// Sniffed tells what the sniffer has seen: every packet that had crossed the
// interface when it was asked.
func (c *Client) Sniffed(ctx context.Context) (Sniffed, error) {
	return call[Sniffed](ctx, c, opSniffed, sniffedArgs{}, 0)
}

// StopSniffing is Sniffed for the last time.
func (c *Client) StopSniffing(ctx context.Context) (Sniffed, error) {
	return call[Sniffed](ctx, c, opSniffed, sniffedArgs{Stop: true}, 0)
}
