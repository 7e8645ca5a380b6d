package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/load"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

func newLoadCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "load http TARGET",
		Short: "Load a server at a constant rate and measure its latency",
		Long: strings.TrimSpace(`
Load a server and measure its latency, from the moment that each request
should have been sent: a server that stalls shows, whatever it does to the
client. The other side can be any HTTP/1.1 server, or ` + "`cnibench serve`" + `.`),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newLoadHTTPCmd())
	return c
}

// loadOptions are the flags of `load http`.
type loadOptions struct {
	rate                     string
	closed                   bool
	connections              int
	duration, warmup         time.Duration
	timeout, wait            time.Duration
	json, events, histograms bool
}

func newLoadHTTPCmd() *cobra.Command {
	var o loadOptions
	c := &cobra.Command{
		Use:   "http TARGET (--rate R | --closed)",
		Short: "Ask an HTTP/1.1 server over connections that are kept open",
		Long: strings.TrimSpace(`
Ask an HTTP/1.1 server for one page again and again over connections that are
kept open. TARGET is http://HOST[:PORT][/PATH] or HOST:PORT.

With --rate the requests follow a plan that nothing moves: one that finds every
connection busy waits, and its latency counts from its planned time. With
--closed every connection asks again as soon as it has its answer. A closed
loop hides stalls: while the server stalls it asks nothing, so that few of its
times show it. It has service times only and no latency; use it to find the
highest rate.

  latency       from the planned send to the response read; with --rate only
  service time  from the actual send to the response read
  network time  from the actual send to the kernel's receive timestamp
  send lag      this program's own delay, with --rate only; more than ` + load.LateAfter.String() + `
                counts as late`),
		Example: "  cnibench load http http://10.0.0.2/ --rate 10k --connections 64 --duration 10s",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
			defer stop()
			cfg, err := o.config(ctx, args[0])
			if err != nil {
				return err
			}
			return o.run(ctx, c.OutOrStdout(), cfg)
		},
	}
	f := c.Flags()
	f.StringVar(&o.rate, "rate", "", "requests per second, e.g. 10000 or 10k")
	f.BoolVar(&o.closed, "closed", false, "closed loop: as fast as the answers come, which hides stalls")
	f.IntVar(&o.connections, "connections", 1, "connections that are kept open")
	f.DurationVar(&o.duration, "duration", 10*time.Second, "measured time")
	f.DurationVar(&o.warmup, "warmup", 0, "time before it that is left out of every figure")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "the longest for a connection or an answer")
	f.DurationVar(&o.wait, "wait", 0, "how long to try for the first answer, for a server that is just starting")
	f.BoolVar(&o.json, "json", false, "print the result as one JSON object on the last line")
	f.BoolVar(&o.histograms, "histograms", false, "add the HdrHistograms to the JSON object (nanoseconds, V2 compressed, base64)")
	f.BoolVar(&o.events, "events", false, `print {"event":"begin"} and {"event":"end"} as the measured time begins and ends; implies --json`)
	return c
}

// config is what the flags and the target ask for; names are resolved here.
func (o *loadOptions) config(ctx context.Context, target string) (load.HTTPConfig, error) {
	cfg := load.HTTPConfig{
		Connections: o.connections, Duration: o.duration, Warmup: o.warmup, Timeout: o.timeout, Wait: o.wait,
	}
	if o.closed && o.rate != "" {
		return cfg, usage("--rate and --closed exclude each other: a closed loop has no plan")
	}
	if !o.closed {
		if o.rate == "" {
			return cfg, usage("say how to load: --rate R (requests per second) or --closed")
		}
		rate, err := unit.ParsePerSecond(o.rate)
		if err != nil {
			return cfg, usage("--rate: %w", err)
		}
		if rate <= 0 {
			return cfg, usage("--rate %s sends nothing; give a rate above 0, or --closed for as fast as the answers come", o.rate)
		}
		cfg.Rate = float64(rate)
	}
	if o.histograms && !o.json && !o.events {
		return cfg, usage("--histograms needs --json")
	}
	host, port, path, err := loadTarget(target)
	if err != nil {
		return cfg, err
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return cfg, fmt.Errorf("load: resolve the target: %w", err)
	}
	cfg.Target = netip.AddrPortFrom(addrs[0].Unmap(), port)
	cfg.Host = net.JoinHostPort(host, strconv.Itoa(int(port)))
	cfg.Path = path
	return cfg, nil
}

