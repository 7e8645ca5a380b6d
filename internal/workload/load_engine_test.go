package workload

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/load"
	"github.com/cnibench/cnibench/internal/result"
)

// Whatever a client sends as its reports, there is an error or an outcome.
func FuzzRequests(f *testing.F) {
	f.Add([]byte(`{"schema":"cnibench/load/1","histograms":{"latency":"SElT"}}`))
	f.Fuzz(func(_ *testing.T, in []byte) {
		_, _ = requests{}.slice(in)
		_, _ = requests{}.merge([]json.RawMessage{in, in})
	})
}

func TestOutcome(t *testing.T) {
	good := load.Report{Rate: 999, AskedRate: 1000, Planned: 1000, Sent: 1000, Requests: 1000}
	limited := func(codes ...string) func(*load.Report) {
		return func(r *load.Report) {
			for _, code := range codes {
				r.Limits = append(r.Limits, load.Limit{Code: code, Text: "because"})
			}
		}
	}
	tests := []struct {
		name          string
		change        func(*load.Report)
		faults, notes string
	}{
		{"good", func(*load.Report) {}, "", ""},
		{"late", limited("load_generator_late"), "of the generator's clocks: load_generator_late", ""},
		{"queued behind a slow server", func(r *load.Report) { r.QueuedShare = 0.5 }, "", ""},
		{"saturated", limited("load_generator_saturated"), "of the generator's clocks: load_generator_saturated", ""},
		{"the CPU was shared", limited("cpu_steal", "cpu_contended"), "", "cpu_steal cpu_contended"},
		{"a few errors", func(r *load.Report) { r.Errors = map[load.Kind]int64{load.Reset: 10} }, "", "request_errors"},
		{"many errors", func(r *load.Report) {
			r.Errors = map[load.Kind]int64{load.Reset: 6, load.Status: 5}
			limited("request_errors")(r)
		}, "request_errors", ""},
		{"missed", func(r *load.Report) { r.Requests, r.Missed = 999, 1 }, "", "requests_missed"},
		{"answered after the window", func(r *load.Report) { r.Rate = 800 }, "", ""},
		{"too few answered", func(r *load.Report) {
			r.Requests, r.Missed = 989, 11
			limited("rate_short")(r)
		}, "rate_short", "requests_missed"},
		{"closed loop", func(r *load.Report) { r.AskedRate, r.Planned = 0, 0 }, "", ""},
		{"closed loop of a busy client", func(r *load.Report) {
			r.AskedRate, r.Planned = 0, 0
			limited("load_generator_saturated")(r)
		}, "", "load_generator_saturated"},
		{"spinning", func(r *load.Report) { r.GeneratorSpin = 0.3 }, "", "load_generator_spins"},
	}
	codes := func(rs []result.Reason) string {
		var list []string
		for _, r := range rs {
			list = append(list, r.Code)
		}
		return strings.Join(list, " ")
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := good
			tt.change(&r)
			out, err := outcome(&r)
			if err != nil {
				t.Fatal(err)
			}
			faults := codes(out.Faults)
			if len(out.Spoiled) > 0 {
				faults += "of the generator's clocks: " + codes(out.Spoiled)
			}
			if d := cmp.Diff([]string{tt.faults, tt.notes}, []string{faults, codes(out.Notes)}); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if out.ClientSpin != r.GeneratorSpin {
				t.Errorf("the client's spin is %v, want %v", out.ClientSpin, r.GeneratorSpin)
			}
		})
	}
}
