package loadcmd

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/load"
	"github.com/cnibench/cnibench/internal/unit"
)

// loadOptions are the flags that every exchange has.
type loadOptions struct {
	rate, ramp               string
	steps                    []string
	closed, findMax          bool
	p99                      time.Duration
	arrivals                 string
	seed                     uint64
	connections, threads     int
	cpus                     []int
	sources                  []string
	duration, warmup         time.Duration
	timeout, wait            time.Duration
	json, histograms, slices bool
	hlog                     string
}

func newLoadOptions(timeout time.Duration) *loadOptions { return &loadOptions{timeout: timeout} }

func (o *loadOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.rate, "rate", "", "requests per second, e.g. 10000 or 10k")
	f.StringVar(&o.ramp, "ramp", "", "change the rate evenly over the duration: FROM:TO, e.g. 1k:20k")
	f.StringSliceVar(&o.steps, "steps", nil, "several rates, each for the duration and with its own figures, e.g. 1k,5k,10k")
	f.BoolVar(&o.closed, "closed", false, "closed loop: each connection sends when the answer has come; hides stalls")
	f.BoolVar(&o.findMax, "find-max", false, "search for the highest rate within --p99, and confirm it over the whole duration")
	f.DurationVar(&o.p99, "p99", 10*time.Millisecond, "with --find-max: the largest 99th percentile of latency")
	f.StringVar(&o.arrivals, "arrivals", "constant", "gaps between requests: constant, or poisson for random ones")
	f.Uint64Var(&o.seed, "seed", 1, "seed of --arrivals poisson; the same seed gives the same times")
	f.IntVar(&o.connections, "connections", 1, "number of connections, over all threads")
	f.IntVar(&o.threads, "threads", 0, "`number` of sending threads; 0: one, or more if one may not open enough files")
	f.IntSliceVar(&o.cpus, "cpus", nil, "CPUs for the threads, in turn, e.g. 0,2")
	f.StringSliceVar(&o.sources, "source", nil, "local `addresses`, used in turn; give several for tens of thousands of connections, because free ports of one address run out")
	f.DurationVar(&o.duration, "duration", 10*time.Second, "measured time")
	f.DurationVar(&o.warmup, "warmup", 0, "time under load before the measured time; no figure includes it")
	f.DurationVar(&o.timeout, "timeout", o.timeout, "how long to wait for a connection or an answer")
	f.DurationVar(&o.wait, "wait", 0, "how long to wait for a server that is still starting")
	f.BoolVar(&o.json, "json", false, "print the result as one JSON object on the last line")
	f.BoolVar(&o.histograms, "histograms", false, "add the HdrHistograms to the JSON object (nanoseconds, V2 compressed, base64)")
	slicesFlag(c, &o.slices)
	f.StringVar(&o.hlog, "hlog", "", "write a histogram of every second to this file (HdrHistogram log 1.3, tags latency and service_time)")
}

// config is what the flags ask for.
func (o *loadOptions) config(c *cobra.Command) (load.Config, error) {
	cfg := load.Config{
		Connections: o.connections, Threads: o.threads, CPUs: o.cpus, Seed: o.seed,
		Duration: o.duration, Warmup: o.warmup, Timeout: o.timeout, Wait: o.wait,
	}
	var ways []string
	for _, name := range []string{"rate", "ramp", "steps", "closed", "find-max"} {
		if c.Flags().Changed(name) {
			ways = append(ways, "--"+name)
		}
	}
	switch {
	case len(ways) == 0:
		return cfg, exit.Usage("say how to load: --rate R (requests per second), --ramp, --steps, --closed or --find-max")
	case len(ways) > 1:
		return cfg, exit.Usage("%s exclude each other", strings.Join(ways, " and "))
	case o.histograms && !o.json:
		return cfg, exit.Usage("--histograms needs --json")
	case o.findMax && o.hlog != "":
		return cfg, exit.Usage("--find-max makes many short loads; it has no --hlog")
	case !o.findMax && c.Flags().Changed("p99"):
		return cfg, exit.Usage("--p99 needs --find-max")
	}
	if !slices.Contains([]string{"constant", "poisson"}, o.arrivals) {
		return cfg, exit.Usage("--arrivals %s: there are constant and poisson", o.arrivals)
	}
	cfg.Poisson = o.arrivals == "poisson"
	if err := o.rates(&cfg); err != nil {
		return cfg, err
	}
	for _, text := range o.sources {
		source, err := netip.ParseAddr(text)
		if err != nil {
			return cfg, exit.Usage("--source %s: want an IP address of this machine", text)
		}
		cfg.Sources = append(cfg.Sources, source)
	}
	return cfg, nil
}

