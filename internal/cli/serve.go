package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/load"
	"github.com/cnibench/cnibench/internal/unit"
)

func newServeCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve http",
		Short: "Serve the other side of `cnibench load`",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newServeHTTPCmd())
	return c
}

func newServeHTTPCmd() *cobra.Command {
	var listen, size string
	var stall, every time.Duration
	c := &cobra.Command{
		Use:   "http",
		Short: "Answer every request with the same bytes",
		Long: strings.TrimSpace(fmt.Sprintf(`
Answer every request with the same bytes, %d of them header, until interrupted.
With --stall the server holds all responses for that long every so often, to
see that a load generator notices. For measurements that count use nginx.`, load.HeaderBytes)),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			bytes, err := unit.ParseBytes(size)
			if err != nil {
				return usage("--size: %w", err)
			}
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			context.AfterFunc(ctx, stop)
			defer stop()
			s, err := load.NewServer(load.ServerConfig{Listen: listen, Size: int(bytes), Stall: stall, Every: every})
			if errors.Is(err, load.ErrConfig) {
				return usage("%w", err)
			}
			if err != nil {
				return err
			}
			c.PrintErrf("serving %d bytes on http://%v/\n", int(bytes), s.Addr())
			return s.Serve(ctx)
		},
	}
	f := c.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:8080", "address and port; port 0 takes a free one")
	f.StringVar(&size, "size", "350B", "whole response, header included")
	f.DurationVar(&stall, "stall", 0, "hold all responses this long …")
	f.DurationVar(&every, "every", 2*time.Second, "… this often")
	return c
}
