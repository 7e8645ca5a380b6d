package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/run"
)

// probeKube asks the cluster what a run would ask first.
func probeKube(c *cobra.Command, f *probeFlags) error {
	p, err := run.ProbeCluster(c.Context(), &run.Request{Arena: run.Kube, Given: f.given, Nodes: f.nodes, Cluster: f.kube})
	if err != nil {
		return err
	}
	if f.asJSON {
		return cmdutil.PrintJSON(c.OutOrStdout(), p)
	}
	printClusterProbe(c.OutOrStdout(), p)
	return nil
}

func printClusterProbe(w io.Writer, p *run.ClusterProbe) {
	var rows [][]string
	for _, key := range slices.Sorted(maps.Keys(p.Environment)) {
		rows = append(rows, []string{key, p.Environment[key]})
	}
	cmdutil.PrintTable(w, []string{"What", "Found"}, rows)
	fmt.Fprintln(w)
	printContenders(w, p.Contenders)
}
