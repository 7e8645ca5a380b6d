package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/exit"
	"github.com/cnibench/cnibench/internal/nearest"
	"github.com/cnibench/cnibench/internal/printable"
	"github.com/cnibench/cnibench/internal/run"
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
func (f *tuneFlags) addKube(c *cobra.Command) {
	addConnection(c, &f.kube)
	addProgram(c, &f.kube)
	c.Flags().StringVar(&f.nodes, "nodes", "", "kube: names of `nodes`, a,b (default: all that are ready)")
	c.Flags().BoolVar(&f.kube.Privileged, "privileged", false, "kube: allow one privileged pod a node for the time of this command; it may do there what root may")
	c.Flags().StringVar(&f.takeBackWith, takeBackFlag, "", "the `command` that is named as the one that takes back what was applied")
	_ = c.Flags().MarkHidden(takeBackFlag)
	c.PreRunE = func(c *cobra.Command, _ []string) error { return f.checkArena(c) }
}

// checkArena refuses an unknown machine, and flags that mean nothing on it.
func (f *tuneFlags) checkArena(c *cobra.Command) error {
	switch f.arena {
	case run.Kube:
		if f.root != "" {
			return usage("--root: a cluster's nodes have trees of their own; leave it out")
		}
		return nil
	case arenaLocal, arenaNode:
	default:
		return nearest.Unknown("arena", f.arena, []string{arenaLocal, run.Kube})
	}
	for _, flag := range tuneKubeFlags {
		if c.Flags().Changed(flag) {
			return usage("--%s: means nothing with --arena %s, only with %s; leave it out", flag, f.arena, run.Kube)
		}
	}
	return nil
}

// revertCommand is what takes back what was applied, as it was asked for.
func (f *tuneFlags) revertCommand() string { return cmp.Or(f.takeBackWith, "cnibench tune revert") }

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
			argv = append(argv, "--"+name, printable.Word(flag.Value.String()))
		}
	}
	return strings.Join(argv, " ")
}

// onNodes runs the same command on the nodes of the cluster, and shows what
// each of them says.
func (f *tuneFlags) onNodes(c *cobra.Command, args []string) error {
	g, err := run.NewKube(&run.Request{Given: givenFlags(c), Nodes: f.nodes, Cluster: f.kube})
	if err != nil {
		return err
	}
	return g.Inside(c.Context(), func(ctx context.Context) error {
		m, err := kube.OpenMachines(ctx, g.Options)
		switch {
		case err != nil && ctx.Err() != nil:
			return exit.With(exit.Failed, fmt.Errorf("interrupted before anything ran on a node, so that nothing is changed there: %w; begin again with the same command", err))
		case err != nil:
			return run.KubeError(err)
		}
		all := m.Run(ctx, onNodeArgs(c, args)...)
		// Shown before the pods go, which takes a moment and may fail.
		err = errors.Join(showNodes(c, all), m.Close(context.WithoutCancel(ctx)))
		if ctx.Err() != nil {
			err = exit.With(exit.Failed, errors.Join(err, errors.New("interrupted; "+whatHolds(c))))
		}
		return err
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

// showNodes prints what the nodes said. Its error names those that failed, with
// the worst of their exit codes.
func showNodes(c *cobra.Command, all []kube.OnMachine) error {
	var stdout, notes, problems said
	code := exit.Done
	for _, did := range all {
		note, problem := parted(did, whatHolds(c))
		stdout.add(did.Node, did.Stdout)
		notes.add(did.Node, note)
		if problem != nil {
			problems.add(did.Node, problem.Error())
			code = worse(code, did)
		}
	}
	for i, note := range notes.texts {
		for line := range strings.Lines(note) {
			fmt.Fprintln(c.ErrOrStderr(), printable.Line(notes.by(i)+": "+strings.TrimRight(line, "\n")))
		}
	}
	if err := printNodes(c, &stdout); err != nil || code == exit.Done {
		return err
	}
	var errs []error
	for i, problem := range problems.texts {
		errs = append(errs, fmt.Errorf("%s: %s", problems.by(i), problem))
	}
	return exit.With(code, errors.Join(errs...))
}

// said is what nodes said, those that said the same together.
type said struct {
	texts []string
	nodes [][]string // of each text
}

// add notes what a node said, unless that is nothing.
func (s *said) add(node, text string) {
	i := slices.Index(s.texts, text)
	switch {
	case text == "":
	case i >= 0:
		s.nodes[i] = append(s.nodes[i], node)
	default:
		s.texts, s.nodes = append(s.texts, text), append(s.nodes, []string{node})
	}
}

// by are the nodes that said the text, in words.
func (s *said) by(i int) string {
	if len(s.nodes[i]) == 1 {
		return "node " + s.nodes[i][0]
	}
	return "nodes " + strings.Join(s.nodes[i], ", ")
}

// printNodes prints the nodes' standard output: below headings, which are
// comments where that is a file, or as one object.
func printNodes(c *cobra.Command, stdout *said) error {
	out := c.OutOrStdout()
	value := func(name string) string {
		if flag := c.Flags().Lookup(name); flag != nil {
			return flag.Value.String()
		}
		return ""
	}
	if value("json") == "true" && value("export") == "" {
		documents := map[string]json.RawMessage{}
		for i, text := range stdout.texts {
			for _, node := range stdout.nodes[i] {
				if json.Valid([]byte(text)) {
					documents[node] = json.RawMessage(text)
				}
			}
		}
		return printJSON(out, map[string]any{"schema": "cnibench/tune-nodes/1", "nodes": documents})
	}
	heading := "%s\n\n%s"
	if value("export") != "" {
		heading = "# %s\n%s"
	}
	for i, text := range stdout.texts {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprint(out, printable.Text(fmt.Sprintf(heading, stdout.by(i), text)))
	}
	return nil
}

// parted are what a node's program said beside its result, and why it failed;
// next is the next step where it was not said.
func parted(did kube.OnMachine, next string) (notes string, problem error) {
	const mark = "cnibench: " // of Main
	text := did.Stderr
	at := 0
	if !strings.HasPrefix(text, mark) {
		at = strings.Index(text, "\n"+mark) + 1
	}
	switch {
	case did.Err != nil:
		return text, fmt.Errorf("%w; %s", did.Err, next)
	case did.Code == exit.Done:
		return text, nil
	case !strings.HasPrefix(text[at:], mark):
		return text, fmt.Errorf("exit code %d", did.Code)
	}
	return text[:at], errors.New(strings.TrimSpace(strings.TrimPrefix(text[at:], mark)))
}

// worse is the worse of an exit code and a node's: what failed may be half
// done, what is refused was not begun.
func worse(code int, did kube.OnMachine) int {
	order := []int{exit.Done, exit.Unsupported, exit.WrongUsage, exit.Failed}
	other := did.Code
	if did.Err != nil || !slices.Contains(order, other) {
		other = exit.Failed
	}
	if slices.Index(order, other) > slices.Index(order, code) {
		return other
	}
	return code
}
