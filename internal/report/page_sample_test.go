package report

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
)

// full is sample(6) with everything that the page can show.
func full() *analysis.Report {
	r := sample(6)
	names := make([]string, len(r.Contenders))
	for i, c := range r.Contenders {
		names[i] = c.ID
	}
	none := make([]int, len(names))
	ramp := func(from, step float64) []float64 {
		out := make([]float64, len(names))
		for i := range out {
			out[i] = from + step*float64(i)
		}
		return out
	}
	for _, step := range []string{"idle", "dts"} {
		load := 1.0
		if step == "idle" {
			load = 0.05
		}
		add(r, step, "pod", "memory_used", 6, names, ramp(1.1e9, 4e6), none)
		for i, mode := range []string{"user", "system", "softirq"} {
			add(r, step, "pod", "cpu_client_"+mode, 6, names, ramp(load*0.1*float64(i+1), load*0.02), none)
			add(r, step, "pod", "cpu_server_"+mode, 6, names, ramp(load*0.12*float64(i+1), load*0.03), none)
		}
	}
	for k, rate := range []float64{20000, 40000, 60000} {
		step := fmt.Sprintf("http-350-%.0fk", rate/1000)
		r.Steps = append(r.Steps, result.Step{
			ID: step, Workload: "http_rate", Path: "pod", Summary: fmt.Sprintf("350-byte responses at %.0f requests/s", rate),
			Params: map[string]any{"rate": rate, "connections": 64},
		})
		add(r, step, "pod", "rate", 6, names, ramp(rate, -rate/200), none)
		add(r, step, "pod", "latency_p50", 6, names, ramp(60e-6*float64(k+1), 9e-6), none)
		add(r, step, "pod", "latency_p99", 6, names, ramp(300e-6*float64(k*k+1), 60e-6), none)
		for i, c := range names {
			r.Curves = append(r.Curves, curve(c, step, 1+0.1*float64(i)+float64(k)))
		}
	}
	for i, c := range names {
		e := analysis.Efficiency{
			Contender: c, Kernel: "6.18.0", Underlay: "switch", Step: "dts", Path: "pod",
			Goodput:    analysis.Estimate{Median: 17e9 - float64(i)*1e9, CI: &analysis.Interval{16e9 - float64(i)*1e9, 18e9 - float64(i)*1e9}},
			CPUPerGbit: &analysis.Estimate{Median: 0.08 + 0.012*float64(i%5), CI: &analysis.Interval{0.075 + 0.012*float64(i%5), 0.09 + 0.012*float64(i%5)}},
			Frontier:   i < 2,
		}
		if i > 0 {
			e.MemoryOverhead = &analysis.Estimate{Median: 2e6 + 1e5*float64(i)}
		}
		r.Efficiency = append(r.Efficiency, e)
		for _, can := range []struct{ name, value, source string }{
			{"policy", map[bool]string{true: "yes", false: "no"}[i > 2], "catalogue"},
			{"policy", "yes", map[bool]string{true: "check", false: "catalogue"}[i == 7]},
			{"encryption", map[bool]string{true: "wireguard", false: "no"}[i == 5], "catalogue"},
			{"ipv6", "yes", "catalogue"},
		} {
			if can.name == "policy" && can.source == "catalogue" && can.value == "yes" && i <= 2 {
				continue
			}
			r.Capabilities = append(r.Capabilities, analysis.Capability{Contender: c, Name: can.name, Value: can.value, Source: can.source})
		}
	}
	r.Capabilities = append(r.Capabilities, analysis.Capability{Contender: "cilium", Name: "l7", Value: "yes", Source: "catalogue"})
	rec := &analysis.Recommendation{
		Run: r.Run.ID, Baseline: "host", Kernel: "6.18.0", Underlay: "switch", Needs: []string{analysis.Active}, Resamples: 1000, Confidence: 0.95, Firmness: analysis.Leaning,
		Weights: []analysis.Weight{{Criterion: "throughput", Weight: 1}, {Criterion: "latency", Weight: 2}},
		Notes:   []string{"setup_time counts for nothing: no weight was given"},
	}
	for i, c := range names[1:] {
		rec.Ranked = append(rec.Ranked, analysis.Choice{
			Contender: c, Score: 0.98 - 0.07*float64(i), CI: &analysis.Interval{0.95 - 0.07*float64(i), 1.01 - 0.07*float64(i)}, Wins: ptr(math.Max(0, 0.9-0.8*float64(i))),
			Terms: []analysis.Term{{Criterion: "throughput", Weight: 1, Ratio: 0.97 - 0.06*float64(i)}, {Criterion: "latency", Weight: 2, Ratio: 0.99 - 0.08*float64(i)}}, Reasons: []string{"less CPU than most"},
		})
	}
	rec.Lost = []analysis.Loss{{Contender: "flannel-vxlan", Need: "policy", Reason: "it enforces no NetworkPolicy", Source: "catalogue"}}
	rec.Unknown = []analysis.Loss{{Contender: "cilium", Reason: "it was not measured"}}
	r.Recommendation = rec
	r.Advice = []analysis.Advice{
		{Scenario: "tail-latency", Summary: "the slowest of a hundred requests", Run: "--suite latency", Chief: []string{"tail"}, Recommendation: rec},
		{Scenario: "small-nodes", Summary: "little memory for the network", Run: "--suite throughput --arena kube", Chief: []string{"memory"}},
	}
	r.Published = []analysis.PublishedFigure{{
		Contender: "flannel-vxlan", Kernel: "6.18.0", Underlay: "switch", Step: "dts", Metric: "goodput", Better: "higher",
		Ours: analysis.Comparison{Ratio: 0.55, CI: &analysis.Interval{0.54, 0.56}}, Ratio: 0.62, Study: "A study, 2024", Table: "table 1", Name: "flannel", Read: "table",
	}}
	for _, c := range names[:3] {
		for round := range 2 {
			r.Traces = append(r.Traces, trace(c, "dts", round+1, 24))
		}
	}
	r.Traces = append(r.Traces, trace("canal", "idle", 1, 24))
	return r
}

