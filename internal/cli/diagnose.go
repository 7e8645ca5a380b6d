package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/clusterflags"
	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/diagnose"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/unit"
)

func newDiagnoseCmd() *cobra.Command {
	f := runFlags{Request: run.NewRequest()}
	var d run.Diagnosis
	asJSON, plant := false, ""
	c := &cobra.Command{
		Use:   "diagnose [DIR|FILE]",
		Short: "Why are pods slow? One cause, with its evidence, its place and its proof",
		Long: strings.TrimSpace(`
Measures the paths between two nodes and their pods, both ways and in interleaved
slices: node to node, pod to pod on another node and on the same, from nodes to pods and
back, through a Service, and the cluster's DNS. It holds what it sees (offloads, queues,
routes, sysctls, counters at the borders of every slice) against a list of causes, and
names those that explain what is slow: what, where, evidence, what to do.

A cause is proven if changing its setting moves the figure and changing it back moves it
back; supported if its evidence accounts for what is slow; else suspected. In the lab
proofs are always made; in a cluster only with --prove, which needs --privileged.
In a cluster bulk sends at most 200 Mbit/s, and nothing is left. With --pod it measures
between the nodes of your pods, by pods of its own beside them, and reads of yours what
the API server and the kubelet know: CPU limit and throttling, bandwidth annotations,
NetworkPolicies, a mesh's proxy.

With DIR, a run directory, or FILE, a case that --save wrote, nothing is measured: what is
there is judged. A run has counters and figures, not how devices are set up.
Exit codes: 0 nothing found; 4 a cause found; 1 could not look; 2, 3 as everywhere.`),
		Example: `  kubectl cnibench diagnose
  cnibench diagnose --arena kube --nodes worker-a,worker-b
  cnibench diagnose --arena kube --pod shop/cart-7f9 --to shop/db-0
  cnibench diagnose --arena kube --prove --privileged
  cnibench diagnose --arena lab --contender calico-vxlan
  cnibench diagnose cnibench-run-20261127-1003 --contender canal
  cnibench diagnose --arena kube --save case.json; cnibench diagnose case.json --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			show := func(_ *diagnose.Case, v *diagnose.Verdict) error {
				if asJSON {
					return cmdutil.PrintJSON(c.OutOrStdout(), v)
				}
				return printDiagnosis(c.OutOrStdout(), v)
			}
			if len(args) == 1 {
				return run.DiagnoseDir(args[0], d.Contender, show)
			}
			if plant != "" {
				p, err := run.ReadPlanted(plant)
				if err != nil {
					return err
				}
				d.Plant = &p
			}
			f.from(c)
			return run.Diagnose(c.Context(), &f.Request, d, show)
		},
	}
	addDiagnosed(c, &f)
	fl := c.Flags()
	fl.StringVar(&d.Contender, "contender", "", "the contender whose network is looked at, of a lab or of a run directory (default flannel-vxlan; of a run the only one, or the cluster's own)")
	fl.BoolVar(&d.UnderLoad, "under-load", false, "measure round trips while bulk runs, too")
	fl.BoolVar(&d.Prove, "prove", false, "kube: change what would prove a cause for half of the slices, and change it back; needs --privileged")
	fl.IntVar(&d.Cycles, "cycles", 0, "`number` of slices of each path (default 3)")
	fl.StringVar(&d.Keep, "save", "", "write all that was seen to this `file`, which diagnose judges again")
	fl.BoolVar(&asJSON, "json", false, "print as JSON")
	fl.StringVar(&plant, "plant", "", "plant the fault of this `file` first")
	_ = fl.MarkHidden("plant")
	return c
}

// addDiagnosed adds the flags of what is diagnosed.
func addDiagnosed(c *cobra.Command, f *runFlags) {
	addOneNetwork(c, &f.Request)
	fl := c.Flags()
	fl.Lookup("pod").Usage = "kube: look at this pod of yours, `namespace/name`: its node, limits, policies, proxies; nothing is started in it"
	fl.StringVar(&f.Cluster.To, "to", "", "kube: the other end of --pod, `namespace/name`")
	clusterflags.Complete(c, "to", "pods")
	fl.StringVar(&f.MaxRate, "max-rate", "", "the most that bulk sends, e.g. 500M; 0 is no limit (default 200M in a cluster, none in the lab)")
}

// addOneNetwork adds the flags of commands that look at one network wherever it is.
func addOneNetwork(c *cobra.Command, f *run.Request) {
	addArena(c, &f.Arena, "where: lab, microvm (the lab under another kernel) or kube (a cluster); auto is lab")
	clusterflags.AddNodes(c, &f.Nodes)
	clusterflags.AddConnection(c, &f.Cluster)
	clusterflags.AddPods(c, &f.Cluster)
	addGuest(c, f)
}

// printDiagnosis prints the answer first, then what was excluded and what was not seen.
func printDiagnosis(out io.Writer, v *diagnose.Verdict) error {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(text.SafeLine(fmt.Sprintf(format, args...)) + "\n") }
	line("%s", v.Summary)
	b.WriteString("\n")
	switch v.Verdict {
	case diagnose.Usual:
		line("Nothing found: this is what the datapath costs.")
	case diagnose.Undecided:
		line("Pods are slow or lose packets, and no cause of the list fits.")
	}
	for _, x := range v.Causes {
		printClaim(line, x)
	}
	if len(v.Excluded) > 0 {
		b.WriteString("\nExcluded:\n")
		for _, e := range v.Excluded {
			line("  ✓ %-16s %s", e.ID, e.By)
		}
	}
	if len(v.Unseen) > 0 {
		b.WriteString("\nNot looked at:\n")
		for _, u := range v.Unseen {
			remedy := ""
			if u.Remedy != "" {
				remedy = " → " + u.Remedy
			}
			line("  ? %-16s %s%s", u.ID, u.Why, remedy)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// printClaim prints what is wrong, where, what shows it and what to do.
func printClaim(line func(format string, args ...any), x diagnose.Claim) {
	where := x.Node
	for _, part := range []string{x.Device, x.Pod} {
		if part != "" && part != where {
			where += " " + part
		}
	}
	if x.Direction != "" {
		where += " (" + x.Direction + ")"
	}
	line("✗ %s  %s: %s", x.ID, strings.TrimSpace(where), x.Text)
	for _, e := range x.Evidence {
		line("    %s: %s   [%s]", e.What, e.Value, e.At)
	}
	if e := x.Effect; e != nil {
		ci := ""
		if e.CI != nil {
			ci = fmt.Sprintf(" (%.2g–%.2g)", e.CI[0], e.CI[1])
		}
		line("    changed and changed back: %s %s → %s, %.2f×%s", e.Metric, effectValue(e.Metric, e.Without), effectValue(e.Metric, e.With), e.Ratio, ci)
	}
	line("    → %s", x.Next)
	line("    %s", x.State)
}

// effectValue returns a figure of a proof with its unit.
func effectValue(metric string, v float64) string {
	if metric == "goodput" {
		return unit.BitRate(v).String()
	}
	return fmt.Sprintf("%.3g", v)
}
