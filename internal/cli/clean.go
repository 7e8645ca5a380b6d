package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/cli/tunecmd"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/vm"
)

// cleanFlags is the command line of `cnibench clean`.
type cleanFlags struct {
	arena   string
	cache   bool
	allRuns bool
	kube    run.Cluster
}

func newCleanCmd() *cobra.Command {
	var f cleanFlags
	c := &cobra.Command{
		Use:   "clean",
		Short: "Take back everything that a crashed run can have left",
		Long: `Takes back what a crashed run can have left. A lab leaves nothing: the kernel
takes its namespaces back when the run ends, by whatever death. This ends labs
whose launcher is gone and that hang all the same, and takes host settings back
that tune apply has made, and removes what a crashed download of a kernel left.
Run directories are kept, and so are downloaded kernels without --cache.

With --arena kube it removes from a cluster the namespaces of runs, and takes off a
contender that --install had put there; of this machine, nothing. A run that is under way
renews its Lease in the cluster: clean looks for that for 40 s, and leaves such a run
alone unless you give --all-runs. What was installed and
what was found out of the cluster are in the run's journal there. Whoever can write that
journal must not decide what runs as root on the nodes: so taking a contender off needs
the cluster's mark or --scratch, and the --image of the pods that clean the nodes.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			kind, err := run.FindArena(f.arena)
			if err != nil {
				return err
			}
			if err := kind.Foreign(cmdutil.GivenFlags(c)); err != nil {
				return err
			}
			if kind.Name == run.Kube {
				return cleanKube(c, &f)
			}
			return cleanLab(c, &f)
		},
	}
	addArena(c, &f.arena, "where to clean: auto (this machine, as lab and microvm) or kube (a cluster)")
	c.Flags().BoolVar(&f.cache, "cache", false, "remove the kernels that were downloaded for guests, too")
	c.Flags().BoolVar(&f.allRuns, "all-runs", false, "kube: remove runs that are under way, too, without waiting for a sign of life")
	cmdutil.AddConnection(c, &f.kube)
	cmdutil.AddProgram(c, &f.kube)
	cmdutil.AddWithin(c, &f.kube)
	cmdutil.AddScratch(c, &f.kube)
	for flag, usage := range map[string]string{
		"image":       "kube: `image` of the pods that clean nodes after --install (needed then)",
		"pull-policy": "kube: " + strings.Join(cmdutil.PullPolicies, ", ") + " (default: the one of the run)",
	} {
		known := c.Flags().Lookup(flag)
		known.Usage, known.DefValue = usage, ""
	}
	c.Flags().StringToStringVar(&f.kube.Facts, "fact", nil, "kube: what the journal of --install lacks or has wrong, as `name=value`: "+strings.Join(contender.Placeholders()[1:], ", "))
	return c
}

// cleanLab cleans this machine.
func cleanLab(c *cobra.Command, f *cleanFlags) error {
	ended, running, err := run.EndAbandonedLabs()
	for _, launcher := range running {
		fmt.Fprintf(c.ErrOrStderr(), "a lab is running (launcher %d): left alone\n", launcher)
	}
	errs := []error{err}
	tuned, err := tunecmd.Clean(c)
	errs = append(errs, err)
	removed, err := vm.Clean(f.cache)
	errs = append(errs, err)
	for _, path := range removed {
		fmt.Fprintf(c.OutOrStdout(), "removed %s\n", path)
	}
	if ended == 0 && !tuned && len(removed) == 0 && errors.Join(errs...) == nil {
		fmt.Fprintln(c.OutOrStdout(), "nothing to clean")
	} else if ended > 0 {
		fmt.Fprintf(c.OutOrStdout(), "ended %s\n", unit.Plural(ended, "lab"))
	}
	return errors.Join(errs...)
}
