package stream

import (
	"cmp"
	"errors"
)

// ReportSchema names the JSON object that a Report is written as.
const ReportSchema = "cnibench/stream/1"

// Report is a slice as `cnibench load tcp-stream --json` prints it, or several slices that
// Merge has merged. Keys are metric names of package result where there are such metrics,
// with the same units.
type Report struct {
	Schema      string   `json:"schema"`
	Target      string   `json:"target"`
	Protocol    Protocol `json:"protocol"`
	Connections int      `json:"connections"`
	Window      int      `json:"window,omitempty"` // bytes; 0 is not limited
	Duration    float64  `json:"duration"`         // s, by the receiver's clock
	Goodput     float64  `json:"goodput"`          // bit/s, by the receiver's count and clock
	// Parts are the goodput of each TCP connection (bit/s). Their order has no meaning,
	// but is the same in every slice.
	Parts        []float64 `json:"connection_goodput,omitempty"`
	Retransmits  int64     `json:"retransmits"`   // TCP: segments
	Packets      int64     `json:"packets"`       // UDP: received
	Lost         int64     `json:"lost"`          // UDP
	Jitter       float64   `json:"jitter"`        // UDP: s
	GeneratorCPU float64   `json:"generator_cpu"` // of this program, CPU-seconds per second
	Interrupted  bool      `json:"interrupted"`
}

// NewReport returns the report of a slice that was sent as cfg says.
func NewReport(cfg Config, target string, s Slice) Report {
	r := Report{
		Schema: ReportSchema, Target: target, Protocol: cfg.Protocol, Connections: cmp.Or(cfg.Connections, 1), Window: cfg.Window,
		Duration: s.Elapsed.Seconds(), Goodput: float64(s.Goodput()), Retransmits: s.Retransmits,
		Packets: s.Packets, Lost: s.Lost, Jitter: s.Jitter.Seconds(), Interrupted: s.Interrupted,
	}
	for _, n := range s.Connections {
		r.Parts = append(r.Parts, float64(Slice{Bytes: n, Elapsed: s.Elapsed}.Goodput()))
	}
	if s.Elapsed > 0 {
		r.GeneratorCPU = s.CPU.Seconds() / r.Duration
	}
	return r
}

// Loss returns the share of packets that were lost, 0 to 1.
func (r Report) Loss() float64 { return Slice{Packets: r.Packets, Lost: r.Lost}.Loss() }

// Merge returns one report of several slices of a Sender: counts are added up; goodput,
// jitter and CPU time are means weighted by time.
func Merge(slices []Report) (Report, error) {
	if len(slices) == 0 {
		return Report{}, errors.New("stream: no slices to merge")
	}
	sum := slices[0]
	sum.Parts = append([]float64(nil), sum.Parts...)
	for _, s := range slices[1:] {
		duration := sum.Duration + s.Duration
		mean := func(of *float64, added float64) {
			if duration > 0 {
				*of = (*of*sum.Duration + added*s.Duration) / duration
			}
		}
		mean(&sum.Goodput, s.Goodput)
		mean(&sum.Jitter, s.Jitter)
		mean(&sum.GeneratorCPU, s.GeneratorCPU)
		for i := range min(len(sum.Parts), len(s.Parts)) {
			mean(&sum.Parts[i], s.Parts[i])
		}
		sum.Retransmits += s.Retransmits
		sum.Packets += s.Packets
		sum.Lost += s.Lost
		sum.Interrupted = sum.Interrupted || s.Interrupted
		sum.Duration = duration
	}
	return sum, nil
}
