package tunecmd

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/tune"
	"github.com/cnibench/cnibench/internal/unit"
)

// tuneSystemDir is root's state folder.
const tuneSystemDir = "/var/lib/cnibench"

func newTuneApplyCmd(nodes Nodes) *cobra.Command {
	f := Flags{nodes: nodes}
	c := &cobra.Command{
		Use:   "apply SETTING…|--profile PROFILE",
		Short: "Apply settings, after writing the old values to a journal",
		Long: `Makes the changes that tune plan shows. Every old value is on disk before its change is
made, so that tune revert restores it even after a crash. Settings that were applied
earlier stay applied. A reboot undoes everything except the profile of tuned; tune plan
--export prints files that last.`,
		Example: `  cnibench tune apply --profile latency
  cnibench tune apply rps rfs --set rfs.flows=30000
  cnibench tune apply --arena kube --privileged --nodes worker-a,worker-b slow-start-idle`,
		RunE: func(c *cobra.Command, args []string) error { return runTuneApply(c, &f, args) },
	}
	f.Choose(c)
	f.where(c)
	c.Flags().StringSliceVar(&f.nics, "nic", nil, "`interfaces` to tune (default: the interface of the default route)")
	return c
}

func runTuneApply(c *cobra.Command, f *Flags, args []string) error {
	req, err := f.Request(args)
	if err != nil {
		return err
	}
	if len(req.Names()) == 0 {
		return exit.Usage("nothing to apply: name settings, or a --profile; `cnibench tune plan` shows them")
	}
	if f.onCluster() {
		return f.onNodes(c, args, nil)
	}
	m, err := f.machine()
	if err != nil {
		return err
	}
	_, items, err := f.plan(c, m, req)
	if err != nil {
		return err
	}
	if err := checkApplicable(items); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context(), host.EndSignals()...)
	defer stop()
	dir, err := f.stateDir()
	if err != nil {
		return err
	}
	j, err := tune.OpenJournal(dir, m.BootID())
	if err != nil {
		return err
	}
	made, failed, err := tune.Apply(ctx, m, j, items)
	err = errors.Join(err, j.Close())
	out := c.OutOrStdout()
	for _, line := range changeWords(made) {
		fmt.Fprintln(out, line)
	}
	for _, item := range items {
		for _, advice := range item.Advice {
			fmt.Fprintf(out, "for you to do (%s): %s\n", item.Setting.Name, advice)
		}
		switch {
		case item.State == tune.StateUnreadable:
			failed = append(failed, tune.Failure{Setting: item.Setting.Name, Err: errors.New(item.Reason)})
		case item.Reason != "":
			fmt.Fprintf(c.ErrOrStderr(), "left out: %s: %s\n", item.Setting.Name, item.Reason)
		}
	}
	if len(made) > 0 {
		fmt.Fprintf(out, "%s; take back with: %s\n", unit.Plural(len(made), "change"), f.revertCommand())
	} else if err == nil && len(failed) == 0 {
		fmt.Fprintln(out, "nothing to change")
	}
	return errors.Join(err, failures(failed))
}

// checkApplicable returns an error if no setting of the plan applies to this machine.
func checkApplicable(items []tune.Item) error {
	var reasons []string
	for _, item := range items {
		if item.Reason == "" || item.State == tune.StateUnreadable {
			return nil
		}
		reasons = append(reasons, fmt.Sprintf("%s: %s", item.Setting.Name, item.Reason))
	}
	return &arena.Unsupported{Reason: "none of these settings applies to this machine: " + strings.Join(reasons, "; ")}
}

// failures joins the failures into one error, or returns nil.
func failures(failed []tune.Failure) error {
	var errs []error
	denied := false
	for _, f := range failed {
		errs = append(errs, f)
		denied = denied || errors.Is(f.Err, os.ErrPermission)
	}
	if denied && os.Geteuid() != 0 {
		errs = append(errs, errors.New("only root may change host settings: run it as root"))
	}
	return errors.Join(errs...)
}

// stateDir returns the folder of the journal; a copied tree has its own.
func (f *Flags) stateDir() (string, error) {
	if f.root != "" {
		return filepath.Join(f.root, tuneSystemDir), nil
	}
	return tune.StateDir()
}