func curve(contender, step string, factor float64) analysis.Curve {
	c := analysis.Curve{Contender: contender, Kernel: "6.18.0", Underlay: "switch", Step: step, Clock: "latency", Count: 180000}
	for k := range 34 {
		nines := 0.05 + 0.12*float64(k)
		c.Points = append(c.Points, analysis.CurvePoint{Percentile: 100 * (1 - math.Pow(10, -nines)), Seconds: round4(50e-6 * factor * math.Pow(1.15+nines, 1.6))})
	}
	return c
}

// trace is of the given number of seconds, two of them before the window; one
// value is missing.
func trace(contender, step string, round, seconds int) analysis.Trace {
	t := analysis.Trace{Key: result.Key{Contender: contender, Underlay: "switch", Step: step, Round: round}}
	for n, node := range []string{"client", "server"} {
		nt := analysis.NodeTrace{Node: node, Window: float64(seconds - 3), CPU: map[string][]float64{}, Loads: map[string][]float64{}}
		for s := range seconds {
			nt.Times = append(nt.Times, float64(s-1))
			wave := 1 + 0.1*math.Sin(float64(s+round+n))
			for i, mode := range []string{"user", "system", "softirq", "steal"} {
				nt.CPU[mode] = append(nt.CPU[mode], 0.1*float64(i+1)*wave)
			}
			nt.Busiest = append(nt.Busiest, 0.9*wave/1.1)
			nt.Loads["0"], nt.Loads["1"] = append(nt.Loads["0"], 0.3*wave/1.1), append(nt.Loads["1"], nt.Busiest[s])
			nt.Receive = append(nt.Receive, 15e9*wave)
			nt.Transmit = append(nt.Transmit, 2e7*wave)
			nt.Retransmits = append(nt.Retransmits, float64(s%4))
			nt.Memory = append(nt.Memory, 1.1e9+1e6*wave)
		}
		nt.Receive[3] = math.NaN()
		t.Nodes = append(t.Nodes, nt)
	}
	return t
}

