package workload

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/cnibench/cnibench/internal/unit"
)

// RR sends requests and responses of plain bytes, as netperf's RR tests do:
// the load engine at the client, `cnibench serve` at the server. TCPRR, TCPCRR
// and UDPRR return one.
type RR struct {
	// Program is cnibench at the endpoints; "" is the running program.
	Program string

	name, summary string
	exchange      string // of `cnibench load`
	protocol      string // of `cnibench serve`
	maximum       string // the largest size, for the help
	timeout       string // for a response; "" is the load engine's default
}

// Info implements Workload.
func (w RR) Info() Info {
	return Info{
		Name:    w.name,
		Summary: w.summary,
		Params: []Param{
			{"rate", 0.0, "requests per second, or a share of the highest sustained rate such as 30%; 0 is the closed loop of netperf: " +
				"every connection asks again as soon as it has its answer, so that there are a rate and service times but no latency"},
			{"connections", 1, "requests that may be under way at once, each on a connection (UDP: a socket) of its own"},
			{"request", "1B", "size of a request, at most " + w.maximum},
			{"response", "1B", "size of a response, at most " + w.maximum},
			arrivalsParam, threadsParam,
			{"workers", 1, "the server's threads; 0: one for each CPU that only the server has, or 1"},
			{"port", 7000, "port of the server"},
		},
		Metrics: loadMetrics("service_time", "network_time"),
	}
}

// Drive implements Workload.
func (w RR) Drive(ctx context.Context, s *Session) (Outcome, error) {
	return driveInOneSlice(ctx, s, w)
}

// Open implements Sliceable.
func (w RR) Open(ctx context.Context, s *Session) (Slicer, error) {
	return withEngine(ctx, s, w.load, engine.openPaced)
}

// Capacity implements Calibrated.
func (w RR) Capacity(ctx context.Context, s *Session) (float64, error) {
	return withEngine(ctx, s, w.load, engine.capacity)
}

// Peak implements Calibrated.
func (w RR) Peak(ctx context.Context, s *Session) (float64, error) {
	return withEngine(ctx, s, w.load, engine.peak)
}

func (w RR) load(s *Session) (engine, error) {
	var sizes []string
	var last unit.Bytes
	for _, name := range []string{"request", "response"} {
		size, err := unit.ParseBytes(s.Params.String(name))
		if err != nil {
			return engine{}, fmt.Errorf("%s: %s: %w", w.name, name, err)
		}
		sizes = append(sizes, "--"+name, strconv.Itoa(int(size)))
		last = size
	}
	flags := slices.Concat(requestFlags(s), sizes)
	if w.timeout != "" {
		flags = append(flags, "--timeout", w.timeout)
	}
	return engine{
		workload: w.name, program: w.Program, port: uint16(s.Params.Int("port")), reports: requests{responseBytes: int64(last)}, flags: flags,
		server: func(c *programGroup, self string, listen netip.AddrPort) (*program, error) {
			workers, _ := s.spread("workers", s.Server, s.Client)
			argv := append([]string{self, "serve", w.protocol, "--listen", listen.String(), "--threads", strconv.Itoa(workers)}, sizes...)
			return c.start(s.Server, "server", ".txt", argv...)
		},
		exchange: func(target netip.AddrPort) []string { return []string{w.exchange, target.String()} },
	}, nil
}
