package workload

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/cnibench/cnibench/internal/load/serve"
	"github.com/cnibench/cnibench/internal/unit"
)

// HTTPRate sends HTTP requests at a constant rate, as the 2016 study did:
// the load engine at the client, nginx at the server.
type HTTPRate struct {
	// Program is cnibench at the endpoints; "" is the running program.
	Program string
}

// Info implements Workload.
func (HTTPRate) Info() Info {
	return Info{
		Name:    "http_rate",
		Summary: "HTTP/1.1 requests at a constant rate over open connections; latency from the planned send",
		Params: []Param{
			{"rate", 10000.0, "requests per second, or a share of the highest sustained rate such as 30%; " +
				"choose no multiple of the kernel's HZ (100, 250, 1000): CPU accounting by ticks would look at the same moment of every period"},
			{"connections", 64, "connections that are kept open; with connection_per_request, how many there may be at once"},
			{"connection_per_request", false, "a connection of its own for every request; latency then has the handshake in it"},
			{"response", "350B", fmt.Sprintf("size of a whole response, %d bytes of it header: 350B has 100 B of content, 4KiB has 3846", serve.HeaderBytes)},
			{"file", false, "nginx reads the response from a file, as a server of static pages does; needed above 4 KiB"},
			arrivalsParam, threadsParam,
			{"overload", false, "the rate may be more than can be answered: the achieved rate and the latency that grows are the result, and no fault"},
			{"workers", 1, "nginx's worker processes, or cnibench's serving threads; 0: one for each CPU that only the server has, or 1; nginx's are bound to them"},
			{"port", 8080, "TCP port of the server"},
			{"server", "nginx", "nginx, or cnibench for its own, which can stall"},
			{"stall", "", "with server: cnibench, how long all responses are held, e.g. 200ms"},
			{"every", "2s", "from the start of one stall to the next"},
		},
		Metrics: loadMetrics("latency", "service_time", "network_time", "send_lag"),
	}
}

// Drive implements Workload.
func (h HTTPRate) Drive(ctx context.Context, s *Session) (Outcome, error) {
	return driveInOneSlice(ctx, s, h)
}

// Open implements Sliceable.
func (h HTTPRate) Open(ctx context.Context, s *Session) (Slicer, error) {
	return withEngine(ctx, s, h.load, engine.openPaced)
}

// Capacity implements Calibrated.
func (h HTTPRate) Capacity(ctx context.Context, s *Session) (float64, error) {
	return withEngine(ctx, s, h.load, engine.capacity)
}

// Peak implements Calibrated.
func (h HTTPRate) Peak(ctx context.Context, s *Session) (float64, error) {
	return withEngine(ctx, s, h.load, engine.peak)
}

func (h HTTPRate) load(s *Session) (engine, error) {
	size, err := unit.ParseBytes(s.Params.String("response"))
	if err != nil {
		return engine{}, fmt.Errorf("http_rate: response: %w", err)
	}
	l := engine{
		workload: "http_rate", program: h.Program, port: uint16(s.Params.Int("port")), reports: requests{int64(size), s.Params.Bool("overload")}, flags: requestFlags(s),
		server: func(c *programGroup, self string, listen netip.AddrPort) (*program, error) {
			return c.httpServer(self, listen, int(size))
		},
		exchange: func(target netip.AddrPort) []string { return []string{"http", "http://" + target.String() + "/"} },
	}
	if s.Params.Bool("connection_per_request") {
		l.flags = append(l.flags, "--connection-per-request")
	}
	return l, nil
}
