package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/load/stream"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// Bulk sends as much as the path carries, in one slice or several: `cnibench load
// tcp-stream` or `udp-stream` at the client, `cnibench serve stream` at the server.
// TCPBulk and UDPBulk return one.
type Bulk struct {
	// Program is cnibench at the endpoints; "" is the running program.
	Program string

	protocol stream.Protocol
	summary  string
	params   []Param
	metrics  []string
}

// TCPBulk sends as much as TCP carries.
func TCPBulk() Bulk {
	return Bulk{
		protocol: stream.TCP,
		summary:  "bulk TCP from client to server with cnibench's own sender; goodput is what the server received",
		params: []Param{
			{"streams", 1, "connections, each with a sending and a receiving thread"},
			{"block", "128KiB", "what one write takes, up to 16MiB"},
			{"window", "", "the most that is under way on a connection, e.g. 1MiB; nothing leaves it to the kernel"},
			{"zero_copy", false, "send from page cache (sendfile) instead of copying from memory"},
			bulkBandwidthParam, bulkPortParam,
		},
		metrics: []string{result.Goodput, result.Retransmits},
	}
}

// UDPBulk sends packets at a rate, or as many as it can.
func UDPBulk() Bulk {
	return Bulk{
		protocol: stream.UDP,
		summary:  "bulk UDP from client to server with cnibench's own sender; goodput is what the server received, and loss belongs to it",
		params: []Param{
			{"streams", 1, "sockets, each with a sending thread"},
			{"length", "1400B", "payload of a packet, 32B to 65507B"},
			bulkBandwidthParam, bulkPortParam,
		},
		metrics: []string{result.Goodput, result.Loss, result.Jitter},
	}
}

var bulkBandwidthParam = Param{result.BandwidthParam, "0", "the most to send, bit/s of payload over all streams, such as 500M; 0 is as fast as it can"}

var bulkPortParam = Param{"port", 5301, "port of the server, TCP and for packets UDP too"}

func (w Bulk) name() string { return string(w.protocol) + "_bulk" }

// Info implements Workload.
func (w Bulk) Info() Info {
	return Info{Name: w.name(), Summary: w.summary, Params: w.params, Metrics: w.metrics}
}

// Ports implements Serving: the sender asks for the counts over TCP.
func (w Bulk) Ports(p Params) []arena.Port {
	all := onePort(p, arena.TCP)
	if w.protocol == stream.UDP {
		all = append(all, onePort(p, arena.UDP)...)
	}
	return all
}

// Drive implements Workload.
func (w Bulk) Drive(ctx context.Context, s *Session) (Outcome, error) {
	return driveInOneSlice(ctx, s, w)
}

// Open implements Sliceable.
func (w Bulk) Open(ctx context.Context, s *Session) (Slicer, error) {
	flags := []string{"--connections", strconv.Itoa(s.Params.Int("streams"))}
	bandwidth := s.Params.String(result.BandwidthParam)
	switch rate, err := unit.ParseBitRate(bandwidth); {
	case err != nil:
		return nil, fmt.Errorf("%s: bandwidth: %w", w.name(), err)
	case rate > 0:
		flags = append(flags, "--rate", bandwidth)
	}
	if w.protocol == stream.UDP {
		flags = append(flags, "--size", s.Params.String("length"))
	} else {
		flags = append(flags, "--size", s.Params.String("block"))
		if window := s.Params.String("window"); window != "" {
			flags = append(flags, "--window", window)
		}
		if s.Params.Bool("zero_copy") {
			flags = append(flags, "--zero-copy")
		}
	}
	return engine{
		workload: w.name(), program: w.Program, port: uint16(s.Params.Int("port")), reports: bytesReceived{}, flags: flags,
		server: func(c *programGroup, self string, listen netip.AddrPort) (*program, error) {
			return c.start(s.Server, "server", ".txt", self, "serve", "stream", "--listen", listen.String())
		},
		exchange: func(target netip.AddrPort) []string { return []string{string(w.protocol) + "-stream", target.String()} },
	}.open(ctx, s)
}

// bytesReceived reads the reports of bulk streams.
type bytesReceived struct{}

func (bytesReceived) read(text json.RawMessage) (stream.Report, error) {
	var r stream.Report
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("output of the load: %w", err)
	}
	if r.Schema != stream.ReportSchema {
		return r, fmt.Errorf("output of the load: a report of schema %q, want %s", r.Schema, stream.ReportSchema)
	}
	return r, nil
}

func (b bytesReceived) slice(text json.RawMessage) (Slice, error) {
	r, err := b.read(text)
	if err != nil {
		return Slice{}, err
	}
	out := Slice{Elapsed: unit.Seconds(r.Duration).Duration(), Metrics: bulkMetrics(r)}
	if r.Goodput == 0 {
		out.Faults = append(out.Faults, result.Reason{Code: "nothing_received", Text: "no byte arrived in the slice"})
	}
	return out, nil
}

func (b bytesReceived) merge(slices []json.RawMessage) (Outcome, error) {
	var all []stream.Report
	for _, text := range slices {
		r, err := b.read(text)
		if err != nil {
			return Outcome{}, err
		}
		all = append(all, r)
	}
	sum, err := stream.Merge(all)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Metrics: bulkMetrics(sum)}
	if sum.Goodput == 0 {
		return out, fmt.Errorf("no byte arrived in %v", unit.Seconds(sum.Duration))
	}
	return out, nil
}

func bulkMetrics(r stream.Report) map[string]float64 {
	if r.Protocol == stream.UDP {
		return map[string]float64{result.Goodput: r.Goodput, result.Loss: r.Loss(), result.Jitter: r.Jitter}
	}
	return map[string]float64{result.Goodput: r.Goodput, result.Retransmits: float64(r.Retransmits)}
}
