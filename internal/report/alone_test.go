package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/result"
)

// A cluster's own network is not called best of one: its figures stand beside the nodes', and
// what is usual beside them is what runs.json has of its transport.
func TestAloneInACluster(t *testing.T) {
	for name, tt := range map[string]struct {
		rounds        int
		goodput, time float64 // of the nodes'
		want          string
	}{
		"few rounds": {2, 0.6, 0, "Goodput (TCP, 1 stream): pods have 6 Gbit/s where host has 10 Gbit/s; 2 rounds are too few for a ratio."},
		"no interval": {4, 0.6, 2, "Pods have 60 % of the nodes' goodput (TCP, 1 stream: 6 of 10 Gbit/s) and 2.00 times the nodes' network time p50 (HTTP, 350-byte responses: 200 of 100 µs)" +
			"; 9 rounds give an interval; usual for VXLAN (28–65 % and 1.39–2.60 times)."},
		"usual": {9, 0.6, 2, "Pods have 60 % of the nodes' goodput (TCP, 1 stream: 6 of 10 Gbit/s; in this run 60 %) and 2.00 times the nodes' network time p50 (HTTP, 350-byte responses: 200 of 100 µs; in this run 2.00 times)" +
			"; usual for VXLAN (28–65 % and 1.39–2.60 times)."},
		"slow": {9, 0.1, 4, "its goodput is worse than usual for VXLAN (28–65 %) and its network time p50 is worse than usual for VXLAN (1.39–2.60 times): cnibench diagnose says why."},
	} {
		rec := &result.Record{Run: result.Run{Baseline: "host"}}
		add := func(round int, contender, step, metric string, value float64) {
			rec.Samples = append(rec.Samples, result.Sample{Contender: contender, Step: step, Workload: "tcp_bulk", Path: "pod", Round: round, Elapsed: 10, Verdict: result.Valid,
				Metrics: map[string]float64{metric: value}})
		}
		for round := range tt.rounds {
			for contender, by := range map[string][2]float64{"host": {1, 1}, "this-cluster": {tt.goodput, tt.time}} {
				add(round+1, contender, "dts", result.Goodput, by[0]*10e9)
				if tt.time > 0 {
					add(round+1, contender, "http-350-30pct", result.NetworkTimeP50, by[1]*100e-6)
				}
			}
		}
		rec.Run.Arena, rec.Run.Environment = "kube", result.Environment{"kube.cni.transport": "vxlan"}
		rec.Run.Plan = result.Plan{Suite: "quick", Rounds: tt.rounds, Steps: []result.Step{
			{ID: "dts", Summary: "pod to pod, TCP, 1 stream", Workload: "tcp_bulk", Path: "pod", Params: map[string]any{"streams": 1, "block": "128KiB", "bandwidth": "0"}},
			{ID: "http-350-30pct", Summary: "HTTP, 350-byte responses, pod to pod", Workload: "http_rate", Path: "pod", Params: map[string]any{"connections": 32, "response": "350B", "server": "nginx"}},
		}}
		rec.Run.Plan.Contenders = []result.Entry{{ID: "host"}, {ID: "this-cluster"}}
		r := report.Analyse(rec, analysis.Options{})
		report.Elsewhere(rec, r, nil)
		answer := layout.New(r).Answer()
		if !strings.Contains(answer[0], tt.want) {
			t.Errorf("%s:\n%s, want\n%s", name, answer[0], tt.want)
		}
		if text := fmt.Sprint(answer); strings.Contains(text, "best") || strings.Contains(text, "first") {
			t.Error(text)
		}
	}
}
