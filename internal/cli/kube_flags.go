package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/arena/kube/install"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/printable"
	"github.com/cnibench/cnibench/internal/unit"
)

// defaultImage is what `make image` builds.
const defaultImage = "cnibench:dev"

// defaultNamespace begins the names of namespaces that runs make.
const defaultNamespace = "cnibench"

// kubeFlags are the flags of the arena kube.
type kubeFlags struct {
	kubeconfig, context string

	image, pullPolicy, namespace string
	cpu, memory, service         string
	tolerations                  []string
	privileged                   bool

	install, scratch bool
	mirror, versions string
	facts            map[string]string
}

// The flags of the arena: what a plan remembers and a resumed run can't change,
// what it remembers and can, and where the cluster is, whom it names, and what
// the user agreed to, which no plan remembers: runs are published, and somebody
// else's may be resumed.
var (
	kubeFixed = []string{"mtu", "line-rate", "image", "pod-cpu", "pod-memory", "service-kind", "install", "versions"}
	kubeFree  = []string{"pull-policy", "tolerations", "namespace-prefix"}
	kubePlace = []string{"kubeconfig", "context", "nodes", "privileged", "scratch", "mirror", "fact"}
)

// The values of flags that have few.
var (
	pullPolicies = []string{"Always", "IfNotPresent", "Never"}
	serviceKinds = []string{kube.ClusterIP, kube.NodePort, kube.Headless}
)

func (k *kubeFlags) addConnection(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&k.kubeconfig, "kubeconfig", "", "kube: `file` with the cluster's address and credentials (default: $KUBECONFIG, ~/.kube/config, else the pod's own account)")
	fl.StringVar(&k.context, "context", "", "kube: `context` of the kubeconfig (default: its current one)")
	_ = c.MarkFlagFilename("kubeconfig")
}

// addProgram adds what every pod runs.
func (k *kubeFlags) addProgram(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&k.image, "image", defaultImage, "kube: `image` with this program and what the steps run; make image builds one")
	fl.StringVar(&k.pullPolicy, "pull-policy", "", "kube: "+strings.Join(pullPolicies, ", ")+" (default: the cluster's)")
	fixed(c, "pull-policy", pullPolicies)
}

// addImage adds what every pod needs.
func (k *kubeFlags) addImage(c *cobra.Command) {
	k.addProgram(c)
	c.Flags().StringSliceVar(&k.tolerations, "tolerations", nil, "kube: taints that the pods stand, as `key[=value]:effect`, or all")
}

// addPods adds what the pods of a measurement are.
func (k *kubeFlags) addPods(c *cobra.Command) {
	k.addImage(c)
	fl := c.Flags()
	fl.StringVar(&k.namespace, "namespace-prefix", defaultNamespace, "kube: beginning of the name of the namespace that is made")
	fl.StringVar(&k.cpu, "pod-cpu", "", "kube: CPU of each pod, requested and at most, e.g. 2 (default: neither)")
	fl.StringVar(&k.memory, "pod-memory", "", "kube: memory of each pod, requested and at most, e.g. 1Gi (default: neither)")
	fl.StringVar(&k.service, "service-kind", kube.ClusterIP, "kube: Services of the path service: "+strings.Join(serviceKinds, ", "))
	fl.BoolVar(&k.privileged, "privileged", false, "kube: allow one privileged pod a node, which watches its interfaces (check encryption)")
	fixed(c, "service-kind", serviceKinds)
}

func (k *kubeFlags) addInstall(c *cobra.Command) {
	fl := c.Flags()
	fl.BoolVar(&k.install, "install", false, "kube: install each contender, measure it, and take it off again; only on a cluster for that purpose, see --scratch")
	fl.BoolVar(&k.scratch, "scratch", false, "kube: this cluster is there to be thrown away, which --install wants to know; a label on it says so as well")
	fl.StringVar(&k.versions, "versions", contender.VersionSets()[0], "kube: versions that --install installs: those of the 2024 study, or the latest that are known")
	fl.StringToStringVar(&k.facts, "fact", nil, "kube: what --install can't find out of the cluster, as `name=value`: "+strings.Join(contender.Placeholders()[1:], ", "))
	fixed(c, "versions", contender.VersionSets())
	fl.StringVar(&k.mirror, "mirror", "", "kube: `folder` with charts and manifests that are taken instead of fetched")
	_ = c.MarkFlagDirname("mirror")
}

