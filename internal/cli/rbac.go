package cli

import (
	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena/kube"
)

func newRBACCmd() *cobra.Command {
	var k kubeFlags
	c := &cobra.Command{
		Use:   "rbac",
		Short: "Print the rights that a run in a cluster needs, as Kubernetes objects",
		Long: `Prints a ServiceAccount and a ClusterRole with just the verbs that --arena kube
uses with these flags, and binds them. Nothing is asked of a cluster and nothing
is changed: read it, then give it to kubectl.`,
		Example: `  cnibench rbac | kubectl apply -f -
  cnibench rbac --privileged --service-kind nodeport`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			options := k.options(nil)
			if k.install {
				installer, err := k.installer(nil)
				if err != nil {
					return err
				}
				options.Install = installer
			}
			text, err := kube.RBAC(options)
			if err != nil {
				return err
			}
			_, err = c.OutOrStdout().Write(text)
			return err
		},
	}
	k.addConnection(c)
	k.addPods(c)
	k.addInstall(c)
	return c
}
