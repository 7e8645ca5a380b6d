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

// A cluster's own network is not called best of one: its goodput stands beside the nodes', and
// beside that of products that send their packets in the same way.
func TestAloneInACluster(t *testing.T) {
	for rounds, want := range map[int]string{
		2: "pods have 6 Gbit/s where host has 10 Gbit/s; 2 rounds are too few for a ratio.",
		6: "pods have 60 % of host's (6 Gbit/s of 10 Gbit/s), interval 0.60–0.60×. Products with VXLAN had 53–65 % on the project's test bed (two nodes on one machine).",
	} {
		rec := &result.Record{Run: result.Run{Baseline: "host"}}
		for round := range rounds {
			for contender, goodput := range map[string]float64{"host": 10e9, "this-cluster": 6e9} {
				rec.Samples = append(rec.Samples, result.Sample{Contender: contender, Step: "dts", Workload: "tcp_bulk", Path: "pod", Round: round + 1, Elapsed: 10, Verdict: result.Valid,
					Metrics: map[string]float64{"goodput": goodput}})
			}
		}
		rec.Run.Arena, rec.Run.Environment = "kube", result.Environment{"kube.cni.transport": "vxlan"}
		rec.Run.Plan = result.Plan{Suite: "quick", Rounds: rounds, Steps: []result.Step{{ID: "dts", Workload: "tcp_bulk", Path: "pod", Params: map[string]any{"streams": 1}}}}
		answer := layout.New(report.Analyse(rec, analysis.Options{})).Answer()
		if !strings.Contains(answer[0], want) {
			t.Errorf("%d rounds: %q, want %q", rounds, answer[0], want)
		}
		if text := fmt.Sprint(answer); strings.Contains(text, "best") || strings.Contains(text, "first") {
			t.Error(text)
		}
	}
}
