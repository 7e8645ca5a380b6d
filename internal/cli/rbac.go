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
		Long: `Prints a ServiceAccount and a ClusterRole with just the verbs that --arena kube uses, and
a binding of the two, for kubectl apply. It contacts no cluster. With --namespace it prints
that namespace, a Role in it and the right to list nodes, which is all that run and check
mtu need with the same --namespace; check policy needs two namespaces.`,
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
	c.Flags().StringSliceVar(&k.Within, "namespace", nil, "grant rights in this `namespace` alone, instead of the whole cluster")
	c.Flags().StringVar(&k.Namespace, "account-namespace", run.DefaultNamespace, "existing `namespace` of the ServiceAccount, without --namespace")
	c.Flags().BoolVar(&k.Install, "install", false, "add the rights that --install needs, which are all rights in the cluster")
	return c
}
