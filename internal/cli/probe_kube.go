package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/run"
)

// probeCluster is what a cluster can run.
type probeCluster struct {
	Schema      string             `json:"schema"`
	Environment result.Environment `json:"environment"` // what a run there would keep of it
	Contenders  []probeContender   `json:"contenders"`
}

// probeKube asks the cluster what a run would ask first.
func probeKube(c *cobra.Command, f *probeFlags) error {
	g, err := run.NewKube(&run.Request{Given: f.given, Nodes: f.nodes, Cluster: f.kube})
	if err != nil {
		return err
	}
	return g.Inside(c.Context(), func(ctx context.Context) error {
		p, err := probeCatalogue(ctx, g)
		if err != nil {
			return err
		}
		if f.asJSON {
			return printJSON(c.OutOrStdout(), p)
		}
		p.print(c.OutOrStdout())
		return nil
	})
}

// probeCatalogue asks the cluster of every contender.
func probeCatalogue(ctx context.Context, g *run.KubePlace) (*probeCluster, error) {
	at, err := g.Open(ctx)
	if err != nil {
		return nil, err
	}
	cat, err := run.LoadCatalogue(g.Own()...)
	if err != nil {
		return nil, err
	}
	p := &probeCluster{Schema: "cnibench/probe-kube/1", Environment: at.Arena.Environment()}
	for _, x := range g.Candidates(cat.Contenders) {
		row := probeContender{ID: x.ID, OK: true}
		if err := at.Arena.Supports(ctx, x); err != nil {
			u := arena.AsUnsupported(err)
			if u == nil {
				return nil, err
			}
			row.OK, row.Reason, row.Remedy = false, u.Reason, u.Remedy
		}
		p.Contenders = append(p.Contenders, row)
	}
	return p, nil
}

func (p *probeCluster) print(w io.Writer) {
	var rows [][]string
	for _, key := range slices.Sorted(maps.Keys(p.Environment)) {
		rows = append(rows, []string{key, p.Environment[key]})
	}
	printTable(w, []string{"What", "Found"}, rows)
	fmt.Fprintln(w)
	printContenders(w, p.Contenders)
}
