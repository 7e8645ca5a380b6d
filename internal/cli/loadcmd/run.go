package loadcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/load"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// run loads, and prints what it measured, even if that comes with an error.
func (o *loadOptions) run(ctx context.Context, w io.Writer, cfg load.Config, target string) (err error) {
	if o.hlog != "" {
		if err := cfg.Check(); err != nil { // before a file is made empty
			return exit.Usage("%w", err)
		}
		f, err := os.Create(o.hlog)
		if err != nil {
			return fmt.Errorf("load: histogram log: %w", err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		cfg.Log = f
	}
	report, err := o.measure(ctx, cfg, target)
	if report == nil {
		return withExitCode(err, load.ErrConfig)
	}
	var printErr error
	if o.json {
		printErr = json.NewEncoder(w).Encode(report)
	} else {
		_, printErr = io.WriteString(w, loadText(report))
	}
	switch {
	case printErr != nil:
		return errors.Join(err, printErr)
	case err != nil:
		return exit.With(exit.Gate, err)
	case report.Requests == 0:
		return exit.With(exit.Gate, errors.New("load: no request was answered; see the errors in the report"))
	}
	return nil
}

// withExitCode gives err its exit code; wrong is the error of wrong settings.
func withExitCode(err, wrong error) error {
	switch {
	case errors.Is(err, wrong):
		return exit.Usage("%w", err)
	case errors.Is(err, errors.ErrUnsupported):
		return exit.With(exit.Unsupported, err)
	}
	return err
}

// measure runs the load, or the search for the highest rate. It returns a report and an error
// if the search found no rate: the report is of its last probe.
func (o *loadOptions) measure(ctx context.Context, cfg load.Config, target string) (*load.Report, error) {
	if !o.findMax {
		res, err := load.Run(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return res.Report(cfg, target, o.histograms)
	}
	best, res, probes, err := load.FindMax(ctx, cfg, o.p99)
	if res == nil {
		return nil, err
	}
	cfg.Rate = best // at which res was measured
	if err != nil {
		cfg.Rate = probes[len(probes)-1].AskedRate
	}
	report, reportErr := res.Report(cfg, target, o.histograms)
	if reportErr != nil {
		return nil, errors.Join(err, reportErr)
	}
	report.MaxRate, report.P99Bound, report.Probes = best, o.p99.Seconds(), probes
	return report, err
}

// loadText is a report for people.
func loadText(r *load.Report) string {
	var b strings.Builder
	for _, limit := range r.Limits {
		fmt.Fprintf(&b, "limit     %s: %s\n", limit.Code, limit.Text)
	}
	how := "closed loop"
	if r.AskedRate > 0 {
		how = unit.PerSecond(r.AskedRate).String() + " asked"
		if r.Arrivals == "poisson" {
			how += " with Poisson arrivals"
		}
	}
	fmt.Fprintf(&b, "%s, %s, %s, %d connections, ", r.Target, r.Exchange, how, r.Connections)
	if r.Threads > 1 {
		fmt.Fprintf(&b, "%d threads, ", r.Threads)
	}
	fmt.Fprintf(&b, "%v measured", unit.Seconds(r.Duration))
	if r.Interrupted {
		b.WriteString(" (interrupted)")
	}
	if len(r.Probes) > 0 {
		loadProbes(&b, r)
	}
	fmt.Fprintf(&b, "\n\nrate      %v; %d requests answered, %d missed, %d failed\n", unit.PerSecond(r.Rate), r.Requests, r.Missed, r.ErrorCount())
	loadErrors(&b, "", r.Errors)
	loadErrors(&b, "connections without a request: ", r.ConnectionErrors)
	if r.AskedRate > 0 {
		fmt.Fprintf(&b, "sends     %.2f %% late by this program, %.2f %% behind busy connections\n", 100*r.LateFraction, 100*r.QueuedShare)
	}
	if r.AskedRate <= 0 {
		b.WriteString("note      a closed loop hides stalls: these are service times, not the latency that a user feels (see --rate)\n")
	}
	fmt.Fprintf(&b, "own CPU   %.2f CPU, and %.2f waiting by spinning\n\n", r.GeneratorCPU, r.GeneratorSpin)
	loadTimes(&b, r)
	loadSteps(&b, r)
	return b.String()
}

// loadErrors prints how often each kind of error occurred.
func loadErrors(b *strings.Builder, prefix string, counts map[load.Kind]int64) {
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(b, "          %s%s: %d\n", prefix, kind, counts[kind])
	}
}

// loadProbes prints what the search for the highest rate found, and each of its tries.
func loadProbes(b *strings.Builder, r *load.Report) {
	bound := time.Duration(r.P99Bound * 1e9)
	if r.MaxRate > 0 {
		fmt.Fprintf(b, "\n\nhighest   %v with a p99 of at most %v; what follows is the run that confirmed it", unit.PerSecond(r.MaxRate), bound)
	} else {
		fmt.Fprintf(b, "\n\nhighest   none with a p99 of at most %v; what follows is the last try", bound)
	}
	for _, p := range r.Probes {
		name, verdict := unit.PerSecond(p.AskedRate).String(), "passed"
		if p.AskedRate == 0 {
			name = "closed loop, " + unit.PerSecond(p.Rate).String()
		}
		if !p.Passed {
			verdict = p.Why
		}
		fmt.Fprintf(b, "\n  probe   %s: p99 %v; %s", name, unit.Seconds(p.P99), verdict)
	}
}

// loadTimes prints a table of times: a line for each clock.
func loadTimes(b *strings.Builder, r *load.Report) {
	columns := []string{"mean"}
	for _, p := range result.Percentiles {
		columns = append(columns, p.Name)
	}
	columns = append(columns, "max")
	fmt.Fprintf(b, "%-14s", "")
	for _, column := range columns {
		fmt.Fprintf(b, "%11s", strings.ReplaceAll(column, "_", "."))
	}
	b.WriteString("\n")
	for _, clock := range []string{"latency", "service_time", "network_time", "connect_time", "send_lag"} {
		if _, measured := r.Times[clock+"_mean"]; !measured {
			continue
		}
		fmt.Fprintf(b, "%-14s", strings.ReplaceAll(clock, "_", " "))
		for _, column := range columns {
			fmt.Fprintf(b, "%11s", loadCell(r.Times, clock+"_"+column))
		}
		b.WriteString("\n")
	}
}

// loadCell is a time, or a dash for a percentile beyond which too few samples lie: a report
// lacks those.
func loadCell(times map[string]float64, name string) string {
	if v, enough := times[name]; enough {
		return unit.Seconds(v).String()
	}
	return "–"
}

// loadSteps prints a line for each step of a ladder of rates; nothing without a ladder.
func loadSteps(b *strings.Builder, r *load.Report) {
	if len(r.Steps) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%-14s%12s%10s%10s%11s%11s%11s\n", "step", "answered", "missed", "late", "p50", "p99", "max")
	for _, s := range r.Steps {
		fmt.Fprintf(b, "%-14v%12v%10d%8.2f %%%11s%11s%11s\n", unit.PerSecond(s.AskedRate), unit.PerSecond(s.Rate), s.Missed, 100*s.LateFraction,
			loadCell(s.Times, "latency_p50"), loadCell(s.Times, "latency_p99"), loadCell(s.Times, "latency_max"))
	}
}
