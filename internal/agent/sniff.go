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

// Sniff asks the agent to count every packet that crosses an interface in either
// direction. The agent needs CAP_NET_RAW.
type Sniff struct {
	Device string `json:"device"`
	// Markers are byte strings to look for, by name.
	Markers map[string][]byte `json:"markers,omitempty"`
	// LargeFrom is the length, in bytes without the link header, from which packets also
	// count as large; 0 is every packet.
	LargeFrom int `json:"large_from,omitempty"`
}

// Sniffed holds the counts of a sniffer since its start.
type Sniffed struct {
	Packets   uint64            `json:"packets"`
	Bytes     uint64            `json:"bytes"`     // of the packets, link headers left out
	Largest   int               `json:"largest"`   // bytes of the largest packet, link header left out; over the MTU with segmentation offload
	Fragments uint64            `json:"fragments"` // IPv4 packets that are parts of larger ones
	Protocols map[string]uint64 `json:"protocols"` // packets by label: "tcp", "vxlan/udp", "esp", "wireguard"
	// Large counts the packets of at least LargeFrom bytes, by label.
	Large map[string]uint64 `json:"large,omitempty"`
	// Marked counts the packets that hold a marker, by the marker's name and by label.
	Marked map[string]map[string]uint64 `json:"marked,omitempty"`
	// Dropped counts the packets that the kernel dropped because the sniffer was too slow.
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

// take counts one packet of that length in bytes; b is its beginning.
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

// CheckDrops returns an error if packets have been dropped since an earlier look.
func (s *Sniffed) CheckDrops(before Sniffed) error {
	if s.Dropped == before.Dropped {
		return nil
	}
	return fmt.Errorf("the sniffer missed %s; try again while the machine has less to do", unit.Plural(int(s.Dropped-before.Dropped), "packet"))
}

func newSniffed() Sniffed {
	return Sniffed{Protocols: map[string]uint64{}, Large: map[string]uint64{}, Marked: map[string]map[string]uint64{}}
}

// clone returns a deep copy.
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
	Denied string `json:"denied,omitempty"` // the system's error
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

// readSniffer returns the counts until now, and ends the sniffer if args.Stop is set.
func (s *server) readSniffer(_ context.Context, args sniffedArgs) (Sniffed, error) {
	s.sniffMu.Lock()
	defer s.sniffMu.Unlock()
	if s.sniffer == nil {
		return Sniffed{}, errNotSniffing
	}
	seen, err := s.sniffer.readCounts()
	if args.Stop {
		s.sniffer.close()
		s.sniffer = nil
	}
	return seen, err
}

// stopSniffing ends the sniffer if one still runs.
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

// Sniff starts a sniffer on an interface. A second sniffer at the same time is an error.
// The error is ErrMayNotSniff if the endpoint lacks the right.
func (c *Client) Sniff(ctx context.Context, s Sniff) error {
	got, err := call[sniffing](ctx, c, opSniff, s, 0)
	if got.Denied != "" {
		return c.wrap(opSniff, fmt.Errorf("%w: %s", ErrMayNotSniff, got.Denied))
	}
	return err
}

// ReadSniffer returns the counts of the sniffer. They include every packet that crossed the
// interface before the call.
func (c *Client) ReadSniffer(ctx context.Context) (Sniffed, error) {
	return call[Sniffed](ctx, c, opSniffed, sniffedArgs{}, 0)
}

// StopSniffing ends the sniffer and returns its counts.
func (c *Client) StopSniffing(ctx context.Context) (Sniffed, error) {
	return call[Sniffed](ctx, c, opSniffed, sniffedArgs{Stop: true}, 0)
}
