package loadcmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/load"
	"github.com/cnibench/cnibench/internal/load/slicing"
	"github.com/cnibench/cnibench/internal/load/stream"
)

// slicesFlag is a flag of all loads.
func slicesFlag(c *cobra.Command, to *bool) {
	c.Flags().BoolVar(to, "slices", false, `take orders such as {"lead":0.05,"length":0.2} (seconds) on standard input, one for each slice, and print its result as JSON; connections stay open in between (docs/dev/slices.md)`)
}

// notWithSlices refuses flags that a sliced load has no use for.
func notWithSlices(c *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if c.Flags().Changed(name) {
			return exit.Usage("--slices and --%s exclude each other; a slice's times are in its order", name)
		}
	}
	return nil
}

// runSlices has the load engine take slices.
func runSlices(ctx context.Context, c *cobra.Command, cfg load.Config, target string) error {
	if err := notWithSlices(c, "ramp", "steps", "find-max", "hlog", "warmup", "duration", "json", "histograms"); err != nil {
		return err
	}
	s, err := load.Open(ctx, cfg)
	if err != nil {
		return withExitCode(err, load.ErrConfig)
	}
	defer s.Close()
	return slicing.Serve(ctx, c.InOrStdin(), c.OutOrStdout(), requestSlices{s, cfg, target})
}

// requestSlices is the load engine as slicing has it.
type requestSlices struct {
	*load.Session
	cfg    load.Config
	target string
}

func (l requestSlices) Slice(ctx context.Context, lead, length time.Duration, begin, end func()) (any, error) {
	res, err := l.Session.Slice(ctx, lead, length, begin, end)
	if err != nil {
		return nil, err
	}
	return res.Report(l.cfg, l.target, true)
}

// streamSlices are bulk streams as slicing has them.
type streamSlices struct {
	sender *stream.Sender
	cfg    stream.Config
	target string
}

func (l streamSlices) Slice(ctx context.Context, lead, length time.Duration, begin, end func()) (any, error) {
	s, err := l.sender.Slice(ctx, lead, length, begin, end)
	if err != nil {
		return nil, err
	}
	return stream.NewReport(l.cfg, l.target, s), nil
}
