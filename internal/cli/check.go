package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/cli/clusterflags"
	"github.com/cnibench/cnibench/internal/cli/cmdutil"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/text"
)

// checkFlags is the command line of `cnibench check`; what it shares with
// `cnibench run` has the same flags and meaning.
type checkFlags struct {
	runFlags
	mtus   []string
	format string // text, md, json
	asJSON bool
	one    check.OneCase // of policy; without a name all
}

func newCheckCmd() *cobra.Command {
	f := checkFlags{runFlags: runFlags{Request: run.NewRequest()}}
	names := []string{}
	for _, c := range check.All() {
		names = append(names, c.Info().Name)
	}
	c := &cobra.Command{
		Use:   "check " + strings.Join(names, "|") + "|all",
		Short: "Prove what a pod network does: packet sizes, encryption, policies",
		Long: strings.TrimSpace(`
Brings contenders up one after the other and tests what the catalogue says of each.

  mtu         compares the pods' MTU with the largest packet that reaches another node in
              one piece, and with TCP's segments
  encryption  looks for a marked payload between the nodes, after proof that it is seen
              when it is sent plain
  policy      tests that NetworkPolicies let through what they allow and nothing else, and
              after what time; needs a cluster. A pod network without policies fails

The table has one row for each contender, or for each kind of failure: the nodes between
which it holds, the verdict, what was found, what to do next.
Several checks, or all, begin with a matrix of contenders and questions. cnibench run
--check mtu,encryption keeps the same results with a run.
Exit codes: 0 all as claimed; 1 a check could not be carried out; 2 wrong usage;
3 a contender of --contenders can't run here; 4 something is not as claimed.`),
		Example: `  cnibench check mtu --contenders flannel-vxlan,calico-vxlan --mtu 1500,9000
  cnibench check encryption --contenders calico-wg --arena microvm
  cnibench check mtu --cni-conf mynet.conflist --contenders custom
  cnibench check policy --arena kube
  cnibench check policy --arena kube --case ingress-named-port --hold 10m
  cnibench check all --arena kube --nodes all --format md`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: append(names, "all"),
		RunE:      func(c *cobra.Command, args []string) error { return runCheck(c, &f, args[0]) },
	}
	addArena(c, &f.Arena, "where to check: auto (what this kernel can, in the lab), lab, microvm (the lab under another kernel) or kube (a cluster)")
	fl := c.Flags()
	fl.StringVar(&f.Contenders, "contenders", f.Contenders, "contenders `a,b` to check; supported or all: those that can run here")
	fl.StringSliceVar(&f.mtus, "mtu", []string{"1500", "9000"}, "lab: MTUs of the underlay in `bytes`: check mtu tries each, the other checks use the first")
	fl.StringVar(&f.format, "format", checkFormats[0], "one of "+cmdutil.JoinOr(checkFormats))
	fl.BoolVar(&f.asJSON, "json", false, "print as JSON: --format json")
	fl.StringVar(&f.one.Name, "case", "", "policy: carry out the case `NAME` alone and print its policies")
	fl.DurationVar(&f.one.Hold, "hold", 0, "with --case: keep the case's policies and pods for this `time` after the verdict")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(checkFormats, cobra.ShellCompDirectiveNoFileComp))
	clusterflags.AddNodes(c, &f.Nodes)
	fl.Lookup("nodes").Usage += "; all asks every node of a cluster, two at a time"
	fl.StringVar(&f.Underlay, "underlay", f.Underlay, "lab: the nodes' network: auto (what the contender needs), switch or vpc")
	fl.StringVar(&f.Offload, "offload", f.Offload, "lab: how frames cross the underlay: host or wire")
	fl.StringVar(&f.CNIConf, "cni-conf", "", "lab: check the CNI configuration in `FILE` as contender \"custom\"")
	fl.StringVar(&f.CNITransport, "cni-transport", f.CNITransport, "lab: how the nodes' pod subnets of --cni-conf are joined: routes, vxlan or none")
	addGuest(c, &f.Request)
	clusterflags.AddConnection(c, &f.Cluster)
	clusterflags.AddPods(c, &f.Cluster)
	clusterflags.AddInstall(c, &f.Cluster)
	return c
}

// runCheck checks flags outside of the lab and contenders inside of it.
func runCheck(c *cobra.Command, f *checkFlags, name string) error {
	if f.one.Hold != 0 && f.one.Name == "" || f.one.Name != "" && name != "policy" {
		return exit.Usage("--case NAME, and --hold beside it, belong to cnibench check policy")
	}
	if f.asJSON {
		f.format = "json"
	}
	if !slices.Contains(checkFormats, f.format) {
		return text.Unknown("format", f.format, checkFormats)
	}
	f.from(c)
	if f.EveryNode = f.Nodes == "all"; f.EveryNode && !f.Kind().Cluster {
		return exit.Usage("--nodes all: a lab's nodes are alike; name their number, or check a cluster with --arena kube")
	}
	if name == "policy" && !f.Kind().Policies {
		return &arena.Unsupported{Reason: "check policy needs a cluster, which --arena " + f.Arena + " is not", Remedy: "cnibench check policy --arena kube"}
	}
	out, err := run.Check(c.Context(), &f.Request, run.CheckTask{Check: name, MTUs: f.mtus, Case: f.one})
	if out == nil {
		return err
	}
	return errors.Join(writeChecks(c.OutOrStdout(), out, f.format), err)
}

func listChecks(*run.Catalogue) ([][]string, any, error) {
	var rows [][]string
	var values []check.Info
	for _, c := range check.All() {
		values = append(values, c.Info())
		rows = append(rows, []string{c.Info().Name, c.Info().Summary})
	}
	return rows, values, nil
}