// loadTarget takes a target apart.
func loadTarget(target string) (host string, port uint16, path string, err error) {
	if !strings.Contains(target, "://") {
		target = "http://" + target
	}
	u, err := url.Parse(target)
	if err != nil {
		return "", 0, "", usage("target: %w", err)
	}
	if u.Scheme != "http" {
		return "", 0, "", usage("target %s: only http:// can be loaded, not %s://", target, u.Scheme)
	}
	if u.Hostname() == "" {
		return "", 0, "", usage("target %s names no host; write http://HOST[:PORT][/PATH] or HOST:PORT", target)
	}
	number := uint64(80)
	if p := u.Port(); p != "" {
		if number, err = strconv.ParseUint(p, 10, 16); err != nil || number == 0 {
			return "", 0, "", usage("target %s: port %s is not between 1 and 65535", target, p)
		}
	}
	return u.Hostname(), uint16(number), u.RequestURI(), nil
}

// run loads, and prints what it measured.
func (o *loadOptions) run(ctx context.Context, w io.Writer, cfg load.HTTPConfig) error {
	lines := json.NewEncoder(w)
	var broken error // both are called by the same goroutine, before HTTP returns
	event := func(name string) func() {
		return func() { broken = errors.Join(broken, lines.Encode(map[string]string{"event": name})) }
	}
	if o.events {
		cfg.Begin, cfg.End = event("begin"), event("end")
	}
	res, err := load.HTTP(ctx, cfg)
	if errors.Is(err, load.ErrConfig) {
		return usage("%w", err)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return &exitError{exitUnsupported, err}
	}
	if err := errors.Join(err, broken); err != nil {
		return err
	}
	report, err := res.Report(cfg, "http://"+cfg.Host+cfg.Path, o.histograms || o.events)
	if err != nil {
		return err
	}
	if o.json || o.events {
		err = lines.Encode(report)
	} else {
		_, err = io.WriteString(w, loadText(report))
	}
	if err == nil && report.Requests == 0 {
		return &exitError{exitGate, errors.New("load: not one request was answered")}
	}
	return err
}

// loadText is a report for people.
func loadText(r *load.Report) string {
	var b strings.Builder
	how := "closed loop"
	if r.AskedRate > 0 {
		how = unit.PerSecond(r.AskedRate).String() + " asked"
	}
	fmt.Fprintf(&b, "%s, %s, %d connections, %v measured", r.Target, how, r.Connections, unit.Seconds(r.Duration))
	if r.Interrupted {
		b.WriteString(" (interrupted)")
	}
	fmt.Fprintf(&b, "\n\nrate      %v; %d requests answered, %d missed, %d failed\n", unit.PerSecond(r.Rate), r.Requests, r.Missed, r.ErrorCount())
	for _, kind := range slices.Sorted(maps.Keys(r.Errors)) {
		fmt.Fprintf(&b, "          %s: %d\n", kind, r.Errors[kind])
	}
	if r.AskedRate > 0 {
		fmt.Fprintf(&b, "sends     %.2f %% late by this program, %.2f %% behind busy connections\n", 100*r.LateFraction, 100*r.QueuedShare)
	}
	if r.AskedRate <= 0 {
		b.WriteString("note      a closed loop hides stalls: these are service times, not the latency that a user feels (see --rate)\n")
	}
	fmt.Fprintf(&b, "own CPU   %.2f CPU, and %.2f waiting by spinning\n\n", r.GeneratorCPU, r.GeneratorSpin)

	columns := []string{"mean"}
	for _, p := range result.Percentiles {
		columns = append(columns, p.Name)
	}
	columns = append(columns, "max")
	fmt.Fprintf(&b, "%-14s", "")
	for _, column := range columns {
		fmt.Fprintf(&b, "%11s", strings.ReplaceAll(column, "_", "."))
	}
	b.WriteString("\n")
	for _, clock := range []string{"latency", "service_time", "network_time", "send_lag"} {
		if _, measured := r.Times[clock+"_mean"]; !measured {
			continue
		}
		fmt.Fprintf(&b, "%-14s", strings.ReplaceAll(clock, "_", " "))
		for _, column := range columns {
			cell := "–" // fewer than ten samples lie beyond it
			if v, enough := r.Times[clock+"_"+column]; enough {
				cell = unit.Seconds(v).String()
			}
			fmt.Fprintf(&b, "%11s", cell)
		}
		b.WriteString("\n")
	}
	return b.String()
}
