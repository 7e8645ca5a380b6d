package tunecmd

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/text"
)

// The machines that settings are of.
const (
	arenaLocal = "local"
	arenaKube  = "kube" // the nodes of a cluster
	arenaNode  = "node" // this machine, asked from a cluster; nobody types it
)

// takeBackFlag tells a node how what it changes is taken back; nobody types it.
const takeBackFlag = "take-back-with"

// tuneKubeFlags are the flags of a cluster: where its nodes are, and what runs there.
var tuneKubeFlags = []string{"kubeconfig", "context", "image", "pull-policy", "nodes", "privileged"}

// Nodes carries commands out on the nodes of a cluster. The program for pods has none: it
// is what is carried out there.
type Nodes interface {
	// AddFlags adds the flags named by tuneKubeFlags.
	AddFlags(c *cobra.Command)
	// Run runs this program with those arguments on the nodes that c's flags choose, and
	// shows what each says, as compare makes it unless that is nil. next is the next step
	// after an end on the way.
	Run(c *cobra.Command, args []string, next string, compare Compare) error
}

// addKube adds the flags of a cluster.
func (f *Flags) addKube(c *cobra.Command) {
	if f.nodes != nil {
		f.nodes.AddFlags(c)
	}
	c.Flags().StringVar(&f.takeBackWith, takeBackFlag, "", "the `command` that is named as the one that takes back what was applied")
	_ = c.Flags().MarkHidden(takeBackFlag)
	c.PreRunE = func(c *cobra.Command, _ []string) error { return f.checkArena(c) }
}

// checkArena refuses an unknown machine, and flags that mean nothing on it.
func (f *Flags) checkArena(c *cobra.Command) error {
	switch f.arena {
	case arenaKube:
		if f.nodes == nil {
			return exit.Usage("--arena kube: this is the program for pods, which knows no clusters; run cnibench")
		}
		if f.root != "" {
			return exit.Usage("--root: a cluster's nodes have trees of their own; leave it out")
		}
		return nil
	case arenaLocal, arenaNode:
	default:
		return text.Unknown("arena", f.arena, []string{arenaLocal, arenaKube})
	}
	for _, flag := range tuneKubeFlags {
		if c.Flags().Changed(flag) {
			return exit.Usage("--%s: means nothing with --arena %s, only with %s; leave it out", flag, f.arena, arenaKube)
		}
	}
	return nil
}

// revertCommand is what takes back what was applied, as it was asked for.
func (f *Flags) revertCommand() string { return cmp.Or(f.takeBackWith, "cnibench tune revert") }

// sameNodes is the command line of another subcommand for the nodes that c
// asks, where and as it does.
func sameNodes(c *cobra.Command, subcommand string) string {
	argv := []string{"cnibench", "tune", subcommand, "--arena", arenaKube}
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

// onCluster reports whether the machines are the nodes of a cluster.
func (f *Flags) onCluster() bool { return f.arena == arenaKube }

// onNodes runs the same command on the nodes of the cluster, with more flags, and shows what
// each of them says.
func (f *Flags) onNodes(c *cobra.Command, args []string, compare Compare, more ...string) error {
	return f.nodes.Run(c, onNodeArgs(c, args, more...), "`"+sameNodes(c, "status")+"` says what is applied", compare)
}

// onNodeArgs is the command line for a node.
func onNodeArgs(c *cobra.Command, args []string, more ...string) []string {
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
	argv = append(argv, more...)
	argv = append(argv, "--"+takeBackFlag+"="+sameNodes(c, "revert"))
	return append(append(argv, "--"), args...)
}
