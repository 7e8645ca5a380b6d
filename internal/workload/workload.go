// Package workload has the workloads, which load and measure a path, one file
// each. A workload drives programs at two endpoints and returns metrics and
// histograms. It knows no arena, judges nothing, and writes files only through its
// session's Raw. Next: all.go lists the workloads.
package workload

import (
	"context"
	"io"
	"net/netip"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/result"
)

// Workload is one way of loading and measuring.
type Workload interface {
	// Info describes the workload; it never changes.
	Info() Info
	// Drive runs the workload once over the session's pair. With an error, it returns
	// the part that was measured. All its processes have ended when it returns.
	Drive(ctx context.Context, s *Session) (Outcome, error)
}

// Calibrated is a workload whose rate can be given as a share of the highest
// rate that the machine sustains.
type Calibrated interface {
	// Capacity searches for that rate (1/s) over the session's pair.
	Capacity(ctx context.Context, s *Session) (float64, error)
	// Peak returns the rate (1/s) of one short closed loop over the session's pair. On an
	// undisturbed machine it is near the capacity.
	Peak(ctx context.Context, s *Session) (float64, error)
}

// Info describes a workload for listings, plans and checks of its parameters.
type Info struct {
	Name    string
	Summary string
	Params  []Param
	Metrics []string // names in result's metric catalogue
	// Search is about how long the workload loads the path before its warm-up, to find a rate.
	Search time.Duration
}

// Param is one parameter of a workload; its Default also gives its type (int,
// float64, string or bool).
type Param struct {
	Name    string `json:"name"`
	Default any    `json:"default"`
	Help    string `json:"help"`
}

// Session is what one drive needs to know: endpoints, parameters and times.
type Session struct {
	Client, Server arena.Endpoint
	Target         netip.Addr // where the client reaches the server
	// Ports map a port of the server to its port at Target where the two differ. nil:
	// none differs.
	Ports    map[uint16]uint16
	Params   Params
	Warmup   time.Duration // excluded from every figure
	Duration time.Duration // of the measured window
	Raw      Raw
	// Begin and End mark the measured window for the recorder. Drive calls Begin when
	// the window begins, and End when it ends.
	Begin, End func()
}

// at returns where the client reaches that port of the server.
func (s *Session) at(port uint16) netip.AddrPort {
	return arena.Pair{Target: s.Target, Ports: s.Ports}.At(port)
}

// Raw holds the files by which a reader can check a sample: commands, standard output,
// standard error, configuration.
type Raw interface {
	Create(name string) (io.WriteCloser, error)
}

// Discard is a Raw that keeps no files.
type Discard struct{}

// Create implements Raw.
func (Discard) Create(string) (io.WriteCloser, error) { return nothing{io.Discard}, nil }

type nothing struct{ io.Writer }

func (nothing) Close() error { return nil }

// Outcome is what a drive measured.
type Outcome struct {
	Metrics     map[string]float64                 // by name in result's catalogue, SI units
	Histograms  map[string]*hdrhistogram.Histogram // by clock ("latency", …), nanoseconds
	Faults      []result.Reason                    // why the sample is invalid, found by the workload itself
	ClockFaults []result.Reason                    // why the clocks that contain the load generator's delay are invalid
	Notes       []result.Reason                    // what a reader should know about the measurement
	// ClientSpin is the CPU time that the client spent spinning until its next send,
	// CPU-seconds per second. The recorder counts it as work, which it is not.
	ClientSpin float64
	// Pauses is the share of the window, 0 to 1, that goodput leaves out because no
	// transfer ran in it. The recorder sees the whole window.
	Pauses float64
}
