package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/cli/interrupt"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/web"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text/console"
)

func newExploreCmd() *cobra.Command {
	var listen string
	c := &cobra.Command{
		Use:   "explore DIR...",
		Short: "Show runs as a local web page, live while one goes on; two in the same charts",
		Long: `Serves the page of ` + "`report --format html`" + ` for one or several runs, or for the runs of a folder, on this machine's loopback
address, until Ctrl-C. It changes nothing and can be asked from this machine only, by every user
of it. While a run goes on the page follows it. Two runs are drawn in the same charts, each
contender as "canal · A" and "canal · B"; each run has its own page, too.`,
		Example: `  cnibench explore cnibench-run-20260102-030405
  cnibench explore before after
  cnibench explore cnibench-run-* --listen 127.0.0.1:8080`,
		Args: runDirs(1, 0),
		RunE: func(c *cobra.Command, dirs []string) error {
			if !web.IsLoopback(listen) {
				return exit.Usage("--listen %s: the page is for this machine only: give 127.0.0.1:PORT, [::1]:PORT or localhost:PORT", listen)
			}
			var runs []web.Run
			for _, folder := range dirs {
				for _, dir := range result.Runs(folder) {
					run, err := exploreRun(dir)
					if err != nil {
						return err
					}
					runs = append(runs, run)
				}
			}
			ctx, stop := interrupt.Context(c)
			defer stop()
			var config net.ListenConfig
			listener, err := config.Listen(ctx, "tcp", listen)
			if err != nil {
				return fmt.Errorf("explore: %w; choose another address with --listen", err)
			}
			server := web.NewServer(runs, console.Logger(c.ErrOrStderr()))
			fmt.Fprintf(c.OutOrStdout(), "http://%s/\n", listener.Addr())
			fmt.Fprintln(c.ErrOrStderr(), "Ctrl-C ends it")
			ended := make(chan error, 1)
			go func() { ended <- server.Serve(listener) }()
			select {
			case err := <-ended:
				return err
			case <-ctx.Done():
			}
			last, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			if err := server.Shutdown(last); err != nil {
				return server.Close()
			}
			return nil
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "loopback `ADDRESS` to serve at; port 0 takes a free one")
	return c
}

// exploreRun is the run in dir, read when it is first looked at: a large one
// takes a moment.
func exploreRun(dir string) (web.Run, error) {
	if _, err := runVersion(dir); err != nil {
		return web.Run{}, fmt.Errorf("%s: %w: %w", dir, result.ErrNoRun, err)
	}
	return web.Run{
		Name:    dir,
		Version: func() (string, error) { return runVersion(dir) },
		Load: func() (*analysis.Report, error) {
			rec, err := result.Load(dir)
			if err != nil {
				return nil, err
			}
			return report.Assemble(dir, rec, analysis.Options{}), nil
		},
	}, nil
}

// runVersion changes with every sealed sample of the run.
func runVersion(dir string) (string, error) {
	version := ""
	for _, name := range []string{"run.json", "samples.jsonl"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) && name != "run.json" {
			continue // no sample yet
		}
		if err != nil {
			return "", err
		}
		version += fmt.Sprintf("%s %d %d;", name, info.Size(), info.ModTime().UnixNano())
	}
	return version, nil
}
