package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/arena/kube/install"
	"github.com/cnibench/cnibench/internal/console"
	"github.com/cnibench/cnibench/internal/run"
)

// cleanKube removes from the cluster what runs have left: a contender that one
// had installed, as the journal in the cluster says, and every run's namespaces.
func cleanKube(c *cobra.Command, f *cleanFlags) error {
	ctx, options := c.Context(), f.kube.Options(nil)
	cluster, err := kube.Connect(ctx, options)
	if err != nil {
		return run.KubeError(err)
	}
	removed, err := kube.Clean(ctx, options)
	contender, installErr := f.uninstall(c, cluster)
	if contender != "" && installErr == nil {
		removed = append(removed, contender)
	}
	for _, what := range removed {
		fmt.Fprintf(c.OutOrStdout(), "removed %s\n", what)
	}
	if err = errors.Join(err, installErr); err == nil && len(removed) == 0 {
		fmt.Fprintln(c.OutOrStdout(), "nothing to clean")
	}
	return run.KubeError(err)
}

// uninstall takes a contender off that is still installed, and says which. What
// the user does not say, the run's journal does.
func (f *cleanFlags) uninstall(c *cobra.Command, cluster *kube.Cluster) (string, error) {
	log := console.Logger(os.Stderr)
	o := install.Options{
		Facts: f.kube.Facts, Scratch: f.kube.Scratch,
		Log: func(format string, args ...any) { log.Info(fmt.Sprintf(format, args...)) },
	}
	if c.Flags().Changed("image") {
		o.Image = f.kube.Image
	}
	if c.Flags().Changed("pull-policy") {
		o.PullPolicy = f.kube.PullPolicy
	}
	installer, err := install.New(o)
	if err != nil {
		return "", err
	}
	cat, err := run.LoadCatalogue()
	if err != nil {
		return "", err
	}
	return installer.Clean(c.Context(), cluster, cat.Contenders)
}
