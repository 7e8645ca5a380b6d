package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/disk"
	"github.com/cnibench/cnibench/internal/mesh"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/text"
)

var meshFormats = []string{"text", "json", "html"}

func newMeshCmd() *cobra.Command {
	f := runFlags{Request: run.NewRequest()}
	var task run.MeshTask
	var format, output string
	asJSON := false
	c := &cobra.Command{
		Use:   "mesh",
		Short: "Which node, which link is slow? Every node against others, and who is to blame",
		Long: strings.TrimSpace(`
Measures every node against others, on the pods' network and on the nodes' own: round trips,
losses and packet sizes between all of them, and short bursts in a tournament. Names what is
slow: what a node sends or receives, one direction between two nodes, or between two zones.

What looks slow is measured again beside nodes that are sound, and only what an exact test of
these fresh figures confirms is named: at most one sound cluster in 20 has a wrong name. Three
nodes are the least. In a cluster a sender sends at most 200 Mbit/s, and nothing is left.
Exit codes: 0 nothing is slow; 4 a place is slow; 1, 2, 3 as everywhere.`),
		Example: `  cnibench mesh --arena kube --nodes worker-a,worker-b,worker-c
  cnibench mesh --arena kube --all --max-rate 1G --format html -o mesh.html
  cnibench mesh --arena lab --nodes 8 --contender flannel-vxlan`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if asJSON {
				format = "json"
			}
			if !slices.Contains(meshFormats, format) {
				return text.Unknown("format", format, meshFormats)
			}
			f.from(c)
			r, err := run.Mesh(c.Context(), &f.Request, task)
			if r == nil {
				return err
			}
			return errors.Join(writeMesh(c.OutOrStdout(), r, format, output), err)
		},
	}
	addOneNetwork(c, &f.Request)
	fl := c.Flags()
	fl.StringVar(&task.Contender, "contender", "", "lab: the contender whose network is measured (default flannel-vxlan)")
	fl.StringVar(&f.MaxRate, "max-rate", "", "the most that a node sends, e.g. 500M (default 200M in a cluster, no limit in the lab)")
	fl.BoolVar(&task.All, "all", false, "send bursts between every two nodes, not in four random matchings")
	fl.StringVar(&format, "format", meshFormats[0], "one of "+cmdutil.JoinOr(meshFormats))
	fl.StringVarP(&output, "output", "o", "", "write to this `file`")
	fl.BoolVar(&asJSON, "json", false, "print as JSON: --format json")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(meshFormats, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// writeMesh writes the report in that format to the file, or to out.
func writeMesh(out io.Writer, r *mesh.Report, format, file string) error {
	if file != "" {
		return disk.ReplaceFile(file, func(w io.Writer) error { return writeMesh(w, r, format, "") })
	}
	switch format {
	case "json":
		return cmdutil.PrintJSON(out, r)
	case "html":
		return r.WritePage(out)
	}
	_, err := fmt.Fprint(out, text.Safe(r.String()))
	return err
}
