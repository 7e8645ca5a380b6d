package stream

import (
	"cmp"
	"time"
)

// ReportSchema names the JSON object that a Report is written as.
const ReportSchema = "cnibench/stream/1"

// Report is slices as `cnibench load tcp-stream --json` prints them. Keys are
// result's metric names where there is one; units are those of the catalogue.
type Report struct {
	Schema       string        `json:"schema"`
	Target       string        `json:"target"`
	Protocol     Protocol      `json:"protocol"`
	Connections  int           `json:"connections"`
	Duration     float64       `json:"duration"` // of all slices together, s
	Goodput      float64       `json:"goodput"`  // bit/s, by the receiver's count and clock
	Retransmits  *int64        `json:"retransmits,omitempty"`
	Packets      *int64        `json:"packets,omitempty"` // received
	Loss         *float64      `json:"loss,omitempty"`    // 0 to 1
	Jitter       *float64      `json:"jitter,omitempty"`  // s
	GeneratorCPU float64       `json:"generator_cpu"`     // of this program, CPU-seconds per second
	Interrupted  bool          `json:"interrupted"`
	Slices       []SliceReport `json:"slices"`
}

// SliceReport is one slice.
type SliceReport struct {
	Duration    float64   `json:"duration"` // s
	Goodput     float64   `json:"goodput"`  // bit/s
	Connections []float64 `json:"connections,omitempty"`
	Retransmits int64     `json:"retransmits,omitempty"`
	Loss        float64   `json:"loss,omitempty"`
}

// NewReport sums up slices that cfg gave.
func NewReport(cfg Config, target string, slices []Slice) Report {
	r := Report{Schema: ReportSchema, Target: target, Protocol: cfg.Protocol, Connections: cmp.Or(cfg.Connections, 1), Slices: []SliceReport{}}
	var all Slice
	for _, s := range slices {
		each := SliceReport{Duration: s.Elapsed.Seconds(), Goodput: float64(s.Goodput()), Retransmits: s.Retransmits, Loss: s.Loss()}
		for _, n := range s.Connections {
			each.Connections = append(each.Connections, float64(Slice{Bytes: n, Elapsed: s.Elapsed}.Goodput()))
		}
		r.Slices = append(r.Slices, each)
		all.Elapsed += s.Elapsed
		all.Bytes += s.Bytes
		all.Retransmits += s.Retransmits
		all.Packets += s.Packets
		all.Lost += s.Lost
		all.CPU += s.CPU
		all.Jitter += s.Jitter / time.Duration(len(slices))
		r.Interrupted = r.Interrupted || s.Interrupted
	}
	r.Duration, r.Goodput = all.Elapsed.Seconds(), float64(all.Goodput())
	if all.Elapsed > 0 {
		r.GeneratorCPU = all.CPU.Seconds() / all.Elapsed.Seconds()
	}
	if cfg.Protocol == UDP {
		loss, jitter := all.Loss(), all.Jitter.Seconds()
		r.Packets, r.Loss, r.Jitter = &all.Packets, &loss, &jitter
	} else {
		r.Retransmits = &all.Retransmits
	}
	return r
}
