package result_test

import (
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/result"
)

// A late load generator spoils the clocks that hold its delay, and no other figure.
func TestSpoilGenerator(t *testing.T) {
	late := []result.Reason{{Code: "load_generator_late", Text: "3 % late"}}
	s := aSample("host", "http", 1)
	s.Metrics = map[string]float64{"rate": 5003, "latency_p50": 1e-3, "latency_p99": 2e-3, "network_time_p50": 1e-4, "send_lag_p50": 9e-4, "service_time_p50": 3e-4}
	s.Histograms = map[string]*hdrhistogram.Histogram{"latency": histogram(1), "network_time": histogram(1), "service_time": histogram(1)}
	s.DropGeneratorClocks(late)

	if diff := cmp.Diff(map[string]float64{"rate": 5003, "network_time_p50": 1e-4, "send_lag_p50": 9e-4}, s.Metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	want := []result.DroppedClock{
		{Clock: "latency", Reasons: late, Metrics: map[string]float64{"latency_p50": 1e-3, "latency_p99": 2e-3}},
		{Clock: "service_time", Reasons: late, Metrics: map[string]float64{"service_time_p50": 3e-4}},
	}
	if diff := cmp.Diff(want, s.DroppedClocks); diff != "" {
		t.Errorf("spoiled (-want +got):\n%s", diff)
	}
	if len(s.Histograms) != 1 || s.Histograms["network_time"] == nil {
		t.Errorf("histograms %v", s.Histograms)
	}
	if s.Verdict != result.Valid || !s.Holds("") || !s.Holds("network_time") || s.Holds("latency") {
		t.Error("the sample must stay valid for all but the spoiled clocks")
	}

	dir, store := create(t)
	seal(t, store, s)
	if err := validate(t, compile(t, "sample-1.schema.json"), read(t, dir, "samples.jsonl")); err != nil {
		t.Error(err)
	}
	rec, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, rec.Samples[0].DroppedClocks); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}
}
