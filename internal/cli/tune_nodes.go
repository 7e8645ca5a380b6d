package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/clusterflags"
	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/cli/tunecmd"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/text"
)

// clusterNodes is tunecmd.Nodes: what the flags of the one command that runs say.
type clusterNodes struct {
	nodes string // their names
	kube  run.Cluster
}

// AddFlags implements tunecmd.Nodes.
func (n *clusterNodes) AddFlags(c *cobra.Command) {
	clusterflags.AddConnection(c, &n.kube)
	clusterflags.AddProgram(c, &n.kube)
	c.Flags().StringVar(&n.nodes, "nodes", "", "kube: names of `nodes`, a,b (default: all that are ready)")
	c.Flags().BoolVar(&n.kube.Privileged, "privileged", false, "kube: allow one privileged pod a node for the time of this command; it may do there what root may")
}

// Run implements tunecmd.Nodes.
func (n *clusterNodes) Run(c *cobra.Command, args []string, next string, compare tunecmd.Compare) error {
	request := &run.Request{Given: cmdutil.GivenFlags(c), Nodes: n.nodes, Cluster: n.kube}
	return run.OnNodes(c.Context(), request, args, next, func(answers []run.NodeAnswer) error {
		return showNodes(c, answers, next, compare)
	})
}

// showNodes prints what the nodes said, as compare makes it. Its error names those that
// failed, with the worst of their exit codes.
func showNodes(c *cobra.Command, all []run.NodeAnswer, next string, compare tunecmd.Compare) error {
	var stdout, notes, problems said
	each := map[string]string{}
	for _, did := range all {
		each[did.Node] = did.Stdout
	}
	together := tunecmd.Compared{Each: each}
	if compare != nil {
		together = compare(each)
	}
	code := exit.Done
	for _, did := range all {
		note, problem := splitAnswer(did, next)
		stdout.add(did.Node, together.Each[did.Node])
		notes.add(did.Node, note)
		if problem != nil {
			problems.add(did.Node, problem.Error())
			code = worse(code, did)
		}
	}
	for i, note := range notes.texts {
		for line := range strings.Lines(note) {
			fmt.Fprintln(c.ErrOrStderr(), text.SafeLine(notes.by(i)+": "+strings.TrimRight(line, "\n")))
		}
	}
	if err := printNodes(c, &stdout, together); err != nil || code == exit.Done {
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
func printNodes(c *cobra.Command, stdout *said, together tunecmd.Compared) error {
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
		object := map[string]any{"schema": "cnibench/tune-nodes/1", "nodes": documents}
		maps.Copy(object, together.Members)
		return cmdutil.PrintJSON(out, object)
	}
	fmt.Fprint(out, text.Safe(together.Together))
	heading := "%s\n\n%s"
	if value("export") != "" {
		heading = "# %s\n%s"
	}
	for i, printed := range stdout.texts {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprint(out, text.Safe(fmt.Sprintf(heading, stdout.by(i), printed)))
	}
	return nil
}

// splitAnswer are what a node's program said beside its result, and why it failed;
// next is the next step where it was not said.
func splitAnswer(did run.NodeAnswer, next string) (notes string, problem error) {
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
func worse(code int, did run.NodeAnswer) int {
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
