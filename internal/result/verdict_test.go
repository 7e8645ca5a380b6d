package result

import (
	"math"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/unit"
)

func TestJudge(t *testing.T) {
	type metrics = map[string]float64
	tests := []struct {
		name    string
		metrics metrics
		count   int // of the latency histogram
		elapsed unit.Seconds
		context JudgeContext
		want    []Reason
	}{
		{name: "nothing to hold it against", metrics: metrics{"goodput": 1e12, "cpu_client_steal": 9}},

		{name: "all there", metrics: metrics{"goodput": 1e9, "retransmits": 0, "loss": 0, "send_lag_p50": 0},
			context: JudgeContext{Required: []string{"goodput", "retransmits", "loss", "send_lag_p50"}}},
		{name: "absent", metrics: metrics{"rate": 5}, context: JudgeContext{Required: []string{"goodput", "rate"}},
			want: []Reason{{Code: "missing_result", Text: "goodput is missing"}}},
		{name: "no metrics at all", context: JudgeContext{Required: []string{"goodput"}},
			want: []Reason{{Code: "missing_result", Text: "goodput is missing"}}},
		{name: "not a number", metrics: metrics{"goodput": math.NaN()}, context: JudgeContext{Required: []string{"goodput"}},
			want: []Reason{{Code: "missing_result", Text: "goodput is NaN, not a finite number"}}},
		{name: "infinite", metrics: metrics{"latency_p50": math.Inf(1)}, context: JudgeContext{Required: []string{"latency_p50"}},
			want: []Reason{{Code: "missing_result", Text: "latency_p50 is +Inf, not a finite number"}}},
		{name: "zero goodput", metrics: metrics{"goodput": 0}, context: JudgeContext{Required: []string{"goodput"}},
			want: []Reason{{Code: "missing_result", Text: "goodput is 0, which is impossible: nothing was measured"}}},
		{name: "zero latency", metrics: metrics{"latency_p99": 0}, context: JudgeContext{Required: []string{"latency_p99"}},
			want: []Reason{{Code: "missing_result", Text: "latency_p99 is 0, which is impossible: nothing was measured"}}},
		{name: "percentile that the count does not carry", metrics: metrics{"latency_p50": 1e-3}, count: 999,
			context: JudgeContext{Required: []string{"latency_p50", "latency_p99"}}},
		{name: "percentile that the count carries", metrics: metrics{"latency_p50": 1e-3}, count: 1000,
			context: JudgeContext{Required: []string{"latency_p50", "latency_p99"}},
			want:    []Reason{{Code: "missing_result", Text: "latency_p99 is missing"}}},
		{name: "negative count", metrics: metrics{"retransmits": -1}, context: JudgeContext{Required: []string{"retransmits"}},
			want: []Reason{{Code: "missing_result", Text: "retransmits is -1, which is impossible"}}},

		{name: "at line rate", metrics: metrics{"goodput": 10.1e9}, context: JudgeContext{LineRate: 10e9}},
		{name: "above line rate", metrics: metrics{"goodput": 12e9}, context: JudgeContext{LineRate: 10e9},
			want: []Reason{{Code: "above_line_rate", Text: "goodput 12 Gbit/s is above the line rate of 10 Gbit/s"}}},

		{name: "at the ceiling", metrics: metrics{"goodput": 9.6e9}, context: JudgeContext{LineRate: 10e9, Ceiling: 9.5e9}},
		{name: "above the ceiling", metrics: metrics{"goodput": 9.8e9}, context: JudgeContext{LineRate: 10e9, Ceiling: 9.5e9},
			want: []Reason{{Code: "above_line_rate", Text: "goodput 9.8 Gbit/s is above the 9.5 Gbit/s that headers leave of the line rate of 10 Gbit/s"}}},

		{name: "little steal", metrics: metrics{"cpu_client_steal": 0.2}, context: JudgeContext{CPUs: 4}},
		{name: "steal", metrics: metrics{"cpu_client_steal": 0.1, "cpu_server_steal": 0.5}, context: JudgeContext{CPUs: 4},
			want: []Reason{{Code: "cpu_steal", Text: "the hypervisor took 15 % of the CPU time of client and server"}}},

		{name: "window long enough", elapsed: 5, context: JudgeContext{Duration: 10}},
		{name: "short window", elapsed: 4.9, context: JudgeContext{Duration: 10},
			want: []Reason{{Code: "short_window", Text: "4.9 s measured of 10 s planned"}}},

		{name: "several", metrics: metrics{"goodput": 2e9}, elapsed: 1,
			context: JudgeContext{LineRate: 1e9, Duration: 10, Required: []string{"retransmits"}},
			want: []Reason{
				{Code: "missing_result", Text: "retransmits is missing"},
				{Code: "above_line_rate", Text: "goodput 2 Gbit/s is above the line rate of 1 Gbit/s"},
				{Code: "short_window", Text: "1 s measured of 10 s planned"},
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &Sample{Metrics: tt.metrics, Elapsed: tt.elapsed}
			if tt.count > 0 {
				h := hdrhistogram.New(1, 1e9, 3)
				if err := h.RecordValues(1e6, int64(tt.count)); err != nil {
					t.Fatal(err)
				}
				s.Histograms = map[string]*hdrhistogram.Histogram{"latency": h}
			}
			if diff := cmp.Diff(tt.want, Judge(s, tt.context)); diff != "" {
				t.Errorf("Judge (-want +got):\n%s", diff)
			}
		})
	}
}
