package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/clusterflags"
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
		Short: "Print what this machine or cluster can run, and what would help the rest",
		Long: `Tries every kernel feature that contenders need, in a temporary namespace, and prints which
contenders can run here; for the others, why not and what would help. It changes nothing on
the machine.

With --arena kube it looks at a cluster: whether it answers, what the account may do, what
its nodes are. It removes what it makes there.

With --packages it prints which programs are missing for runs in the lab, or for those of
--suite and --contenders, and the one command that installs them.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f.given = cmdutil.GivenFlags(c)
			kind, err := run.KindOf(f.arena, f.given)
			switch {
			case err != nil:
				return err
			case f.packages.only:
				return f.packages.run(c, f.asJSON)
			case f.given["suite"] || f.given["contenders"]:
				return exit.Usage("--suite and --contenders choose what --packages prints")
			case kind.Cluster:
				return probeKube(c, &f)
			}
			return probeLab(c, &f)
		},
	}
	addArena(c, &f.arena, "what to probe: auto (this kernel, as lab and microvm) or kube (a cluster)")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print as JSON")
	f.packages.add(c)
	clusterflags.AddNodes(c, &f.nodes)
	clusterflags.AddConnection(c, &f.kube)
	clusterflags.AddPods(c, &f.kube)
	clusterflags.AddInstall(c, &f.kube)
	return c
}

// probeLab probes this kernel, inside the lab's container.
func probeLab(c *cobra.Command, f *probeFlags) error {
	p, err := run.ProbeLab(c.Context())
	if err != nil {
		return err
	}
	if f.asJSON {
		return cmdutil.PrintJSON(c.OutOrStdout(), p)
	}
	printProbe(c.OutOrStdout(), p)
	return nil
}

func printProbe(out io.Writer, p *run.Probe) {
	rights := "as root"
	if p.User != "root" {
		rights = "as an ordinary user, in a user namespace"
	}
	fmt.Fprintln(out, probeSummary(p.Contenders))
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

// probeSummary returns the first line: how many contenders run here, how many more in a
// guest, and the installation that would help most of the others.
func probeSummary(list []run.Support) string {
	here, guest := 0, 0
	helps := map[string]int{}
	for _, x := range list {
		switch {
		case x.OK && !x.Guest:
			here++
		case x.Guest:
			guest++
		case strings.Contains(x.Remedy, "install"):
			helps[x.Remedy]++
		}
	}
	text := fmt.Sprintf("%d of %d contenders run here", here, len(list))
	if guest > 0 {
		text += fmt.Sprintf(", %d more in a guest (--arena microvm)", guest)
	}
	best := ""
	for _, remedy := range slices.Sorted(maps.Keys(helps)) {
		if helps[remedy] > helps[best] {
			best = remedy
		}
	}
	if best != "" {
		text += fmt.Sprintf("; for %d others: %s", helps[best], best)
	}
	return strings.TrimSuffix(text, ".") + "."
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
