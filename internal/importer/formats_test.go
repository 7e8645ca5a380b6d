package importer

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
)

// TestFormats imports specimens of the tools' outputs, made by hand after their
// documentation and source, with made-up figures.
func TestFormats(t *testing.T) {
	for _, format := range []string{"iperf3", "netperf", "k8s-netperf", "cilium-perf", "perf-tests"} {
		t.Run(format, func(t *testing.T) {
			dir := t.TempDir()
			unpack(t, format+".txtar", dir)
			rec, _ := load(t, format, dir)
			golden(t, format+".golden", describe(rec))
			for _, s := range rec.Samples {
				for name, v := range s.Metrics {
					if v == 0 && name != "loss" && name != "retransmits" {
						t.Errorf("%s of %s is 0: a missing value is no zero", name, s.Step)
					}
				}
			}
		})
	}
}

// FuzzFormats: whatever the text, no parser makes a figure that a run may not hold.
func FuzzFormats(f *testing.F) {
	for _, format := range []string{"netperf", "k8s-netperf", "cilium-perf", "perf-tests"} {
		text, err := os.ReadFile(filepath.Join("testdata", format+".txtar"))
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "\n-- ")[1:] {
			_, content, _ := strings.Cut(part, " --\n")
			f.Add([]byte(content))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, parse := range []figureParser{parseNetperf, parseK8sNetperf, parseCiliumPerf, parsePerfTests} {
			figures, _ := parse(data)
			for i := range figures {
				if workloads[figures[i].test] == "" {
					continue
				}
				s := figures[i].sample(result.Key{Contender: "x", Step: figures[i].step().ID, Round: 1}, "f")
				sound(t, &s)
			}
		}
	})
}

// TestAgree: the same figure in the forms of several tools is the same value.
func TestAgree(t *testing.T) {
	for name, c := range map[string]struct {
		parse  figureParser
		text   string
		metric string
		want   float64
	}{
		"netperf -k":      {parseNetperf, "MIGRATED TCP STREAM TEST from 0.0.0.0 to 10.0.0.2\nTHROUGHPUT=9400.5\nTHROUGHPUT_UNITS=10^6bits/s\n", "goodput", 9.4005e9},
		"netperf -o":      {parseNetperf, "MIGRATED TCP REQUEST/RESPONSE TEST from x\nThroughput,Throughput Units,99th Percentile Latency Microseconds\n12000.25,Trans/s,131\n", "latency_p99", 131e-6},
		"k8s-netperf CSV": {parseK8sNetperf, "Profile,Same node,Host Network,Service,Duration,# of Samples,Avg Throughput,Metric\nTCP_STREAM,false,false,false,10,3,9400.500000,Mb/s\n", "goodput", 9.4005e9},
		"cilium":          {parseCiliumPerf, `{"version":"v1","dataItems":[{"data":{"Throughput":9400.5},"unit":"Mb/s","labels":{"metric":"Throughput","node":"other-node","scenario":"pod-to-pod","test_type":"netperf-TCP_STREAM"}}]}`, "goodput", 9.4005e9},
		"perf-tests":      {parsePerfTests, "MSS    , Maximum, 1376,\n3 iperf TCP. Remote VM using Pod IP ,9400.5,9400.5,\n", "goodput", 9.4005e9},
	} {
		figures, err := c.parse([]byte(c.text))
		if err != nil || len(figures) != 1 || math.Abs(figures[0].metrics[c.metric]-c.want) > 1e-9*c.want || len(figures[0].problems) > 0 {
			t.Errorf("%s: %v, %+v, want %s %v", name, err, figures, c.metric, c.want)
		}
	}
}
