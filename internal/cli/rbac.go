package cli

import (
	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/run"
)

func newRBACCmd() *cobra.Command {
	var k run.Cluster
	c := &cobra.Command{
		Use:   "rbac",
		Short: "Print the rights that a run in a cluster needs, as Kubernetes objects",
		Long: `Prints a ServiceAccount and a ClusterRole with just the verbs that --arena kube
uses, and binds them. Nothing is asked of a cluster and nothing is changed: read
it, then give it to kubectl. With --namespace it prints that namespace, a Role in it and
the right to list nodes: that is all that run and check mtu need with the same
--namespace; check policy wants two.`,
		Example: `  kubectl create namespace cnibench
  cnibench rbac | kubectl apply -f -
  cnibench rbac --namespace measure,measure-far | kubectl apply -f -`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := k.RBAC()
			if err != nil {
				return err
			}
			_, err = c.OutOrStdout().Write(text)
			return err
		},
	}
	c.Flags().StringSliceVar(&k.Within, "namespace", nil, "rights in this `namespace` alone, instead of the whole cluster")
	c.Flags().StringVar(&k.Namespace, "account-namespace", run.DefaultNamespace, "where the ServiceAccount is without --namespace; it must exist")
	c.Flags().BoolVar(&k.Install, "install", false, "with the rights that --install takes, which are all that there are")
	return c
}
