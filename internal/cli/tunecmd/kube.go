package tunecmd

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/text"
)

// The machines that settings are of.
const (
	arenaLocal = "local"
	arenaNode  = "node" // this machine, asked from a cluster; nobody types it
)

// takeBackFlag tells a node how what it changes is taken back; nobody types it.
const takeBackFlag = "take-back-with"

// tuneKubeFlags are the flags of a cluster: where its nodes are, and what runs there.
var tuneKubeFlags = []string{"kubeconfig", "context", "image", "pull-policy", "nodes", "privileged"}

// addKube adds them.
func (f *Flags) addKube(c *cobra.Command) {
	cmdutil.AddConnection(c, &f.kube)
	cmdutil.AddProgram(c, &f.kube)
	c.Flags().StringVar(&f.nodes, "nodes", "", "kube: names of `nodes`, a,b (default: all that are ready)")
	c.Flags().BoolVar(&f.kube.Privileged, "privileged", false, "kube: allow one privileged pod a node for the time of this command; it may do there what root may")
	c.Flags().StringVar(&f.takeBackWith, takeBackFlag, "", "the `command` that is named as the one that takes back what was applied")
	_ = c.Flags().MarkHidden(takeBackFlag)
	c.PreRunE = func(c *cobra.Command, _ []string) error { return f.checkArena(c) }
}

// checkArena refuses an unknown machine, and flags that mean nothing on it.
func (f *Flags) checkArena(c *cobra.Command) error {
	switch f.arena {
	case run.Kube:
		if f.root != "" {
			return exit.Usage("--root: a cluster's nodes have trees of their own; leave it out")
		}
		return nil
	case arenaLocal, arenaNode:
	default:
		return text.Unknown("arena", f.arena, []string{arenaLocal, run.Kube})
	}
	for _, flag := range tuneKubeFlags {
		if c.Flags().Changed(flag) {
			return exit.Usage("--%s: means nothing with --arena %s, only with %s; leave it out", flag, f.arena, run.Kube)
		}
	}
	return nil
}

// revertCommand is what takes back what was applied, as it was asked for.
func (f *Flags) revertCommand() string { return cmp.Or(f.takeBackWith, "cnibench tune revert") }

// sameNodes is the command line of another subcommand for the nodes that c
// asks, where and as it does.
func sameNodes(c *cobra.Command, subcommand string) string {
	argv := []string{"cnibench", "tune", subcommand, "--arena", run.Kube}
	for _, name := range tuneKubeFlags {
		switch flag := c.Flags().Lookup(name); {
		case !flag.Changed:
		case flag.Value.Type() == "bool":
			argv = append(argv, "--"+name)
		default:
			argv = append(argv, "--"+name, text.ShellWord(flag.Value.String()))
		}
	}
	return strings.Join(argv, " ")
}

// onNodes runs the same command on the nodes of the cluster, and shows what
// each of them says.
func (f *Flags) onNodes(c *cobra.Command, args []string) error {
	request := &run.Request{Given: cmdutil.GivenFlags(c), Nodes: f.nodes, Cluster: f.kube}
	return run.OnNodes(c.Context(), request, onNodeArgs(c, args), whatHolds(c), func(answers []run.NodeAnswer) error {
		return showNodes(c, answers)
	})
}

// whatHolds is the next step after an end on the way.
func whatHolds(c *cobra.Command) string {
	return "`" + sameNodes(c, "status") + "` says what is applied"
}

// onNodeArgs is the command line for a node.
func onNodeArgs(c *cobra.Command, args []string) []string {
	argv := []string{"tune", c.Name(), "--arena=" + arenaNode}
	c.Flags().Visit(func(flag *pflag.Flag) {
		if flag.Name == "arena" || slices.Contains(tuneKubeFlags, flag.Name) {
			return
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			argv = append(argv, "--"+flag.Name+"="+value)
		}
	})
	argv = append(argv, "--"+takeBackFlag+"="+sameNodes(c, "revert"))
	return append(append(argv, "--"), args...)
}
