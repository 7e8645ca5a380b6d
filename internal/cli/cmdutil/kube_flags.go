package cmdutil

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/run"
)

// defaultImage is what `make image` builds.
const defaultImage = "cnibench:dev"

var PullPolicies = []string{"Always", "IfNotPresent", "Never"}

func AddConnection(c *cobra.Command, k *run.Cluster) {
	fl := c.Flags()
	fl.StringVar(&k.Kubeconfig, "kubeconfig", "", "kube: `file` with the cluster's address and credentials (default: $KUBECONFIG, ~/.kube/config, else the pod's own account)")
	fl.StringVar(&k.Context, "context", "", "kube: `context` of the kubeconfig (default: its current one)")
	_ = c.MarkFlagFilename("kubeconfig")
}

// AddProgram adds what every pod runs.
func AddProgram(c *cobra.Command, k *run.Cluster) {
	fl := c.Flags()
	fl.StringVar(&k.Image, "image", defaultImage, "kube: `image` with this program and what the steps run; make image builds one")
	fl.StringVar(&k.PullPolicy, "pull-policy", "", "kube: "+strings.Join(PullPolicies, ", ")+" (default: the cluster's)")
	Fixed(c, "pull-policy", PullPolicies)
}

// AddImage adds what every pod needs.
func AddImage(c *cobra.Command, k *run.Cluster) {
	AddProgram(c, k)
	c.Flags().StringSliceVar(&k.Tolerations, "tolerations", nil, "kube: taints that the pods tolerate, as `key[=value]:effect`, or all")
}

// AddPods adds what the pods of a measurement are.
func AddPods(c *cobra.Command, k *run.Cluster) {
	AddImage(c, k)
	fl := c.Flags()
	AddWithin(c, k)
	fl.StringVar(&k.Namespace, "namespace-prefix", run.DefaultNamespace, "kube: beginning of the name of the namespace that is made")
	fl.StringVar(&k.CPU, "pod-cpu", "", "kube: CPU of each pod, requested and at most, e.g. 2 (default: neither)")
	fl.StringVar(&k.Memory, "pod-memory", "", "kube: memory of each pod, requested and at most, e.g. 1Gi (default: neither)")
	fl.StringVar(&k.Service, "service-kind", run.DefaultServiceKind, "kube: Services of the path service: "+strings.Join(run.ServiceKinds, ", "))
	fl.BoolVar(&k.Privileged, "privileged", false, "kube: allow one privileged pod a node, which watches its interfaces (check encryption)")
	Fixed(c, "service-kind", run.ServiceKinds)
}

// AddWithin adds the namespaces that an administrator made.
func AddWithin(c *cobra.Command, k *run.Cluster) {
	c.Flags().StringSliceVar(&k.Within, "namespace", nil, "kube: use this `namespace`, which an administrator made, and no right outside but to list nodes; check policy wants two, a,b (default: a new one)")
}

// AddScratch adds the user's word that a cluster may lose its pod network.
func AddScratch(c *cobra.Command, k *run.Cluster) {
	c.Flags().BoolVar(&k.Scratch, "scratch", false, "kube: this cluster may lose its pod network; --install and clean require it, or a label on the cluster that says the same")
}

func AddInstall(c *cobra.Command, k *run.Cluster) {
	fl := c.Flags()
	fl.BoolVar(&k.Install, "install", false, "kube: install each contender, measure it, and take it off again; only on a cluster for that purpose, see --scratch")
	AddScratch(c, k)
	fl.StringVar(&k.Versions, "versions", contender.VersionSets()[0], "kube: versions that --install installs: those of the 2024 study, or the latest that are known")
	fl.StringToStringVar(&k.Facts, "fact", nil, "kube: what --install can't find out of the cluster, as `name=value`: "+strings.Join(contender.Placeholders()[1:], ", "))
	Fixed(c, "versions", contender.VersionSets())
	fl.StringVar(&k.Mirror, "mirror", "", "kube: `folder` with charts and manifests that are taken instead of fetched")
	_ = c.MarkFlagDirname("mirror")
	fl.BoolVar(&k.AcceptUnpinned, "accept-unpinned", false, "kube: install charts and manifests whose digest no recipe knows, too; a later run refuses them if they were replaced")
}

func Fixed(c *cobra.Command, flag string, values []string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// AddNodes adds --nodes, which every arena reads in its own way.
func AddNodes(c *cobra.Command, value *string) {
	c.Flags().StringVar(value, "nodes", "2", "the machines: of a lab their `number`, of a cluster the names of two or more, a,b (default: two that are ready)")
}
