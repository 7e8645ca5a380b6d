package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/text"
)

func newEnterCmd() *cobra.Command {
	var init int
	c := &cobra.Command{
		Use:   "enter NODE|POD [-- COMMAND…]",
		Short: "Run a shell or a command inside a lab that is up",
		Long: `Runs a command in a node or pod of a lab that is up, because its run is under way or was
started with --keep. Without a command it starts a shell.`,
		Example: `  cnibench run --contenders flannel-vxlan --keep
  cnibench enter node1
  cnibench enter node2-pod2 -- ip route`,
		Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			pids, _ := run.Endpoints(0)
			return slices.Sorted(maps.Keys(pids)), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			pids, err := run.Endpoints(init)
			if err != nil {
				return err
			}
			pid, ok := pids[args[0]]
			if !ok {
				return text.Unknown("endpoint", args[0], slices.Sorted(maps.Keys(pids)))
			}
			return enter(c, pid, args[1:])
		},
	}
	c.Flags().IntVar(&init, "lab", 0, "number of the lab's init `process`, if several labs are up")
	return c
}

// enter runs the command in the namespaces of the process, with the caller's
// terminal.
func enter(c *cobra.Command, pid int, command []string) error {
	if len(command) == 0 {
		command = []string{"sh"}
		if shell := os.Getenv("SHELL"); shell != "" {
			command = []string{shell}
		}
	}
	argv := []string{"nsenter", "--target", strconv.Itoa(pid), "--mount", "--net", "--ipc", "--uts", "--pid"}
	if os.Geteuid() != 0 {
		argv = append(argv, "--user", "--preserve-credentials")
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt) // the command's, not ours
	defer signal.Stop(signals)
	p, err := host.Foreground(c.Context(), host.Command{Argv: append(append(argv, "--"), command...), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		return err
	}
	err = p.Wait()
	var ended *host.ExitError
	if errors.As(err, &ended) {
		return exit.With(ended.Code, nil)
	}
	if err != nil {
		return fmt.Errorf("enter: %w", err)
	}
	return nil
}
