package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/atomicfile"
	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/mesh"
	"github.com/cnibench/cnibench/internal/mesh/rundir"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/text"
)

var meshFormats = []string{"text", "json", "html"}

func newMeshCmd() *cobra.Command {
	f := runFlags{Request: run.NewRequest()}
	var task run.MeshTask
	var format, output string
	asJSON, plan, watches := false, false, false
	watching := run.Watching{}
	c := &cobra.Command{
		Use:   "mesh",
		Short: "Which node, which link is slow? Every node against others, and who is to blame",
		Long: strings.TrimSpace(`
Measures every node against others, on the pods' network and on the nodes' own: round trips,
losses and packet sizes between all of them, and short bursts in a tournament. Names what is
slow: what a node sends or receives, one direction between two nodes, or between two zones.

What looks slow is measured again beside nodes that are sound, and only what an exact test of
these fresh figures confirms is named: at most one sound cluster in 20 has a wrong name. Three
nodes are the least. In a cluster a sender sends at most 200 Mbit/s, and nothing is left there.
--plan says what would be sent.

--watch goes on in rounds of light probes until it is ended, and writes a line when a place turns
slow or recovers: at most one false alarm a week in a sound cluster. Nodes that join, leave or
restart are no alarm. --metrics-listen serves /metrics for Prometheus. The chart's watch.enabled
runs it in a cluster.

The figures are in a run directory, for resume, report, compare
and verify.
Exit codes: 0 nothing is slow; 4 a place is slow; 1, 2, 3 as everywhere.`),
		Example: `  cnibench mesh --arena kube --nodes 20 --plan
  cnibench mesh --arena kube --nodes pool=workers --max-time 3m
  cnibench mesh --arena kube --all --max-rate 1G --format html -o mesh.html
  cnibench mesh --arena lab --nodes 8 --contender flannel-vxlan
  cnibench mesh --arena kube --watch --every 5m --metrics-listen 9464`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if asJSON {
				format = "json"
			}
			if !slices.Contains(meshFormats, format) {
				return text.Unknown("format", format, meshFormats)
			}
			f.from(c)
			if watches {
				watching.JSON = format == "json"
				task.Watch = &watching
				if format == "html" || output != "" {
					return exit.Usage("--watch writes lines to standard output; leave --format html and --output out")
				}
			} else if name := firstGiven(f.Given, "every", "bandwidth", "metrics-listen", "probe-pods", "rounds"); name != "" {
				return exit.Usage("--%s: add --watch, or leave it out", name)
			}
			if plan {
				return run.MeshPlan(c.Context(), &f.Request, task, c.OutOrStdout())
			}
			if watches {
				return run.Watch(c.Context(), &f.Request, task, os.Stdout)
			}
			r, err := run.Mesh(c.Context(), &f.Request, task)
			if r == nil {
				return err
			}
			return errors.Join(writeMesh(c.OutOrStdout(), r, format, output), err)
		},
	}
	addOneNetwork(c, &f.Request)
	c.Flags().Lookup("nodes").Usage = "nodes: in a cluster all, a `number`, LABEL=VALUE or names, a,b (default all); in a lab their number (default 6)"
	fl := c.Flags()
	fl.StringVar(&task.Contender, "contender", "", "lab: the contender whose network is measured (default flannel-vxlan)")
	fl.StringVar(&f.MaxRate, "max-rate", "", "the most that a node sends, e.g. 500M (default 200M in a cluster, no limit in the lab)")
	fl.DurationVar(&f.MaxTime, "max-time", 0, "the most `time` for the first pass and, by estimate, for suspects: fewer partners and matchings (default: no limit)")
	fl.StringVar(&f.Out, "out", "", "run `directory` to write (default: cnibench-mesh-TIME)")
	fl.StringVar(&f.Resume, "resume", "", "continue the interrupted mesh in `DIR`; sealed figures are not measured again")
	fl.BoolVar(&plan, "plan", false, "print what would be sent, and send nothing")
	fl.BoolVar(&task.All, "all", false, "send bursts between every two nodes, not in four random matchings")
	fl.StringVar(&format, "format", meshFormats[0], "one of "+cmdutil.JoinOr(meshFormats))
	fl.StringVarP(&output, "output", "o", "", "write to this `file`")
	fl.BoolVar(&asJSON, "json", false, "print as JSON: --format json; with --watch a line for each event")
	fl.BoolVar(&watches, "watch", false, "watch: measure in rounds until ended, and say when a place turns slow or recovers")
	fl.DurationVar(&watching.Every, "every", 5*time.Minute, "watch: `time` of a round, 5s to 20m")
	fl.BoolVar(&watching.Bandwidth, "bandwidth", false, "watch: send bursts, too, in four matchings once an hour")
	fl.StringVar(&watching.Listen, "metrics-listen", "", "watch: serve /metrics at this `address`, HOST:PORT, or PORT of loopback (default: none)")
	fl.StringVar(&f.Probes, "probe-pods", "", "watch: in a cluster, `label=value` of running pods to probe from, those of a DaemonSet in --namespace; it makes none")
	fl.IntVar(&watching.Rounds, "rounds", 0, "watch: end after so many rounds (default: none)")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(meshFormats, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// firstGiven returns the first of the names that the user gave as a flag; "" if none.
func firstGiven(given map[string]bool, names ...string) string {
	for _, name := range names {
		if given[name] {
			return name
		}
	}
	return ""
}

// writeMesh writes the report in that format to the file, or to out.
func writeMesh(out io.Writer, r *mesh.Report, format, file string) error {
	if file != "" {
		return atomicfile.ReplaceFile(file, func(w io.Writer) error { return writeMesh(w, r, format, "") })
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

// reportMesh shows a mesh again. err is why it could not be read.
func reportMesh(out io.Writer, m *rundir.Mesh, err error, format, file string) error {
	if err != nil {
		return err
	}
	if !slices.Contains(meshFormats, format) {
		return exit.Usage("--format %s: a mesh is shown as %s", format, cmdutil.JoinOr(meshFormats))
	}
	return writeMesh(out, m.Report(), format, file)
}

// compareMeshes compares the run directories if they are two meshes; done is false if the first
// is none. With --fail-on, whatever its limit, places that got worse fail the gate.
func (f *compareFlags) compareMeshes(out io.Writer, dirs []string) (done bool, err error) {
	var reports []*mesh.Report
	for _, dir := range dirs {
		rec, err := result.Load(dir)
		if err != nil {
			return true, err
		}
		m, is, err := rundir.Read(rec)
		switch {
		case !is && len(reports) == 0:
			return false, nil
		case err != nil:
			return true, fmt.Errorf("%s: %w", dir, err)
		case !is || len(dirs) != 2:
			return true, exit.Usage("a mesh is compared with one other mesh")
		}
		reports = append(reports, m.Report())
	}
	change := mesh.Compare(reports[0], reports[1])
	write := func(w io.Writer) error {
		if f.format == "json" {
			return cmdutil.PrintJSON(w, change)
		}
		_, err := fmt.Fprint(w, text.Safe(change.String()))
		return err
	}
	switch {
	case f.format != "json" && f.format != "text":
		return true, exit.Usage("--format %s: meshes are compared as text or json", f.format)
	case f.output != "":
		err = atomicfile.ReplaceFile(f.output, write)
	default:
		err = write(out)
	}
	if err == nil && f.failOn != "" && len(change.Worse) > 0 {
		err = exit.With(exit.Gate, errors.New("gate failed: places of the mesh got worse, as listed above"))
	}
	return true, err
}
