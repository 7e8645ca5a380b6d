package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/cli/clusterflags"
	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/cli/tunecmd"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/unit"
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
		Short: "Remove everything that a crashed run can have left",
		Long: `Removes what a crashed run can have left on this machine. A lab leaves nothing, because
the kernel removes its namespaces when the run's processes end, after kill -9, too. So
clean ends labs that hang without their launcher, restores host settings that tune apply
changed, and removes unfinished downloads of kernels. It keeps run directories, and
downloaded kernels unless you give --cache.

With --arena kube it changes a cluster instead: it removes the namespaces of runs, and
uninstalls a contender that run --install left. A run that is under way renews its Lease in
the cluster; clean watches the Lease for 40 s and leaves such a run alone, unless you give
--all-runs. What to uninstall is in the run's journal in the cluster. Whoever can write
that journal must not decide what runs as root on the nodes: so uninstalling needs the
cluster's scratch label or --scratch, and the pods that clean the nodes run an image of a
known publisher, or that of --image.

A setting of a node that diagnose --prove tries comes back by itself, also after kill -9. With
--privileged clean looks on each node for one whose holder was killed, too, and takes it back.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			kind, err := run.KindOf(f.arena, cmdutil.GivenFlags(c))
			switch {
			case err != nil:
				return err
			case kind.Cluster:
				return cleanKube(c, &f)
			}
			return cleanLab(c, &f)
		},
	}
	addArena(c, &f.arena, "where to clean: auto (this machine, as lab and microvm) or kube (a cluster)")
	c.Flags().BoolVar(&f.cache, "cache", false, "also remove the kernels that were downloaded for guests")
	c.Flags().BoolVar(&f.allRuns, "all-runs", false, "kube: also remove runs that are under way, at once")
	c.Flags().BoolVar(&f.kube.Privileged, "privileged", false, "kube: allow one privileged pod a node for a moment, which takes back what a killed diagnose --prove left there")
	clusterflags.AddConnection(c, &f.kube)
	clusterflags.AddProgram(c, &f.kube)
	clusterflags.AddWithin(c, &f.kube)
	clusterflags.AddScratch(c, &f.kube)
	for flag, usage := range map[string]string{
		"image":       "kube: `image` of the pods that clean nodes after --install (default: one with a shell that the nodes have, of a known publisher)",
		"namespace":   "kube: remove only what runs have left in this `namespace`, which an administrator made (default: the namespaces of all runs)",
		"pull-policy": "kube: " + strings.Join(clusterflags.PullPolicies, ", ") + " (default: the one of the run)",
	} {
		known := c.Flags().Lookup(flag)
		known.Usage, known.DefValue = usage, ""
	}
	c.Flags().StringToStringVar(&f.kube.Facts, "fact", nil, "kube: a fact of the cluster that the journal of --install lacks or has wrong, as `name=value`: "+strings.Join(contender.Placeholders()[1:], ", "))
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
