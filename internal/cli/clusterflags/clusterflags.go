// Package clusterflags has the flags of a cluster, which several commands share. They fill
// run.Cluster. Next: AddConnection, below.
package clusterflags

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/run"
)

var PullPolicies = []string{"Always", "IfNotPresent", "Never"}

func AddConnection(c *cobra.Command, k *run.Cluster) {
	fl := c.Flags()
	fl.StringVar(&k.Kubeconfig, "kubeconfig", "", "kube: `file` with the cluster's address and credentials (default: $KUBECONFIG, ~/.kube/config, else the pod's own account)")
	fl.StringVar(&k.Context, "context", "", "kube: `context` of the kubeconfig (default: its current one)")
	fl.DurationVar(&k.RequestTimeout, "request-timeout", 0, "kube: how long one request to the API server may take (default: 30s, 20s where it is tried again)")
	_ = c.MarkFlagFilename("kubeconfig")
	_ = c.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return k.Contexts(), cobra.ShellCompDirectiveNoFileComp
	})
}

// AddProgram adds what every pod runs.
func AddProgram(c *cobra.Command, k *run.Cluster) {
	fl := c.Flags()
	fl.StringVar(&k.Image, "image", "", "kube: `image` of the pods: any with a shell, this program is carried into them; make image builds one with the programs that suites such as throughput run (default: one that the nodes have, or can pull)")
	fl.StringVar(&k.PullPolicy, "pull-policy", "", "kube: "+strings.Join(PullPolicies, ", ")+" (default: the cluster's)")
	cmdutil.CompleteWith(c, "pull-policy", PullPolicies)
}

// AddImage adds what every pod needs.
func AddImage(c *cobra.Command, k *run.Cluster) {
	AddProgram(c, k)
	c.Flags().StringSliceVar(&k.Tolerations, "tolerations", nil, "kube: taints that the pods tolerate, as `key[=value]:effect`; or all")
}

// AddPods adds what the pods of a measurement are.
func AddPods(c *cobra.Command, k *run.Cluster) {
	AddImage(c, k)
	fl := c.Flags()
	AddWithin(c, k)
	fl.StringVar(&k.Namespace, "namespace-prefix", run.DefaultNamespace, "kube: prefix of the name of the new namespace")
	fl.StringVar(&k.NodeLabel, "node-label", "", "kube: choose among the nodes with this label, as `key=value`")
	fl.StringVar(&k.Pod, "pod", "", "kube: measure from the node of this pod, `namespace/name`")
	fl.StringVar(&k.CPU, "pod-cpu", "", "kube: CPU request and limit of each pod, the baseline's too, e.g. 2 (default: none)")
	fl.StringVar(&k.Memory, "pod-memory", "", "kube: memory request and limit of each pod, e.g. 1Gi (default: none)")
	fl.StringVar(&k.Service, "service-kind", run.DefaultServiceKind, "kube: kind of the Services that steps of the path service use: "+strings.Join(run.ServiceKinds, ", "))
	fl.BoolVar(&k.Privileged, "privileged", false, "kube: allow one privileged pod on each node, which watches the node's interfaces (check encryption)")
	cmdutil.CompleteWith(c, "service-kind", run.ServiceKinds)
	Complete(c, "pod", "pods")
}

// AddWithin adds the namespaces that an administrator made.
func AddWithin(c *cobra.Command, k *run.Cluster) {
	c.Flags().StringSliceVarP(&k.Within, "namespace", "n", nil, "kube: use this `namespace`, which an administrator made, and which needs no rights outside it except to list nodes; check policy needs two, a,b (default: a new one)")
	Complete(c, "namespace", "namespaces")
}

// AddScratch adds the user's word that a cluster may lose its pod network.
func AddScratch(c *cobra.Command, k *run.Cluster) {
	c.Flags().BoolVar(&k.Scratch, "scratch", false, "kube: confirm that this cluster may lose its pod network; --install and clean require this flag or the label cnibench.io/scratch=true on kube-system")
}

func AddInstall(c *cobra.Command, k *run.Cluster) {
	fl := c.Flags()
	fl.BoolVar(&k.Install, "install", false, "kube: install each contender, measure it, and uninstall it; only on a scratch cluster, see --scratch")
	AddScratch(c, k)
	fl.StringVar(&k.Versions, "versions", contender.VersionSets()[0], "kube: versions that --install installs: 2024 (those of the 2024 study), latest (the latest known) or modules (what a test bed builds)")
	fl.StringToStringVar(&k.Facts, "fact", nil, "kube: a fact that --install cannot read from the cluster, as `name=value`: "+strings.Join(contender.Placeholders()[1:], ", "))
	cmdutil.CompleteWith(c, "versions", contender.VersionSets())
	fl.StringVar(&k.Mirror, "mirror", "", "kube: `folder` with charts and manifests to use instead of downloading them")
	_ = c.MarkFlagDirname("mirror")
	fl.BoolVar(&k.AcceptUnpinned, "accept-unpinned", false, "kube: also install charts and manifests without a known digest; a later run refuses them if they were replaced")
}

// AddNodes adds --nodes, which every arena reads in its own way.
func AddNodes(c *cobra.Command, value *string) {
	c.Flags().StringVar(value, "nodes", "2", "nodes: their `number` in a lab, or the names of two or more in a cluster, a,b (default: 2; in a cluster two that are ready)")
	c.Flags().Lookup("nodes").DefValue = "" // the text has it
	Complete(c, "nodes", "nodes")
}

// Complete completes the flag, which may be a list, by the names of the cluster's objects of
// that resource. It asks a cluster only where the command line means one.
func Complete(c *cobra.Command, flag, resource string) {
	_ = c.RegisterFlagCompletionFunc(flag, func(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		value := func(name string) string {
			if f := c.Flag(name); f != nil {
				return f.Value.String()
			}
			return ""
		}
		if c.Flag("kubeconfig") == nil || c.Flag("arena") != nil && value("arena") != "kube" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		k := run.Cluster{Kubeconfig: value("kubeconfig"), Context: value("context")}
		before := typed[:strings.LastIndex(typed, ",")+1]
		var list []string
		for _, name := range k.Names(c.Context(), resource) {
			if !slices.Contains(strings.Split(before, ","), name) {
				list = append(list, before+name)
			}
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	})
}