// scattered is a recording whose every figure differs, as real ones do: nothing in it
// repeats for gzip to find.
func scattered(t analysis.Trace, chance *rand.Rand) analysis.Trace {
	for _, n := range t.Nodes {
		series := [][]float64{n.Busiest, n.Receive, n.Transmit, n.Retransmits}
		for _, lines := range []map[string][]float64{n.CPU, n.Loads} {
			for _, name := range slices.Sorted(maps.Keys(lines)) {
				series = append(series, lines[name])
			}
		}
		for _, values := range series {
			for i := range values {
				values[i] *= 0.7 + 0.3*chance.Float64()
			}
		}
		for i := range n.Memory {
			n.Memory[i] *= 0.99 + 0.01*chance.Float64()
		}
	}
	return t
}

// large is a run of 30 contenders, 12 steps and 5 rounds with every metric.
func large() *analysis.Report {
	r := &analysis.Report{Schema: analysis.ReportSchema, Baseline: "host", Run: analysis.RunInfo{ID: "large", Arena: "lab", Rounds: 5, Suite: "all"}}
	chance := rand.New(rand.NewPCG(1, 2))
	names, medians, none := []string{"host"}, make([]float64, 30), make([]int, 30)
	for i := range 29 {
		names = append(names, fmt.Sprintf("contender-%02d", i+1))
	}
	for k := range 12 {
		step := result.Step{ID: fmt.Sprintf("step-%02d", k+1), Workload: "tcp_stream", Path: "pod"}
		if k >= 6 {
			step.Workload, step.Params = "http_rate", map[string]any{"rate": float64(k * 10000)}
		}
		r.Steps = append(r.Steps, step)
		for _, m := range result.Metrics() {
			if latency := result.IsLatency(m.Name); m.Name == "setup_time" || strings.HasPrefix(m.Name, "install_") || latency && k < 6 || m.Name == "goodput" && k >= 6 {
				continue
			}
			for i := range medians {
				medians[i] = float64(k+1) * (1 + float64(i)*0.03) * map[string]float64{"bit/s": 1e9, "s": 1e-4, "bytes": 1e8, "1/s": 1e4}[m.Unit]
				if medians[i] == 0 {
					medians[i] = 0.1 * float64(i+1)
				}
			}
			add(r, step.ID, "pod", m.Name, 5, names, medians, none)
		}
		for i, c := range names {
			if k >= 6 {
				r.Curves = append(r.Curves, curve(c, step.ID, 1+0.1*float64(i+k)))
			}
			for round := range 5 {
				r.Traces = append(r.Traces, scattered(trace(c, step.ID, round+1, 34), chance))
			}
		}
	}
	return r
}

// loaded is a run of round trips beside a bulk flow and without one.
func loaded() *analysis.Report {
	r := sample(6)
	r.Results, r.Steps, r.Curves = nil, nil, nil
	names := make([]string, len(r.Contenders))
	var idle, under, goodput []float64
	for i, c := range r.Contenders {
		names[i] = c.ID
		idle, under, goodput = append(idle, 40e-6+4e-6*float64(i)), append(under, 0.4e-3+0.15e-3*float64(i)), append(goodput, 20e9-1e9*float64(i))
	}
	none := make([]int, len(names))
	for flows, id := range []string{"rr-idle", "rr-loaded"} {
		r.Steps = append([]result.Step{{ID: id, Workload: "tcp_rr_loaded", Path: "pod", Params: map[string]any{"rate": 997.0, "flows": float64(flows)}}}, r.Steps...)
		add(r, id, "pod", "network_time_p50", 6, names, [][]float64{idle, under}[flows], none)
		add(r, id, "pod", "rate", 6, names, slices.Repeat([]float64{997}, len(names)), none)
	}
	add(r, "rr-loaded", "pod", "load_goodput", 6, names, goodput, none)
	return r
}
