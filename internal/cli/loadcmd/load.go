// Package loadcmd is the command line of the load engine and of its other
// sides: `cnibench load` and serve. Next: Load, below.
package loadcmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/cli/interrupt"
	"github.com/cnibench/cnibench/internal/load"
	"github.com/cnibench/cnibench/internal/load/stream"
	"github.com/cnibench/cnibench/internal/unit"
)

func Load() *cobra.Command {
	c := &cobra.Command{
		Use:   "load http|tcp-rr|tcp-crr|udp-rr|tcp-stream|udp-stream TARGET",
		Short: "Load a server at a constant rate and measure its latency",
		Long: strings.TrimSpace(`
Load a server and measure its latency, from the moment that each request
should have been sent: a server that stalls shows, whatever it does to the
client. The other side can be any HTTP/1.1 server, or ` + "`cnibench serve`" + `.

  http     one page again and again, over connections that are kept open or
           with a connection for each request
  tcp-rr   a request and a response of chosen sizes, over connections that are
           kept open
  tcp-crr  the same with a connection for each request
  udp-rr   a datagram there and a datagram back

Two more send as much as the path carries and measure goodput instead:

  tcp-stream, udp-stream`),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newLoadHTTPCmd(), newLoadTCPRRCmd(), newLoadTCPCRRCmd(), newLoadUDPRRCmd(),
		newLoadStreamCmd(stream.TCP), newLoadStreamCmd(stream.UDP))
	return c
}

// loadHelp is what the subcommands have in common.
var loadHelp = strings.TrimSpace(`
With --rate every request has a planned time that nothing moves. A request that finds all
connections busy waits, and its latency counts from its planned time. --ramp and --steps
change the rate; --arrivals poisson draws the gaps at random.

With --closed every connection sends the next request as soon as it has its answer. A
closed loop hides stalls: it sends nothing while the server stalls, so that few of its
times show the stall. It has service times only and no latency.

With --find-max the highest rate is searched at which the 99th percentile of the latency
is at most --p99, 99 % of the requests are sent on time and 99 % of them are answered.

  latency       from the planned send to the response read; with a plan only
  service time  from the actual send to the response read; a connection that
                the request has for itself is a part of both
  network time  from the actual send to the kernel's receive timestamp
  connect time  of connections that requests have for themselves
  send lag      this program's own delay, with a plan only; more than ` + load.LateAfter.String() + `
                counts as late

When this program or its machine was the limit, the result says so first.`)

// loadCmd is a subcommand whose exchange is made from the target and its own
// flags.
func loadCmd(use, short, long, example string, o *loadOptions, exchange func(t *loadTarget) (load.Exchange, error)) *cobra.Command {
	c := &cobra.Command{
		Use:     use + " TARGET (--rate R | --closed | --find-max)",
		Short:   short,
		Long:    strings.TrimSpace(long) + "\n\n" + loadHelp,
		Example: strings.Trim(example, "\n"),
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := interrupt.Context(c)
			defer stop()
			target, err := parseLoadTarget(args[0], use == "http")
			if err != nil {
				return err
			}
			cfg, err := o.config(c)
			if err != nil {
				return err
			}
			if cfg.Exchange, err = exchange(target); err != nil {
				return err
			}
			if cfg.Target, err = target.resolve(ctx); err != nil {
				return err
			}
			if o.slices {
				return runSlices(ctx, c, cfg, target.name())
			}
			return o.run(ctx, c.OutOrStdout(), cfg, target.name())
		},
	}
	o.flags(c)
	return c
}

func newLoadHTTPCmd() *cobra.Command {
	var each bool
	c := loadCmd("http", "Ask an HTTP/1.1 server for a page", `
Ask an HTTP/1.1 server for one page again and again. TARGET is
http://HOST[:PORT][/PATH] or HOST:PORT.`, `
  cnibench load http http://10.0.0.2/ --rate 10k --connections 64
  cnibench load http http://10.0.0.2/ --rate 1k --arrivals poisson --connection-per-request --connections 64
  cnibench load http http://10.0.0.2/ --steps 1k,5k,10k --duration 5s --connections 64
  cnibench load http http://10.0.0.2/ --find-max --p99 2ms --connections 64`,
		newLoadOptions(10*time.Second), func(t *loadTarget) (load.Exchange, error) {
			return load.HTTP{Host: t.hostPort(), Path: t.path, Each: each}, nil
		})
	c.Flags().BoolVar(&each, "connection-per-request", false, "connect for each request, and close after it")
	return c
}

