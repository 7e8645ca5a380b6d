package loadcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/cli/interrupt"
	"github.com/cnibench/cnibench/internal/load/slicing"
	"github.com/cnibench/cnibench/internal/load/stream"
	"github.com/cnibench/cnibench/internal/unit"
)

// streamOptions are the flags of `load tcp-stream` and `load udp-stream`.
type streamOptions struct {
	cfg                stream.Config
	size, window, rate string
	warmup, length     time.Duration
	json, slices       bool
}

// newLoadStreamCmd is `load tcp-stream` or `load udp-stream`.
func newLoadStreamCmd(p stream.Protocol) *cobra.Command {
	o := streamOptions{cfg: stream.Config{Protocol: p}}
	c := &cobra.Command{
		Use:   string(p) + "-stream TARGET",
		Short: "Send as much as the path carries over TCP",
		Long: strings.TrimSpace(`
Send as much as the path carries over TCP. TARGET is HOST:PORT of
` + "`cnibench serve stream`" + `. Goodput comes from the receiver's count and the
receiver's clock.`),
		Example: `  cnibench load tcp-stream 10.0.0.2:5201 --connections 8
  cnibench load tcp-stream 10.0.0.2:5201 --window 1MiB --duration 5s --json`,
		Args: cobra.ExactArgs(1),
		RunE: o.run,
	}
	f := c.Flags()
	if p == stream.UDP {
		c.Short = "Send packets over UDP at a rate, or as many as possible"
		c.Long = strings.NewReplacer(c.Short, c.Short, "Send as much as the path carries over TCP.", c.Short+".").Replace(c.Long) + `

Loss is the share of the packets sent within a slice that did not arrive.`
		c.Example = `  cnibench load udp-stream 10.0.0.2:5201 --rate 1G --size 1400B
  cnibench load udp-stream 10.0.0.2:5201 --size 64B`
		f.StringVar(&o.size, "size", "1400B", "payload of a packet, 32B to 65507B")
	} else {
		f.StringVar(&o.size, "size", "128KiB", "`bytes` of one write, up to 16MiB")
		f.StringVar(&o.window, "window", "", "largest number of `bytes` in flight on a connection, e.g. 1MiB (default: the kernel decides)")
		f.BoolVar(&o.cfg.ZeroCopy, "zero-copy", false, "send from page cache (sendfile) instead of copying from memory")
	}
	f.StringVar(&o.rate, "rate", "", "limit of the payload of all connections in `bit/s`, e.g. 500M (default: as much as possible)")
	f.IntVar(&o.cfg.Connections, "connections", 1, "connections, each with a sending thread of its own")
	f.DurationVar(&o.warmup, "warmup", time.Second, "time under load before the measured time; no figure includes it")
	f.DurationVar(&o.length, "duration", 10*time.Second, "measured time")
	f.DurationVar(&o.cfg.Wait, "wait", 0, "how long to wait for a server that is still starting")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	slicesFlag(c, &o.slices)
	return c
}

// config completes the configuration from the flags that are texts.
func (o *streamOptions) config() error {
	for _, f := range []struct {
		name, text string
		to         *int
	}{{"size", o.size, &o.cfg.Size}, {"window", o.window, &o.cfg.Window}} {
		if f.text == "" {
			continue
		}
		n, err := unit.ParseBytes(f.text)
		if err != nil {
			return exit.Usage("--%s: %w", f.name, err)
		}
		*f.to = int(min(n, 1<<30)) // what is too much is for stream to say
	}
	if o.rate != "" {
		var err error
		if o.cfg.Rate, err = unit.ParseBitRate(o.rate); err != nil {
			return exit.Usage("--rate: %w", err)
		}
	}
	if o.length <= 0 || o.warmup < 0 {
		return exit.Usage("--duration is above 0 and --warmup is not negative")
	}
	return nil
}

func (o *streamOptions) run(c *cobra.Command, args []string) error {
	ctx, stop := interrupt.Context(c)
	defer stop()
	if err := o.config(); err != nil {
		return err
	}
	target, err := parseLoadTarget(args[0], false)
	if err != nil {
		return err
	}
	if o.cfg.Target, err = target.resolve(ctx); err != nil {
		return err
	}
	if o.slices {
		if err := notWithSlices(c, "warmup", "duration", "json"); err != nil {
			return err
		}
	}
	slice, err := o.send(ctx, c, target.name())
	if err != nil || o.slices {
		return withExitCode(err, stream.ErrConfig)
	}
	report := stream.NewReport(o.cfg, target.name(), slice)
	if o.json {
		err = json.NewEncoder(c.OutOrStdout()).Encode(report)
	} else {
		_, err = io.WriteString(c.OutOrStdout(), streamText(report))
	}
	if err == nil && report.Goodput == 0 {
		err = exit.With(exit.Gate, errors.New("load: no byte arrived; does a firewall or policy on the way drop the data?"))
	}
	return err
}

// send takes one slice, or answers with those that standard input orders; ctx ends
// a slice early.
func (o *streamOptions) send(ctx context.Context, c *cobra.Command, target string) (slice stream.Slice, err error) {
	sender, err := stream.Connect(ctx, o.cfg)
	if err != nil {
		return slice, err
	}
	defer func() { err = errors.Join(err, sender.Close()) }()
	if o.slices {
		return slice, slicing.Serve(ctx, c.InOrStdin(), c.OutOrStdout(), streamSlices{sender, o.cfg, target})
	}
	return sender.Slice(ctx, o.warmup, o.length, nil, nil)
}

// streamText is a report for people.
func streamText(r stream.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s-stream, %s, %v measured", r.Target, r.Protocol, unit.Plural(r.Connections, "connection"), unit.Seconds(r.Duration))
	if r.Interrupted {
		b.WriteString(" (interrupted)")
	}
	fmt.Fprintf(&b, "\n\ngoodput       %v\n", unit.BitRate(r.Goodput))
	if r.Protocol == stream.TCP {
		fmt.Fprintf(&b, "retransmits   %d\n", r.Retransmits)
	} else {
		fmt.Fprintf(&b, "packets       %d received, %.3g %% lost, jitter %v\n", r.Packets, 100*r.Loss(), unit.Seconds(r.Jitter))
	}
	fmt.Fprintf(&b, "own CPU       %.2f CPU\n", r.GeneratorCPU)
	return b.String()
}
