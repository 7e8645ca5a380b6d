package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/arena/kube/install"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// clusterVenue is a cluster. Nothing is asked of it before Open.
type clusterVenue struct {
	request   *Request
	Options   kube.Options
	lineRate  unit.BitRate
	mtu       int
	this      *contender.Contender // the cluster's own pod network, which Open fills in; nil with --install
	installer *install.Installer   // nil without --install
}

// newCluster returns the cluster that the request names.
func newCluster(f *Request) (*clusterVenue, error) {
	nodes, err := NodeNames(f.Nodes, f.Given["nodes"] && !f.EveryNode)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	k := &clusterVenue{request: f, Options: f.Cluster.Options(nodes)}
	if k.lineRate, k.mtu, err = f.link(); err != nil {
		return nil, err
	}
	k.Options.Log, k.Options.OnNodes, k.Options.Guard = logInfo, f.OnNodes, []string{exe, GuardCommand}
	k.Options.NetAdmin = f.ForSelfTest && f.Cluster.Privileged
	if !f.Cluster.Install {
		for _, flag := range []string{"scratch", "mirror", "versions", "accept-unpinned"} {
			if f.Given[flag] {
				return nil, exit.Usage("--%s: says how contenders are installed; give --install, too, or leave it out", flag)
			}
		}
		k.this = &contender.Contender{ID: kube.ThisClusterID}
		return k, nil
	}
	if len(f.Cluster.Within) > 0 {
		return nil, exit.Usage("--namespace: what --install does needs rights of the whole cluster; leave one of the two out")
	}
	if k.installer, err = f.Cluster.Installer(k.Options.Log); err != nil {
		return nil, err
	}
	k.Options.Install = k.installer
	return k, nil
}

// pairs returns this venue once for each pair of nodes, so that every node is asked.
func (k *clusterVenue) pairs(ctx context.Context) (venues []Venue, err error) {
	pairs, err := kube.NodePairs(ctx, k.Options)
	if err != nil {
		return nil, KubeError(err)
	}
	for _, nodes := range pairs {
		one := *k
		one.Options.Nodes = nodes
		venues = append(venues, &one)
	}
	return venues, nil
}

func (k *clusterVenue) start(ctx context.Context, files ...*os.File) (*Worker, error) {
	ctx, stop := untilEndedInCluster(ctx)
	return newWorker(ctx, &Inside{Venue: k, Files: files}, stop), nil
}

// untilEndedInCluster is UntilEnded with a message of what the first signal does.
func untilEndedInCluster(ctx context.Context) (context.Context, func()) {
	ctx, stop := UntilEnded(ctx)
	silence := context.AfterFunc(ctx, func() {
		stop() // the next signal ends the program
		fmt.Fprintln(os.Stderr, "cnibench: removing what is in the cluster; a second signal leaves that to `cnibench clean --arena kube`")
	})
	return ctx, func() { silence(); stop() }
}

func (k *clusterVenue) Traits() Traits {
	return Traits{Choice: k.this == nil, CleanUp: "cnibench clean --arena " + Kube}
}

func (k *clusterVenue) Open(ctx context.Context) (*Opened, error) {
	a, err := kube.New(ctx, k.Options)
	if err != nil {
		return nil, KubeError(err)
	}
	if k.this != nil {
		*k.this = *a.ThisCluster() // not a new pointer: the catalogue has this one
	} else if err := k.installer.Check(ctx, a.Cluster()); err != nil {
		return nil, err
	}
	return &Opened{Arena: a, Exe: kube.Program, Kernel: a.Kernel(), LineRate: k.lineRate, MTU: k.mtu}, nil
}

func (k *clusterVenue) Own() []*contender.Contender {
	if k.this == nil {
		return nil
	}
	return []*contender.Contender{k.this}
}

// Candidates implements Place: with --install all contenders, else the cluster's own
// pod network and host.
func (k *clusterVenue) Candidates(all []*contender.Contender) []*contender.Contender {
	if k.this == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(c *contender.Contender) bool { return c != k.this && c.ID != kube.HostID })
}

func (k *clusterVenue) CheckNames(ids []string) ([]string, error) {
	if k.this == nil && slices.Contains(ids, kube.ThisClusterID) {
		return nil, exit.Usage("contender %s: --install replaces the pod network that there is; leave one of the two out", kube.ThisClusterID)
	}
	return ids, nil
}

func (k *clusterVenue) Equip(programs []string) error {
	k.Options.Programs = programs
	return nil
}

func (k *clusterVenue) Describe(c *contender.Contender) result.ContenderInfo {
	info := result.ContenderInfo{ID: c.ID, Product: c.Product, Version: c.Version, Summary: c.Summary, Overhead: c.Datapath.Overhead, SHA256: c.SHA256}
	var parts []string
	for _, part := range []string{c.Datapath.Attach, c.Datapath.Transport, c.Datapath.Services} {
		if part != "" && part != "none" {
			parts = append(parts, part)
		}
	}
	info.Datapath = strings.Join(parts, " × ")
	if k.installer != nil {
		if version, err := k.installer.Version(c); err == nil {
			info.Version = version
		}
	}
	return info
}

// KubeError gives errors of the arena kube their exit code.
func KubeError(err error) error {
	var wrong *kube.UsageError
	if errors.As(err, &wrong) {
		return exit.With(exit.WrongUsage, err)
	}
	return err
}

func (k *clusterVenue) Underlays([]string) ([]Venue, error) {
	if k.request.Given["mtu"] {
		return nil, exit.Usage("--mtu: a cluster is checked with the MTU that it has; leave it out")
	}
	return []Venue{k}, nil
}

func (k *clusterVenue) Footprint() string {
	flags := &k.request.Cluster
	privilege := "none is privileged; the baseline's use the node's network"
	if flags.Privileged {
		privilege = "those in the node's network are privileged, as --privileged allows"
	}
	namespaces := "one for each contender"
	if flags.Install || len(flags.Within) > 0 {
		namespaces = "one"
	}
	text := fmt.Sprintf(`In the cluster, for the time of the run:
  Namespace    %s, %s-…, with Pod Security level "privileged", which host networking needs
  Pods         in it, on each of two nodes (%s): one in the pod network, one in the node's; %s
  Image        %s no token mounted; they end by themselves half a minute after a run was killed
  Lease        one, named cnibench, renewed every 5 s: cnibench clean leaves a run alone that renews it
  Services     one %s with its EndpointSlice where a step's path is service, and as many more as --services says
  Ports        while a step runs: TCP and UDP from 5201 and 19765, TCP 7000, 8080, 8443, 2121, 2222, 21200 to 21207
  Rights       cnibench rbac prints them; cnibench clean --arena kube removes what a killed run has left
`, namespaces, flags.Namespace, nodesText(k.request), privilege, imageText(flags), flags.Service)
	if flags.Install {
		text += "  Pod network  REMOVED AND REPLACED, once for each contender and round: --install is for scratch clusters\n"
	}
	return text
}

// imageText says what the pods run.
func imageText(k *Cluster) string {
	if k.Image == "" {
		return "one with a shell that the nodes have or can pull; cnibench itself is carried into the pods' memory (3 MB each);"
	}
	return k.Image + ","
}

func nodesText(f *Request) string {
	switch {
	case f.Given["nodes"]:
		return f.Nodes
	case f.Given["pod"]:
		return "that of pod " + f.Cluster.Pod + ", and another"
	case f.Given["node-label"]:
		return "the first two that are ready and have the label " + f.Cluster.NodeLabel
	}
	return "the first two that are ready"
}
