//go:build linux

package ebpf

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/perf"
)

// The values of setting hubble: the reader of the datapath's flow events.
const (
	hubbleOff   = "off"   // nobody; the datapath writes them anyway
	hubbleAgent = "agent" // Hubble in the agent, which keeps the last ones
	hubbleRelay = "relay" // the same, and a relay reads all of them from it
)

const (
	eventPages = 64   // pages for each CPU, as in the monitor's buffer (pkg/monitor/agent)
	flowBuffer = 4095 // flows that Hubble keeps (hubble-event-buffer-capacity)
)

// hubbleFlow is a flow event as Hubble decodes it.
type hubbleFlow struct {
	Time                time.Time
	Point               uint8
	Reason              uint8
	Length              uint32
	From, To            uint32 // identities
	Source, Destination netip.AddrPort
	Protocol            uint8
	TCPFlags            uint8
}

// observer reads a node's events in a goroutine of this process. Its CPU time counts for the
// machine, but it is not bound to the node's CPUs.
type observer struct {
	events *perf.Reader
	relay  chan []byte // nil if there is no relay
	done   sync.WaitGroup

	flows [flowBuffer]hubbleFlow
	seen  atomic.Uint64
	lost  atomic.Uint64
}

func observe(events *ebpf.Map, relay bool) (*observer, error) {
	r, err := perf.NewReader(events, eventPages*os.Getpagesize())
	if err != nil {
		return nil, fmt.Errorf("flow events: %w", err)
	}
	o := &observer{events: r}
	if relay {
		o.relay = make(chan []byte, 1024)
		o.done.Go(o.forward)
	}
	o.done.Go(o.read)
	return o, nil
}

func (o *observer) read() {
	if o.relay != nil {
		defer close(o.relay)
	}
	var record perf.Record
	for {
		err := o.events.ReadInto(&record)
		if errors.Is(err, perf.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		o.lost.Add(record.LostSamples)
		flow, err := parseFlow(bytes.NewReader(record.RawSample))
		if err != nil {
			continue
		}
		n := o.seen.Add(1)
		o.flows[n%flowBuffer] = flow
		if o.relay == nil {
			continue
		}
		if text, err := json.Marshal(flow); err == nil {
			select {
			case o.relay <- text:
			default: // a slow relay loses flows and does not delay the agent
			}
		}
	}
}

// forward does the relay's work: it decodes the flows for its own clients.
func (o *observer) forward() {
	for text := range o.relay {
		var flow hubbleFlow
		_ = json.Unmarshal(text, &flow)
	}
}

func (o *observer) close() {
	_ = o.events.Close()
	o.done.Wait()
}

// flowEvent is the event's structure in bpf/cilium.c.
type flowEvent struct {
	Type, Point       uint8
	Source            uint16
	Hash, Length      uint32
	Captured, Version uint16
	From, To          uint32
	Destination       uint16
	Reason, Flags     uint8
	Ifindex           uint32
	Original          [16]byte
}

// parseFlow decodes an event and the beginning of its packet.
func parseFlow(r io.Reader) (hubbleFlow, error) {
	var e flowEvent
	if err := binary.Read(r, binary.NativeEndian, &e); err != nil {
		return hubbleFlow{}, fmt.Errorf("flow event: %w", err)
	}
	f := hubbleFlow{Time: time.Now(), Point: e.Point, Reason: e.Reason, Length: e.Length, From: e.From, To: e.To}
	packet, err := io.ReadAll(io.LimitReader(r, int64(e.Captured)))
	if err != nil {
		return f, fmt.Errorf("flow event: %w", err)
	}
	const ethernet, header = 14, 20
	if len(packet) < ethernet+header {
		return f, fmt.Errorf("flow event: %d bytes of a packet are no IPv4 header", len(packet))
	}
	ip := packet[ethernet:]
	f.Protocol = ip[9]
	l4 := ip[min(int(ip[0]&0xf)*4, len(ip)):]
	var source, destination uint16
	if (f.Protocol == protocols["TCP"] || f.Protocol == protocols["UDP"]) && len(l4) >= 4 {
		source, destination = binary.BigEndian.Uint16(l4), binary.BigEndian.Uint16(l4[2:])
	}
	if f.Protocol == protocols["TCP"] && len(l4) > 13 {
		f.TCPFlags = l4[13]
	}
	f.Source = netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[12:])), source)
	f.Destination = netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[16:])), destination)
	return f, nil
}
