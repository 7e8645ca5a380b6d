package workload

import (
	"encoding/json"
	"net/netip"
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
			out, err := requests{}.outcome(&r)
			if err != nil {
				t.Fatal(err)
			}
			faults := codes(out.Faults)
			if len(out.ClockFaults) > 0 {
				faults += "of the generator's clocks: " + codes(out.ClockFaults)
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

// bound is an endpoint whose measured commands are bound to CPUs.
type bound struct {
	localhost
	cpus []int
}

func (b bound) CPUs() []int { return b.cpus }

// Threads and workers of 0 are as many as the CPUs that only their side has.
func TestSpreadOverCPUs(t *testing.T) {
	for _, tt := range []struct {
		name           string
		client, server []int
		threads        int
		load, workers  string
	}{
		{"each its own", []int{0, 1}, []int{2, 3, 5}, 0, "--threads 2 --cpus 0,1", "worker_processes 3;\nworker_cpu_affinity 100 1000 100000;"},
		{"the same", []int{0, 1}, []int{0, 1}, 0, "--threads 1", "worker_processes 1;\n\n"},
		{"everywhere", nil, nil, 0, "--threads 1", "worker_processes 1;\n\n"},
		{"given", []int{0, 1}, []int{2, 3}, 18, "--threads 18", "worker_processes 18;\n\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := loopback(t)
			s.Client, s.Server = bound{cpus: tt.client}, bound{cpus: tt.server, localhost: localhost{dir: t.TempDir()}}
			var err error
			if s.Params, err = Complete(HTTPRate{}.Info(), map[string]any{"threads": tt.threads, "workers": tt.threads}); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(requestFlags(s), " "); got != "--connections 64 "+tt.load {
				t.Errorf("flags %s, want %s", got, tt.load)
			}
			if _, err := httpServerArgs(t.Context(), s, "", netip.MustParseAddrPort("127.0.0.1:80"), 350); err != nil {
				t.Fatal(err)
			}
			if config := rawOf(s, "nginx.conf"); !strings.Contains(config, tt.workers) {
				t.Errorf("no %q in\n%s", tt.workers, config)
			}
		})
	}
}
