package inside

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/tune"
)

// TuneHere returns the command that tune bench starts inside an endpoint's namespaces or on
// a node. It reads a request from standard input and writes the answer to standard output.
func TuneHere() *cobra.Command {
	node, back, by := false, false, ""
	c := &cobra.Command{
		Use:    "here",
		Short:  "Set what this network namespace has of its own (started by tune bench)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			req, err := tune.ReadRequest(c.InOrStdin())
			if err != nil {
				return exit.Usage("%v", err)
			}
			set := setNamespace
			if node {
				set = func(ctx context.Context, req tune.Request) (tune.Answer, error) { return visitNode(ctx, req, by, back) }
			}
			a, err := set(c.Context(), req)
			if err != nil {
				return err
			}
			return json.NewEncoder(c.OutOrStdout()).Encode(a)
		},
	}
	c.Flags().BoolVar(&node, "node", false, "set what the machine has, through the journal")
	c.Flags().StringVar(&by, "by", "", "with --node: the `name` of the bench, which the journal notes")
	c.Flags().BoolVar(&back, "take-back", false, "with --node: take back what the bench has set, and nothing else")
	return c
}

func setNamespace(ctx context.Context, req tune.Request) (tune.Answer, error) {
	m, err := tune.ThisNamespace(req.WholeMachine)
	if err != nil {
		return tune.Answer{}, err
	}
	return tune.SetNamespace(ctx, m, req)
}

// visitNode applies the request to this machine for the bench of that name, or takes back what
// that bench has set.
func visitNode(ctx context.Context, req tune.Request, by string, back bool) (a tune.Answer, err error) {
	m, err := tune.LocalMachine()
	if err != nil {
		return a, err
	}
	dir, err := tune.StateDir()
	if err != nil {
		return a, err
	}
	j, err := tune.OpenJournal(dir, m.BootID())
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if j.By = by; back {
		return a, tune.RevertBy(ctx, m, j, by)
	}
	return tune.SetMachine(ctx, m, j, req)
}
