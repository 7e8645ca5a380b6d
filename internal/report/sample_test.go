package report

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
)

// noise is the same small scatter of rounds in every sample report.
var noise = []float64{1.000, 0.988, 1.013, 0.994, 1.021, 0.979}

// add appends a result per contender, from its median, in the given rounds;
// the first contender is the baseline.
func add(r *analysis.Report, step, path, metric string, rounds int, contenders []string, medians []float64, tiers []int) {
	m, _ := result.LookupMetric(metric)
	var base []float64
	for i, c := range contenders {
		if math.IsNaN(medians[i]) {
			continue // a missing value is left out
		}
		res := analysis.Result{
			Contender: c, Kernel: "6.18.0", Underlay: "switch", Step: step, Path: path,
			Metric: metric, Unit: m.Unit, Better: m.Better, N: rounds, Confidence: 0.95, Ranked: tiers[i] > 0, Tier: tiers[i],
		}
		if rounds < 4 {
			res.Tier = 0 // as few tell nobody apart
		}
		res.Letters = []string{}
		if res.Tier > 0 {
			res.Letters = append(res.Letters, string(rune('a'+res.Tier-1)))
		}
		for round := range rounds {
			res.Values = append(res.Values, round4(medians[i]*(1+(noise[(round+i)%len(noise)]-1)*float64(1+i%3))))
		}
		sorted := slices.Sorted(slices.Values(res.Values))
		res.Median = sorted[(rounds-1)/2]
		enough := rounds >= 6
		if enough {
			res.CI = &analysis.Interval{sorted[0], sorted[rounds-1]}
		}
		if i == 0 {
			base = res.Values
		} else if base != nil && metric != "memory_overhead" {
			c := &analysis.Comparison{Ratio: round4(medians[i] / medians[0])}
			if enough {
				p := 0.0312
				c.CI, c.P = &analysis.Interval{round4(c.Ratio * 0.985), round4(c.Ratio * 1.018)}, &p
			}
			res.VsBaseline = c
		}
		r.Results = append(r.Results, res)
	}
}

