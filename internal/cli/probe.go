package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/run"
)

// probeFlags is the command line of `cnibench probe`.
type probeFlags struct {
	arena, nodes string
	given        map[string]bool
	asJSON       bool
	kube         run.Cluster
	packages     packagesFlags
}

func newProbeCmd() *cobra.Command {
	var f probeFlags
	c := &cobra.Command{
		Use:   "probe",
		Short: "Say what this machine, kernel or cluster can run, and what the rest would need",
		Long: `Tries every kernel feature that contenders need, in a temporary namespace, and says which
contenders can run here; for each that can't, why and what would help. Nothing on the
machine is changed.

With --arena kube it asks a cluster instead: whether it can be reached, what the
account may do, what its nodes are. What it makes there to ask, it removes.

With --packages it says which programs are missing for runs in the lab, or for
those of --suite and --contenders, and the one command that installs them.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			kind, err := run.FindArena(f.arena)
			if err != nil {
				return err
			}
			f.given = cmdutil.GivenFlags(c)
			if err := kind.Foreign(f.given); err != nil {
				return err
			}
			switch {
			case f.packages.only:
				return f.packages.run(c, f.asJSON)
			case f.given["suite"] || f.given["contenders"]:
				return exit.Usage("--suite and --contenders choose what --packages prints")
			case kind.Name == run.Kube:
				return probeKube(c, &f)
			}
			return probeLab(c, &f)
		},
	}
	addArena(c, &f.arena, "what to probe: auto (this kernel, as lab and microvm) or kube (a cluster)")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print as JSON")
	f.packages.add(c)
	cmdutil.AddNodes(c, &f.nodes)
	cmdutil.AddConnection(c, &f.kube)
	cmdutil.AddPods(c, &f.kube)
	cmdutil.AddInstall(c, &f.kube)
	return c
}

// probeLab probes this kernel, inside the lab's container.
func probeLab(c *cobra.Command, f *probeFlags) error {
	return run.ProbeLab(c.Context(), func(p *run.Probe) error {
		if f.asJSON {
			return cmdutil.PrintJSON(c.OutOrStdout(), p)
		}
		printProbe(c.OutOrStdout(), p)
		return nil
	})
}

func printProbe(out io.Writer, p *run.Probe) {
	rights := "as root"
	if p.User != "root" {
		rights = "as an ordinary user, in a user namespace"
	}
	fmt.Fprintf(out, "Kernel %s, %s\n\n", p.Kernel, rights)
	var rows [][]string
	for _, f := range p.Features {
		rows = append(rows, []string{f.Name, yesNo(f.OK), f.Option, f.Summary + suffix(f.Error+f.Note)})
	}
	cmdutil.PrintTable(out, []string{"Feature", "Here", "Option", "What"}, rows)
	fmt.Fprintln(out)
	rows = nil
	for _, x := range p.Programs {
		rows = append(rows, []string{x.Name, yesNo(x.OK), x.Remedy})
	}
	cmdutil.PrintTable(out, []string{"Program", "Here", "What would help"}, rows)
	fmt.Fprintln(out)
	printContenders(out, p.Contenders)
}

func printContenders(out io.Writer, list []run.Support) {
	var rows [][]string
	for _, x := range list {
		why := x.Reason
		if x.Remedy != "" {
			why = strings.TrimSuffix(why, ".") + "; " + x.Remedy
		}
		here := yesNo(x.OK)
		if x.Guest {
			here = "guest"
		}
		rows = append(rows, []string{x.ID, here, why})
	}
	cmdutil.PrintTable(out, []string{"Contender", "Here", "Why not, and what would help"}, rows)
}

func yesNo(ok bool) string {
	if ok {
		return "yes"
	}
	return "no"
}

func suffix(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