// rates reads the flag that says how fast.
func (o *loadOptions) rates(cfg *load.Config) error {
	rate := func(flag, text string, to *float64) error {
		v, err := unit.ParsePerSecond(text)
		if err != nil {
			return exit.Usage("--%s: %w", flag, err)
		}
		if v <= 0 {
			return exit.Usage("--%s %s sends nothing; give a rate above 0, or --closed for as fast as the answers come", flag, text)
		}
		*to = float64(v)
		return nil
	}
	switch {
	case o.ramp != "":
		from, to, ok := strings.Cut(o.ramp, ":")
		if !ok {
			return exit.Usage("--ramp %s: want FROM:TO, e.g. 1k:20k", o.ramp)
		}
		if err := rate("ramp", from, &cfg.Rate); err != nil {
			return err
		}
		return rate("ramp", to, &cfg.Ramp)
	case len(o.steps) > 0:
		cfg.Steps = make([]float64, len(o.steps))
		for i, text := range o.steps {
			if err := rate("steps", text, &cfg.Steps[i]); err != nil {
				return err
			}
		}
		return nil
	case o.closed || o.findMax:
		return nil
	}
	return rate("rate", o.rate, &cfg.Rate)
}

// loadTarget is a target as it was written.
type loadTarget struct {
	scheme, host string
	port         uint16
	path         string
}

// parseLoadTarget takes a target apart: a URL or HOST:PORT for http, HOST:PORT
// for the others.
func parseLoadTarget(text string, http bool) (*loadTarget, error) {
	full := text
	if !strings.Contains(text, "://") {
		full = "http://" + text
	} else if !http {
		return nil, exit.Usage("target %s: want HOST:PORT", text)
	}
	u, err := url.Parse(full)
	if err != nil {
		return nil, exit.Usage("target: %w", err)
	}
	switch {
	case u.Scheme != "http":
		return nil, exit.Usage("target %s: only http:// can be loaded, not %s://", text, u.Scheme)
	case strings.HasPrefix(text, "http//") || strings.HasPrefix(text, "http:/") && !strings.Contains(text, "://"):
		return nil, exit.Usage("target %s: did you mean http://%s?", text, strings.TrimLeft(strings.TrimPrefix(text, "http"), ":/"))
	case u.User != nil || u.Fragment != "":
		return nil, exit.Usage("target %s: a user or a #fragment is not sent; leave it out", text)
	case u.Hostname() == "":
		return nil, exit.Usage("target %s names no host; write http://HOST[:PORT][/PATH] or HOST:PORT", text)
	case !http && (u.Port() == "" || u.RequestURI() != "/"):
		return nil, exit.Usage("target %s: want HOST:PORT", text)
	}
	t := &loadTarget{host: u.Hostname(), port: 80}
	if http {
		t.scheme, t.path = "http://", u.RequestURI()
	}
	if p := u.Port(); p != "" {
		number, err := strconv.ParseUint(p, 10, 16)
		if err != nil || number == 0 {
			return nil, exit.Usage("target %s: port %s is not between 1 and 65535", text, p)
		}
		t.port = uint16(number)
	}
	return t, nil
}

func (t *loadTarget) hostPort() string { return net.JoinHostPort(t.host, strconv.Itoa(int(t.port))) }

// name is the target as the report has it.
func (t *loadTarget) name() string { return t.scheme + t.hostPort() + t.path }

func (t *loadTarget) resolve(ctx context.Context) (netip.AddrPort, error) {
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", t.host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("load: resolve the target: %w", err)
	}
	return netip.AddrPortFrom(addrs[0].Unmap(), t.port), nil
}