func fixed(c *cobra.Command, flag string, values []string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// addNodes adds --nodes, which every arena reads in its own way.
func addNodes(c *cobra.Command, value *string) {
	c.Flags().StringVar(value, "nodes", "2", "machines of the cluster: of a lab their `number`; of a cluster the names of two or more, a,b (default: two that are ready)")
}

// nodeNames are the names that --nodes gives, or none where it was left alone.
func nodeNames(value string, given bool) ([]string, error) {
	if !given {
		return nil, nil
	}
	var names []string
	for _, name := range strings.Split(value, ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if _, err := strconv.Atoi(value); err == nil || len(names) == 0 {
		return nil, usage("--nodes %s: a cluster's nodes are named, as in --nodes a,b; `kubectl get nodes` lists them", value)
	}
	return names, nil
}

// options are the flags as the arena takes them.
func (k *kubeFlags) options(nodes []string) kube.Options {
	return kube.Options{
		Kubeconfig: k.kubeconfig, Context: k.context, Nodes: nodes, Image: k.image, PullPolicy: k.pullPolicy, Namespace: k.namespace,
		Tolerations: k.tolerations, CPU: k.cpu, Memory: k.memory, Service: k.service, Privileged: k.privileged,
	}
}

// installer puts contenders on the cluster, as the flags say.
func (k *kubeFlags) installer(log func(string, ...any)) (*install.Installer, error) {
	i, err := install.New(install.Options{Versions: k.versions, Mirror: k.mirror, Scratch: k.scratch, Facts: k.facts, Log: log})
	return i, kubeError(err)
}

// again are the flags that no plan remembers, for the command line that goes on
// with the run.
func (f *runFlags) again() []string {
	if f.arena != arenaKube {
		return nil
	}
	k := &f.kube
	values := map[string]string{
		"kubeconfig": k.kubeconfig, "context": k.context, "nodes": f.nodes, "mirror": k.mirror,
		"privileged": fmt.Sprint(k.privileged), "scratch": fmt.Sprint(k.scratch), "fact": pairs(k.facts),
	}
	var args []string
	for _, flag := range kubePlace {
		if f.given[flag] {
			args = append(args, "--"+flag+"="+printable.Word(values[flag]))
		}
	}
	return args
}

// kubeRecorded is what the plan remembers of the arena's flags.
func (f *runFlags) kubeRecorded() map[string]string {
	k := &f.kube
	s := map[string]string{
		"image": k.image, "pull-policy": k.pullPolicy, "namespace-prefix": k.namespace, "tolerations": strings.Join(k.tolerations, ","),
		"pod-cpu": k.cpu, "pod-memory": k.memory, "service-kind": k.service, "line-rate": f.line,
	}
	if f.given["mtu"] {
		s["mtu"] = f.mtu
	}
	if k.install {
		s["install"], s["versions"] = fmt.Sprint(k.install), k.versions
	}
	defaults := map[string]string{"namespace-prefix": defaultNamespace, "service-kind": kube.ClusterIP}
	maps.DeleteFunc(s, func(flag, value string) bool { return value == "" || value == defaults[flag] })
	return s
}

// link is what the flags say of the nodes' links.
func (f *runFlags) link() (rate unit.BitRate, mtu int, err error) {
	if f.line != "" {
		if rate, err = unit.ParseBitRate(f.line); err != nil {
			return 0, 0, usage("--line-rate: %v", err)
		}
	}
	size := unit.Bytes(0)
	if f.mtu != "" {
		if size, err = unit.ParseBytes(f.mtu); err != nil {
			return 0, 0, usage("--mtu: %v", err)
		}
	}
	return rate, int(size), nil
}

// pairs writes out a flag of names and values as it is given.
func pairs(values map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, name+"="+values[name])
	}
	return strings.Join(all, ",")
}