func round4(v float64) float64 {
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// sample is a report as the quick suite makes it.
func sample(rounds int) *analysis.Report {
	names := []string{"host", "macvlan", "flannel-host-gw", "calico-noencap", "flannel-aws-vpc", "calico-vxlan", "flannel-vxlan", "canal"}
	tiers := []int{1, 1, 2, 2, 2, 3, 3, 3}
	none := make([]int, len(names))
	r := &analysis.Report{
		Schema:   analysis.ReportSchema,
		Baseline: "host",
		Run: analysis.RunInfo{
			ID: "20260314-091500-a1b2", Arena: "lab", Started: time.Date(2026, 3, 14, 9, 15, 0, 0, time.UTC), Rounds: rounds, Suite: "quick",
			Environment: result.Environment{
				"kernel.release": "6.18.0", "cpu.model": "AMD EPYC 7262 8-Core Processor", "cpu.count": "2", "cpu.governor": "performance",
				"sysctl.net.ipv4.tcp_congestion_control": "cubic", "virtualisation": "kvm", "memory.total": "25769803776",
			},
		},
		Steps: []result.Step{
			{ID: "idle", Workload: "idle", Path: "pod", Summary: "nothing runs: memory and CPU at rest"},
			{ID: "dts", Workload: "tcp_stream", Path: "pod", Summary: "TCP, one stream, pod to pod"},
			{ID: "dus", Workload: "udp_stream", Path: "pod", Summary: "UDP, one stream, pod to pod"},
			{ID: "http-350", Workload: "http_rate", Path: "pod", Summary: "350-byte responses at 10,000 requests/s"},
		},
		Plan: result.Plan{
			Suite: "quick", Rounds: rounds, Seed: 4711, Duration: 3, Warmup: 1,
			Settings: map[string]string{"nodes": "2", "underlay": "auto", "mtu": "1500", "line-rate": "", "cpus": "client=0,server=1", "cni-conf-text": "{}"},
		},
		Tool: result.Tool{Name: "cnibench", Version: "0.1.0", Commit: "4238b9f"},
		Unsupported: []result.Unsupported{
			{Contender: "ipvlan-l2", Reason: "kernel lacks CONFIG_IPVLAN", Remedy: "run with --arena microvm"},
			{Contender: "ipvlan-l3", Reason: "kernel lacks CONFIG_IPVLAN", Remedy: "run with --arena microvm"},
			{Contender: "calico-wg", Reason: "kernel lacks CONFIG_WIREGUARD", Remedy: "run with --arena microvm, or load the module: modprobe wireguard"},
			{Contender: "romana", Reason: "retired: the project has had no commit since 2018", Remedy: ""},
		},
		Findings: []analysis.Finding{
			{Severity: "info", Code: "udp_loss", Contender: "flannel-vxlan", Step: "dus", Round: 3, Text: "38 % of the datagrams were lost: goodput counts what arrived, not what was sent", Next: "compare loss and goodput together, or set a rate with --bitrate"},
			{Severity: "error", Code: "above_line_rate", Contender: "macvlan", Step: "dus", Round: 2, Text: "goodput of 44.1 Gbit/s is above the ceiling of 40 Gbit/s that the line rate and the headers leave", Next: "look at raw/macvlan/2/dus/client.json", Excluded: true},
			{Severity: "warn", Code: "busy", Text: "the machine was 23 % busy before the run began", Next: "stop other work and run again, or raise --rounds"},
			{Severity: "info", Code: "multi_stream_processes", Note: true, Next: "Nothing; it explains the figures.",
				Text: "iperf3 3.12 drives all streams from one thread, so each of the 8 streams is a pair of processes of its own; they are started together and their figures are summed over the common window (54 samples of dtm and dum)"},
		},
	}
	nan := math.NaN()
	add(r, "setup", "", "setup_time", rounds, names, []float64{0.041, 0.183, 0.224, 0.231, 0.262, 0.301, 0.287, 0.312}, none)
	add(r, "idle", "pod", "memory_overhead", rounds, names, []float64{nan, 1.2e6, 2.1e6, 2.4e6, 2.2e6, 2.9e6, 2.6e6, 3.1e6}, none)
	add(r, "dts", "pod", "goodput", rounds, names, []float64{17.3e9, 17.1e9, 15.9e9, 15.7e9, 15.6e9, 9.8e9, 9.6e9, 9.5e9}, tiers)
	add(r, "dts", "pod", "retransmits_per_gib", rounds, names, []float64{12, 14, 80, 74, 91, 310, 280, 295}, none)
	add(r, "dts", "pod", "cpu_per_gbit", rounds, names, []float64{0.081, 0.083, 0.092, 0.094, 0.095, 0.161, 0.166, 0.168}, tiers)
	add(r, "dus", "pod", "goodput", rounds, names, []float64{3.1e9, nan, 2.4e9, 2.5e9, 2.3e9, 1.4e9, 1.3e9, 1.35e9}, tiers)
	add(r, "dus", "pod", "loss", rounds, names, []float64{0.02, nan, 0.11, 0.1, 0.12, 0.36, 0.38, 0.37}, none)
	add(r, "http-350", "pod", "rate", rounds, names, []float64{1e4, 1e4, 1e4, 1e4, 1e4, 1e4, 1e4, 1e4}, none)
	add(r, "http-350", "pod", "latency_p50", rounds, names, []float64{64e-6, 67e-6, 79e-6, 78e-6, 83e-6, 101e-6, 98e-6, 104e-6}, tiers)
	add(r, "http-350", "pod", "latency_p99", rounds, names, []float64{310e-6, 322e-6, 365e-6, 371e-6, 402e-6, 540e-6, 555e-6, 561e-6}, tiers)
	add(r, "http-350", "pod", "latency_p99_9", rounds, names, []float64{0.9e-3, 0.95e-3, 1.1e-3, 1.15e-3, 1.3e-3, 2.4e-3, 2.6e-3, 2.5e-3}, tiers)
	for i := range r.Results {
		res := &r.Results[i]
		if !result.IsLatency(res.Metric) {
			continue
		}
		res.Count = 30000 * int64(rounds)
		if res.Metric == "latency_p99_9" && rounds == 6 { // as if no single round carried it
			res.Values, res.CI, res.Letters, res.Tier = []float64{}, nil, []string{}, 0
			if res.VsBaseline != nil {
				res.VsBaseline = &analysis.Comparison{Ratio: res.VsBaseline.Ratio}
			}
		}
	}
	for i, c := range names {
		r.Plan.Contenders = append(r.Plan.Contenders, result.Entry{ID: c, Underlay: "switch"})
		r.Contenders = append(r.Contenders, result.ContenderInfo{ID: c, Product: "Product " + c, Summary: "pods of " + c, Datapath: "bridge × routes", Overhead: 50, Reproduced: []string{"everything"}})
		curve := analysis.Curve{Contender: c, Kernel: "6.18.0", Underlay: "switch", Step: "http-350", Clock: "latency", Count: 180000}
		for _, p := range []float64{10, 25, 50, 75, 90, 95, 97.5, 99, 99.5, 99.75, 99.9, 99.95, 99.975, 99.99} {
			nines := -math.Log10(1 - p/100)
			curve.Points = append(curve.Points, analysis.CurvePoint{Percentile: p, Seconds: round4(50e-6 * (1 + 0.09*float64(i)) * math.Pow(1.15+nines, 1.6+0.07*float64(i)))})
		}
		r.Curves = append(r.Curves, curve)
	}
	return r
}

// hostileNames try to leave the place they are shown in.
var hostileNames = []string{
	`<script>document.documentElement.dataset.owned=1</script>`,
	`</script><img src=https://example.invalid/x onerror=document.documentElement.dataset.owned=2>`,
	`<!--<script>`,
	`=HYPERLINK("https://example.invalid","x")`,
	`a|b **bold** [x](https://example.invalid) ` + "`c`",
	"line\nbreak\r\x1b[31mred\u202Eright-to-left",
	`"quoted", 'single' & {{.}} ${x} \n`,
	"@everyone #1 www.example.invalid https://example.invalid",
	"\xff\xfe not UTF-8",
}

// hostile is a small report in which every text is one of hostileNames.
func hostile() *analysis.Report {
	r := &analysis.Report{Schema: analysis.ReportSchema, Baseline: hostileNames[0]}
	for i, name := range hostileNames {
		next := hostileNames[(i+1)%len(hostileNames)]
		r.Contenders = append(r.Contenders, result.ContenderInfo{ID: name, Product: next, Summary: name, Datapath: next})
		r.Findings = append(r.Findings, analysis.Finding{Severity: "warn", Code: next, Contender: name, Step: next, Text: name, Next: next})
		r.Unsupported = append(r.Unsupported, result.Unsupported{Contender: name, Reason: next, Remedy: name})
		r.Curves = append(r.Curves, analysis.Curve{Contender: name, Kernel: "6.18.0", Underlay: "switch", Step: "step " + next, Clock: "latency", Count: 100,
			Points: []analysis.CurvePoint{{Percentile: 50, Seconds: 1e-3}, {Percentile: 90, Seconds: 2e-3}}})
	}
	r.Run = analysis.RunInfo{ID: hostileNames[1], Arena: hostileNames[2], Suite: hostileNames[1], Rounds: 6, Environment: result.Environment{hostileNames[3]: hostileNames[1]}}
	medians := make([]float64, len(hostileNames))
	for i := range medians {
		medians[i] = float64(i + 1)
	}
	none := make([]int, len(hostileNames))
	add(r, hostileNames[4], hostileNames[5], "goodput", 6, hostileNames, medians, none)
	add(r, hostileNames[4], hostileNames[5], "cpu_per_gbit", 6, hostileNames, medians, none)
	add(r, hostileNames[1], "pod", "latency_p50", 6, hostileNames, medians, none)
	return r
}

// ladder is a report of latency only, on two underlays and with two rounds.
func ladder() *analysis.Report {
	r := &analysis.Report{Schema: analysis.ReportSchema, Baseline: "host", Run: analysis.RunInfo{ID: "r", Arena: "microvm", Rounds: 2, Suite: "latency"}}
	names := []string{"host", "flannel-vxlan"}
	for i, rate := range []string{"10k", "20k"} {
		add(r, "http-350-"+rate, "pod", "latency_p50", 2, names, []float64{100e-6, 140e-6 * float64(1+i)}, []int{0, 0})
		add(r, "http-350-"+rate, "pod", "latency_p99", 2, names, []float64{300e-6, 440e-6 * float64(1+i)}, []int{0, 0})
		add(r, "http-350-"+rate, "pod", "cpu_per_request", 2, names, []float64{20e-6, 31e-6}, []int{0, 0})
	}
	n := len(r.Results)
	for _, res := range r.Results[:n] {
		res.Underlay = "vpc"
		r.Results = append(r.Results, res)
	}
	for i := range 40 {
		r.Findings = append(r.Findings, analysis.Finding{Severity: "info", Code: fmt.Sprintf("note_%d", i%5), Contender: "host", Round: i/20 + 1, Text: fmt.Sprintf("note number %d", i)})
	}
	return r
}
