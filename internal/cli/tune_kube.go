package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/nearest"
)

// The machines that settings are of.
const (
	arenaLocal = "local"
	arenaNode  = "node" // this machine, asked from a cluster; nobody types it
)

// tuneKubeFlags are the flags of a cluster: where its nodes are, and what runs there.
var tuneKubeFlags = []string{"kubeconfig", "context", "image", "pull-policy", "nodes", "privileged"}

// addKube adds them.
func (f *tuneFlags) addKube(c *cobra.Command) {
	f.kube.addConnection(c)
	f.kube.addProgram(c)
	c.Flags().StringVar(&f.nodes, "nodes", "", "kube: names of `nodes`, a,b (default: all that are ready)")
	c.Flags().BoolVar(&f.kube.privileged, "privileged", false, "kube: allow one privileged pod a node for the time of this command; it may do there what root may")
	c.PreRunE = func(c *cobra.Command, _ []string) error { return f.checkArena(c) }
}

// checkArena refuses an unknown machine, and flags that mean nothing on it.
func (f *tuneFlags) checkArena(c *cobra.Command) error {
	switch f.arena {
	case arenaKube:
		if f.root != "" {
			return usage("--root: a cluster's nodes have trees of their own; leave it out")
		}
		return nil
	case arenaLocal, arenaNode:
	default:
		return nearest.Unknown("arena", f.arena, []string{arenaLocal, arenaKube})
	}
	for _, flag := range tuneKubeFlags {
		if c.Flags().Changed(flag) {
			return usage("--%s: means nothing with --arena %s, only with %s; leave it out", flag, f.arena, arenaKube)
		}
	}
	return nil
}

// revertCommand is what takes back what was applied, as it was asked for.
func (f *tuneFlags) revertCommand() string {
	if f.arena == arenaNode {
		return "cnibench tune revert --arena kube --privileged"
	}
	return "cnibench tune revert"
}

// onNodes runs the same command on the nodes of the cluster, and shows what
// each of them says.
func (f *tuneFlags) onNodes(c *cobra.Command, args []string) error {
	run := &runFlags{given: givenFlags(c), nodes: f.nodes, kube: f.kube}
	g, err := newKubeGround(run)
	if err != nil {
		return err
	}
	return g.inside(c, func(ctx context.Context) error {
		m, err := kube.OpenMachines(ctx, g.options)
		if err != nil {
			return kubeError(err)
		}
		all := m.Run(ctx, onNodeArgs(c, args)...)
		// Shown before the pods go, which takes a moment and may fail.
		err = errors.Join(showNodes(c, all), m.Close(context.WithoutCancel(ctx)))
		if ctx.Err() != nil {
			err = &exitError{exitFailed, errors.Join(err, errors.New("interrupted; "+whatHolds))}
		}
		return err
	})
}

// whatHolds is the next step after an end on the way.
const whatHolds = "`cnibench tune status --arena kube --privileged` says what is applied"

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
	return append(append(argv, "--"), args...)
}

// showNodes prints what each node said, nodes that said the same together. Its
// error names the nodes that failed, with the worst of their exit codes.
func showNodes(c *cobra.Command, all []kube.OnMachine) error {
	code, failed := exitDone, []error(nil)
	for _, did := range all {
		notes, problem := parted(did)
		for line := range strings.Lines(notes) {
			fmt.Fprintf(c.ErrOrStderr(), "node %s: %s\n", did.Node, strings.TrimRight(line, "\n"))
		}
		if problem != nil {
			failed = append(failed, fmt.Errorf("node %s: %w", did.Node, problem))
			code = worse(code, did)
		}
	}
	if err := printNodes(c, all); err != nil {
		return err
	}
	if code == exitDone {
		return nil
	}
	return &exitError{code, errors.Join(failed...)}
}

// printNodes prints their standard output: below headings, which are comments
// where that is a file, or as one object.
func printNodes(c *cobra.Command, all []kube.OnMachine) error {
	value := func(name string) string {
		if flag := c.Flags().Lookup(name); flag != nil {
			return flag.Value.String()
		}
		return ""
	}
	heading := "%s\n\n%s"
	if value("export") != "" {
		heading = "# %s\n%s"
	} else if value("json") == "true" {
		documents := map[string]json.RawMessage{}
		for _, did := range all {
			if json.Valid([]byte(did.Stdout)) {
				documents[did.Node] = json.RawMessage(did.Stdout)
			}
		}
		return printJSON(c.OutOrStdout(), map[string]any{"schema": "cnibench/tune-nodes/1", "nodes": documents})
	}
	var texts []string
	who := map[string][]string{}
	for _, did := range all {
		if did.Stdout == "" {
			continue
		}
		if who[did.Stdout] == nil {
			texts = append(texts, did.Stdout)
		}
		who[did.Stdout] = append(who[did.Stdout], did.Node)
	}
	for i, text := range texts {
		names := "node " + who[text][0]
		if len(who[text]) > 1 {
			names = "nodes " + strings.Join(who[text], ", ")
		}
		if i > 0 {
			fmt.Fprintln(c.OutOrStdout())
		}
		fmt.Fprintf(c.OutOrStdout(), heading, names, text)
	}
	return nil
}

// parted are what a node's program said beside its result, and why it failed.
func parted(did kube.OnMachine) (notes string, problem error) {
	const mark = "cnibench: " // of Main
	text := did.Stderr
	at := 0
	if !strings.HasPrefix(text, mark) {
		at = strings.Index(text, "\n"+mark) + 1
	}
	switch {
	case did.Err != nil:
		return text, fmt.Errorf("%w; %s", did.Err, whatHolds)
	case did.Code == exitDone:
		return text, nil
	case !strings.HasPrefix(text[at:], mark):
		return text, fmt.Errorf("exit code %d", did.Code)
	}
	return text[:at], errors.New(strings.TrimSpace(strings.TrimPrefix(text[at:], mark)))
}

// worse is the worse of an exit code and a node's: what failed may be half
// done, what is refused was not begun.
func worse(code int, did kube.OnMachine) int {
	order := []int{exitDone, exitUnsupported, exitUsage, exitFailed}
	other := did.Code
	if did.Err != nil || !slices.Contains(order, other) {
		other = exitFailed
	}
	if slices.Index(order, other) > slices.Index(order, code) {
		return other
	}
	return code
}
