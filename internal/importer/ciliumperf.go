package importer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// readCiliumPerf reads the reports of `cilium connectivity perf --report-dir`:
// NetworkPerformance_benchmark_TIME.json in the form of perfdash. Throughput is Mb/s or
// ops/s, latency us; samples of one test follow each other.
func readCiliumPerf(ctx context.Context, src *source, opt Options) (*imported, error) {
	return readFigures(ctx, src, opt, "cilium-perf", []string{".json"}, parseCiliumPerf)
}

func parseCiliumPerf(data []byte) ([]figure, error) {
	var report struct {
		Version string `json:"version"`
		Items   []struct {
			Data   map[string]float64 `json:"data"`
			Unit   string             `json:"unit"`
			Labels map[string]string  `json:"labels"`
		} `json:"dataItems"`
	}
	if _, err := decodeJSON(data, &report); err != nil {
		return nil, err
	}
	if len(report.Items) == 0 {
		return nil, &lineError{0, errors.New("no dataItems; it is no report of cilium connectivity perf")}
	}
	var figures []figure
	open := map[string]int{} // by labels: the latency whose rate has not come yet
	for _, item := range report.Items {
		l := item.Labels
		scenario, of := l["scenario"], strings.TrimPrefix(l["test_type"], "netperf-")
		f := figure{test: of, metrics: map[string]float64{}, unknown: []string{"loss", "retransmits", "CPU", "kernel", "the time"}}
		f.setPath(scenario == "host-to-host", l["node"] == "same-node", false)
		if one, many := strings.CutSuffix(of, "_MULTI"); many {
			f.test, f.variant, f.unknown = one, "multi", append(f.unknown, "the number of streams")
		}
		if scenario != "host-to-host" && scenario != "pod-to-pod" {
			continue // between a pod and a node: no pod network alone, and no host network
		}
		key := scenario + "|" + l["node"] + "|" + of
		switch l["metric"] {
		case "Latency":
			if item.Unit != "us" {
				f.contradict("the unit %.20q of the latency is not known", item.Unit)
			}
			for name, metric := range map[string]string{"Perc50": "latency_p50", "Perc90": "latency_p90", "Perc99": "latency_p99"} {
				if v, has := item.Data[name]; has && v > 0 {
					f.metrics[metric] = v * 1e-6
				}
			}
			if p := item.Data; p["Perc50"] > p["Perc90"] || p["Perc90"] > p["Perc99"] {
				f.contradict("the percentiles fall: p50 %g, p90 %g, p99 %g", p["Perc50"], p["Perc90"], p["Perc99"])
			}
			open[key] = len(figures)
		case "TransactionRate", "Throughput":
			v, has := item.Data["Throughput"]
			if !has {
				f.contradict("no Throughput in it")
			} else {
				f.throughput(fmt.Sprint(v), item.Unit)
			}
			if at, has := open[key]; has && l["metric"] == "TransactionRate" {
				figures[at].metrics[result.Rate] = f.metrics[result.Rate]
				figures[at].problems = append(figures[at].problems, f.problems...)
				delete(open, key)
				continue
			}
		default:
			continue
		}
		figures = append(figures, f)
	}
	return figures, nil
}
