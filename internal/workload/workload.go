// Package workload holds the ways of loading and measuring a path, one file
// each. A workload drives programs at two endpoints and returns metrics and
// histograms; it knows no arena, judges nothing and writes no files but
// through its session's Raw folder. Next: all.go lists them.
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
	// Drive runs the workload once over the session's pair. It returns what
	// it measured even with an error, when a part was measured. Every
	// process that it started has ended when it returns.
	Drive(ctx context.Context, s *Session) (Outcome, error)
}

// Calibrated is a workload whose rate can be given as a share of the highest
// rate that the machine sustains.
type Calibrated interface {
	// Capacity finds that rate (1/s) over the session's pair: by a search, or, if brief, as
	// what closed loops of three seconds reach, which is near it and takes no search.
	Capacity(ctx context.Context, s *Session, brief bool) (float64, error)
}

// Info describes a workload for listings, plans and checks of its parameters.
type Info struct {
	Name    string
	Summary string
	Params  []Param
	Metrics []string // names in result's metric catalogue
}

// Param is one parameter of a workload; its Default also gives its type (int,
// float64, string or bool).
type Param struct {
	Name    string
	Default any
	Help    string
}

// Session is one drive: where, with what, for how long.
type Session struct {
	Client, Server arena.Endpoint
	Target         netip.Addr // where the client reaches the server
	// Ports are where the client reaches the server's ports that have another
	// number at Target; nil: each has the same.
	Ports    map[uint16]uint16
	Params   Params
	Warmup   time.Duration // excluded from every figure
	Duration time.Duration // of the measured window
	Raw      Raw
	// Begin and End mark the measured window for the recorder; Drive calls
	// each once, at the moment.
	Begin, End func()
}

// at returns where the client reaches that port of the server.
func (s *Session) at(port uint16) netip.AddrPort {
	return arena.Pair{Target: s.Target, Ports: s.Ports}.At(port)
}

// Raw takes the files that a reader can check a sample against: commands,
// standard output, standard error, configuration.
type Raw interface {
	Create(name string) (io.WriteCloser, error)
}

// Discard is a Raw whose files nobody reads.
type Discard struct{}

// Create implements Raw.
func (Discard) Create(string) (io.WriteCloser, error) { return nothing{io.Discard}, nil }

type nothing struct{ io.Writer }

func (nothing) Close() error { return nil }

// Outcome is what a drive measured.
type Outcome struct {
	Metrics    map[string]float64                 // by name in result's catalogue, SI units
	Histograms map[string]*hdrhistogram.Histogram // by clock ("latency", …), nanoseconds
	Faults     []result.Reason                    // why the sample must not be trusted, found by the workload itself
	Spoiled    []result.Reason                    // why the clocks that hold the load generator's delay must not be trusted
	Notes      []result.Reason                    // what a reader should know of how it was measured
	// ClientSpin is what the client spent in the window waiting in a spin for
	// its next send, CPU-seconds per second. The recorder sees it as work of
	// the client's CPUs, which it is not.
	ClientSpin float64
	// Pauses is the share of the window that goodput leaves out because nothing was to
	// be moved in it, 0 to 1. The recorder sees the whole window.
	Pauses float64
}