// newSizedCmd is a subcommand whose exchange has only sizes.
func newSizedCmd(use, short, long, example string, timeout time.Duration, exchange func(load.Sizes) load.Exchange) *cobra.Command {
	var s loadSizes
	c := loadCmd(use, short, long, example, newLoadOptions(timeout), func(*loadTarget) (load.Exchange, error) {
		sizes, err := s.sizes()
		return exchange(sizes), err
	})
	s.flags(c)
	return c
}

func newLoadTCPRRCmd() *cobra.Command {
	return newSizedCmd("tcp-rr", "Send bytes and wait for bytes over open TCP connections", `
Send --request bytes and wait for --response bytes, again and again over TCP
connections that are kept open. TARGET is HOST:PORT of
`+"`cnibench serve tcp`"+` with the same sizes.`, `
  cnibench load tcp-rr 10.0.0.2:5201 --closed
  cnibench load tcp-rr 10.0.0.2:5201 --rate 20k --connections 32 --request 100B --response 1KiB`,
		10*time.Second, func(s load.Sizes) load.Exchange { return load.TCPRR{Sizes: s} })
}

func newLoadTCPCRRCmd() *cobra.Command {
	return newSizedCmd("tcp-crr", "Connect, send bytes, wait for bytes, and close", `
For each request connect over TCP, send --request bytes, wait for --response
bytes, and close with a reset, which leaves no port in TIME_WAIT. TARGET is
HOST:PORT of `+"`cnibench serve tcp`"+` with the same sizes.`, `
  cnibench load tcp-crr 10.0.0.2:5201 --closed --connections 32
  cnibench load tcp-crr 10.0.0.2:5201 --rate 2k --connections 64 --source 10.0.0.1,10.0.0.3`,
		10*time.Second, func(s load.Sizes) load.Exchange { return load.TCPCRR{Sizes: s} })
}

func newLoadUDPRRCmd() *cobra.Command {
	c := newSizedCmd("udp-rr", "Send a datagram and wait for one", fmt.Sprintf(`
Send a datagram of --request bytes and wait for one of --response bytes. One
that is lost counts as an error of kind timeout after --timeout; its connection
can send nothing until then. Sizes are at most %d bytes. TARGET is HOST:PORT of `+"`cnibench serve udp`"+` with the same sizes.`, load.MaxDatagram), `
  cnibench load udp-rr 10.0.0.2:5201 --closed
  cnibench load udp-rr 10.0.0.2:5201 --rate 5k --connections 16 --timeout 200ms --request 64B --response 64B`,
		time.Second, func(s load.Sizes) load.Exchange { return load.UDPRR{Sizes: s} })
	for _, name := range []string{"request", "response"} {
		f := c.Flags().Lookup(name)
		f.Usage = strings.Replace(f.Usage, "64KiB", fmt.Sprintf("%dB", load.MaxDatagram), 1)
	}
	return c
}

// loadSizes are the flags for the sizes of a request and a response.
type loadSizes struct{ request, response string }

func (s *loadSizes) flags(c *cobra.Command) {
	c.Flags().StringVar(&s.request, "request", "1B", "size of a request, 1B to 64KiB")
	c.Flags().StringVar(&s.response, "response", "1B", "size of a response, 1B to 64KiB")
}

func (s *loadSizes) sizes() (load.Sizes, error) {
	var sizes load.Sizes
	for _, f := range []struct {
		name, text string
		to         *int
	}{{"request", s.request, &sizes.Request}, {"response", s.response, &sizes.Response}} {
		n, err := unit.ParseBytes(f.text)
		if err != nil {
			return sizes, exit.Usage("--%s: %w", f.name, err)
		}
		if n < 1 || n > load.MaxMessage {
			return sizes, exit.Usage("--%s %s: from 1B to %v are possible", f.name, f.text, unit.Bytes(load.MaxMessage))
		}
		*f.to = int(n)
	}
	return sizes, nil
}
