package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/run"
)

// clusters returns a request for each of the two contexts that --context lists. The run
// directories of two are OUT-1 and OUT-2, since a context's name may hold what no file name
// can. It is wrong usage to list more than two, or to give two what only one cluster has.
func (f *runFlags) clusters() ([]*runFlags, error) {
	contexts := strings.Split(f.Cluster.Context, ",")
	for i := range contexts {
		contexts[i] = strings.TrimSpace(contexts[i])
	}
	switch {
	case len(contexts) > 2 || contexts[0] == "" || contexts[1] == "":
		return nil, exit.Usage("--context %s: name one context, or two to compare, as in --context a,b", f.Cluster.Context)
	case f.Resume != "":
		return nil, exit.Usage("--resume goes on with a run in one cluster; give that cluster's --context alone")
	case f.Given["nodes"]:
		return nil, exit.Usage("--nodes names the nodes of one cluster; leave it out, or run for each --context by itself and compare the two: cnibench compare OLD NEW --vs-baseline --force")
	case !f.Kind().Cluster:
		return nil, exit.Usage("--context is for clusters; add --arena kube")
	}
	if f.Out == "" {
		f.Out = run.NewDir(time.Now())
	}
	var all []*runFlags
	for i, context := range contexts {
		one := *f
		one.Cluster.Context, one.Out = context, fmt.Sprintf("%s-%d", strings.TrimRight(f.Out, "/"), i+1)
		if err := one.Cluster.CheckContext(); err != nil {
			return nil, err
		}
		all = append(all, &one)
	}
	return all, nil
}

// runContexts measures one cluster after the other, and compares the two by their ratios to
// the nodes' own network, which both have.
func (f *runFlags) runContexts(c *cobra.Command) error {
	clusters, err := f.clusters()
	if err != nil {
		return err
	}
	jobs, err := f.prepare(c, clusters, len(clusters))
	if err != nil || f.plan {
		return err
	}
	for i, job := range jobs {
		fmt.Fprintf(c.ErrOrStderr(), "cluster %d of %d, context %s: %s\n", i+1, len(jobs), clusters[i].Cluster.Context, clusters[i].Out)
		switch err := job.Lead(c.Context(), c.OutOrStdout()); {
		case err != nil && i > 0:
			return fmt.Errorf("%w\nThe first cluster's figures are in %s. Measure the second alone with --context %s --out DIR, then: cnibench compare %s DIR --vs-baseline --force",
				err, clusters[0].Out, clusters[i].Cluster.Context, clusters[0].Out)
		case err != nil:
			return err
		}
	}
	first, second := clusters[0], clusters[1]
	fmt.Fprintf(c.OutOrStdout(), "\nContext %s (old) against context %s (new), each by its ratios to its own %s; again with: cnibench compare %s %s --vs-baseline --force\n\n",
		first.Cluster.Context, second.Cluster.Context, first.Baseline, first.Out, second.Out)
	compared := compareFlags{vsBaseline: true, force: true, confidence: "95%", format: string(report.Text)}
	return compared.run(c, []string{first.Out}, []string{second.Out})
}

// contextHelp describes --context of a run, which takes two contexts.
func contextHelp(c *cobra.Command) {
	c.Flags().Lookup("context").Usage = "kube: `context` of the kubeconfig (default: the current one); run takes two, a,b, measures both clusters and compares them"
}
