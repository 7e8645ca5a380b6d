package workload

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/load"
	"github.com/cnibench/cnibench/internal/result"
)

func TestReadLoad(t *testing.T) {
	const begin, end, report = `{"event":"begin"}` + "\n", `{"event":"end"}` + "\n",
		`{"schema":"cnibench/load/1","rate":10,"latency_p50":0.001,"errors":{}}` + "\n"
	tests := []struct {
		name, in, calls string
		rate            float64
		err             string
	}{
		{"whole", begin + end + report, "be", 10, ""},
		{"died before the window", "", "", 0, "ended without a result"},
		{"died in the window", begin, "be", 0, "ended without a result"},
		{"died before the result", begin + end, "be", 0, "ended without a result"},
		{"twice begun", begin + begin, "be", 0, "unexpected line"},
		{"ended before begun", end, "", 0, "unexpected line"},
		{"another program", "hello\n", "", 0, "invalid character"},
		{"another schema", begin + end + `{"schema":"cnibench/load/9"}` + "\n", "be", 0, "unexpected line"},
		{"cut off", begin + end + report[:30], "be", 0, "unexpected end of JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			calls := ""
			r, err := ReadLoad(strings.NewReader(tt.in), func() { calls += "b" }, func() { calls += "e" })
			if calls != tt.calls {
				t.Errorf("marks %q, want %q", calls, tt.calls)
			}
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want one that says %q", err, tt.err)
			}
			if tt.rate > 0 && (r == nil || r.Rate != tt.rate || r.Times["latency_p50"] != 0.001) {
				t.Errorf("report %+v", r)
			}
		})
	}
}

func FuzzReadLoad(f *testing.F) {
	f.Add([]byte("{\"event\":\"begin\"}\n{\"event\":\"end\"}\n{\"schema\":\"cnibench/load/1\",\"histograms\":{\"latency\":\"SElT\"}}\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		begins, ends := 0, 0
		r, err := ReadLoad(bytes.NewReader(in), func() { begins++ }, func() { ends++ })
		if begins != ends || begins > 1 || err == nil && r == nil {
			t.Fatalf("%d begins, %d ends, report %v, error %v", begins, ends, r, err)
		}
		if r != nil {
			_, _ = outcome(r) // an error or an outcome, never a panic
		}
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
