package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/clusterflags"
	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/selftest"
)

func newSelfTestCmd() *cobra.Command {
	f := runFlags{Request: run.NewRequest()}
	asJSON := false
	c := &cobra.Command{
		Use:   "selftest",
		Short: "Plant known truths on this machine and see whether they are found, in a minute or two",
		Long: strings.TrimSpace(`
Proves the instrument on the machine at hand before anyone believes a figure. In a
lab it compares the baseline with copies of it: one that is the same, one whose link
is capped, one that drops a known share of the datagrams, one whose packets pass
hundreds of rules, one whose link holds long messages back, one with a link that is
too narrow for its MTU; and a server stalls. Meanwhile a process outside of the lab
keeps half of the CPUs busy for half of the time. Each truth must be found within its
stated error, and the busy cycles be left out. Then two faults are planted in labs of their
own, and none in a third: diagnose must name them first, with their place, and prove no other.

With --arena microvm the lab is in a guest with another kernel. With --arena kube the
copies are pairs of pods in the cluster; faults are planted in the pods' own network
namespaces, for which --privileged gives them the right, else only the twins are held
against each other, the server stalls, and the table says why the rest is left out.

The result of a lab is kept for this version and kernel; runs have it in their fingerprint.
Exit codes: 0 all were found; 4 one was not; 1, 2, 3 as everywhere.`),
		Example: `  cnibench selftest
  cnibench selftest --json
  cnibench selftest --arena microvm
  cnibench selftest --arena kube --privileged
  cnibench selftest --out selftest-run   # keeps the run: cnibench report selftest-run`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f.from(c)
			found, err := run.SelfTest(c.Context(), &f.Request)
			if found == nil {
				return err
			}
			return errors.Join(printSelfTest(c.OutOrStdout(), *found, asJSON), err)
		},
	}
	addArena(c, &f.Arena, "where to test: auto or lab (this machine), microvm (the lab under another kernel) or kube (a cluster)")
	clusterflags.AddNodes(c, &f.Nodes)
	clusterflags.AddConnection(c, &f.Cluster)
	clusterflags.AddImage(c, &f.Cluster)
	fl := c.Flags()
	fl.StringVar(&f.Cluster.Namespace, "namespace-prefix", run.DefaultNamespace, "kube: beginning of the names of the namespaces that are made")
	fl.BoolVar(&f.Cluster.Privileged, "privileged", false, "kube: let the pods of the test change their own network (NET_ADMIN), so that faults can be planted")
	fl.BoolVar(&asJSON, "json", false, "print the trials as JSON")
	fl.IntVar(&f.Rounds, "rounds", run.SelfTestRounds, "`number` of passes over all trials; with fewer than 7, trials that need an interval fail")
	fl.StringVar(&f.Out, "out", "", "keep the run in this `directory`")
	addGuest(c, &f.Request)
	return c
}

func printSelfTest(out io.Writer, r selftest.Result, asJSON bool) error {
	if asJSON {
		return cmdutil.PrintJSON(out, r)
	}
	var rows, planted [][]string
	for _, t := range r.Trials {
		verdict, found := "found", t.Found
		switch {
		case t.LeftOut != "":
			verdict, found = "left out", t.LeftOut
		case !t.Passed:
			verdict = "NOT FOUND"
		}
		rows = append(rows, []string{verdict, t.Name, found})
		planted = append(planted, []string{t.Name, t.Planted + "; must be found: " + t.Wanted})
	}
	cmdutil.PrintTable(out, []string{"", "Trial", "Found"}, rows)
	fmt.Fprintln(out)
	cmdutil.PrintTable(out, []string{"Trial", "Planted, and what must be found"}, planted)
	if !r.Passed {
		_, err := fmt.Fprintln(out, "\nDo not trust figures of this machine yet: run again on a quieter one, or report this with --json.")
		return err
	}
	return nil
}
