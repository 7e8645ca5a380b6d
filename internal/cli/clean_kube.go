package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena/kube"
)

// cleanKube removes from the cluster what runs have left: a contender that one
// had installed, as the journal in the cluster says, and every run's namespaces.
func cleanKube(c *cobra.Command, f *cleanFlags) error {
	ctx, options := c.Context(), f.kube.options(nil)
	cluster, err := kube.Connect(ctx, options)
	if err != nil {
		return kubeError(err)
	}
	removed, err := kube.Clean(ctx, options)
	contender, installErr := f.uninstall(ctx, cluster)
	if contender != "" && installErr == nil {
		removed = append(removed, contender)
	}
	for _, what := range removed {
		fmt.Fprintf(c.OutOrStdout(), "removed %s\n", what)
	}
	if err = errors.Join(err, installErr); err == nil && len(removed) == 0 {
		fmt.Fprintln(c.OutOrStdout(), "nothing to clean")
	}
	return kubeError(err)
}

// uninstall takes a contender off that is still installed, and says which.
func (f *cleanFlags) uninstall(ctx context.Context, cluster *kube.Cluster) (string, error) {
	log := logger(os.Stderr)
	installer, err := f.kube.installer(func(format string, args ...any) { log.Info(fmt.Sprintf(format, args...)) })
	if err != nil {
		return "", err
	}
	cat, err := loadCatalogue()
	if err != nil {
		return "", err
	}
	return installer.Clean(ctx, cluster, cat.contenders)
}
