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

// kubeKind returns the kind of a cluster.
func kubeKind() Kind {
	return Kind{
		Name: Kube, makes: []string{Kube},
		flags: slices.Concat(kubeFixed, kubeFree, kubePlace), settings: slices.Concat(kubeFixed, kubeFree), fixed: kubeFixed,
		recorded: (*Request).kubeRecorded,
		check:    func(*Request) error { return nil },
		place:    func(f *Request) (Place, error) { return NewKube(f) },
		Places: func(f *Request, _ []string) ([]Place, error) {
			if f.Given["mtu"] {
				return nil, exit.Usage("--mtu: a cluster is checked with the MTU that it has; leave it out")
			}
			g, err := NewKube(f)
			return []Place{g}, err
		},
	}
}

// KubePlace is a cluster. Nothing is asked of it before Open.
type KubePlace struct {
	Options   kube.Options
	lineRate  unit.BitRate
	mtu       int
	this      *contender.Contender // the cluster's own pod network, which Open fills in; nil with --install
	installer *install.Installer   // nil without --install
}

// NewKube returns the cluster that the request names.
func NewKube(f *Request) (*KubePlace, error) {
	nodes, err := NodeNames(f.Nodes, f.Given["nodes"])
	if err != nil {
		return nil, err
	}
	g := &KubePlace{Options: f.Cluster.Options(nodes)}
	if g.lineRate, g.mtu, err = f.link(); err != nil {
		return nil, err
	}
	g.Options.Log, g.Options.OnNodes = logInfo, f.OnNodes
	if !f.Cluster.Install {
		for _, flag := range []string{"scratch", "mirror", "versions", "accept-unpinned"} {
			if f.Given[flag] {
				return nil, exit.Usage("--%s: says how contenders are installed; give --install, too, or leave it out", flag)
			}
		}
		g.this = &contender.Contender{ID: kube.ThisClusterID}
		return g, nil
	}
	if len(f.Cluster.Within) > 0 {
		return nil, exit.Usage("--namespace: what --install does needs rights of the whole cluster; leave one of the two out")
	}
	if g.installer, err = f.Cluster.Installer(g.Options.Log); err != nil {
		return nil, err
	}
	g.Options.Install = g.installer
	return g, nil
}

func (g *KubePlace) Lead(ctx context.Context, j *Job) error {
	return g.Inside(ctx, j.Run)
}

func (g *KubePlace) Inside(ctx context.Context, use func(context.Context) error) error {
	ctx, stop := UntilEnded(ctx)
	defer stop()
	defer context.AfterFunc(ctx, func() {
		stop() // the next signal ends the program
		fmt.Fprintln(os.Stderr, "cnibench: removing what is in the cluster; a second signal leaves that to `cnibench clean --arena kube`")
	})()
	return use(ctx)
}

func (g *KubePlace) Open(ctx context.Context) (*Opened, error) {
	a, err := kube.New(ctx, g.Options)
	if err != nil {
		return nil, KubeError(err)
	}
	if g.this != nil {
		*g.this = *a.ThisCluster() // not a new pointer: the catalogue has this one
	} else if err := g.installer.Check(ctx, a.Cluster()); err != nil {
		return nil, err
	}
	return &Opened{Arena: a, Exe: kube.Program, Kernel: a.Kernel(), LineRate: g.lineRate, MTU: g.mtu}, nil
}

func (g *KubePlace) Own() []*contender.Contender {
	if g.this == nil {
		return nil
	}
	return []*contender.Contender{g.this}
}

// Candidates implements Place: with --install all contenders, else the cluster's own
// pod network and host.
func (g *KubePlace) Candidates(all []*contender.Contender) []*contender.Contender {
	if g.this == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(c *contender.Contender) bool { return c != g.this && c.ID != kube.HostID })
}

func (g *KubePlace) Named(ids []string) ([]string, error) {
	if g.this == nil && slices.Contains(ids, kube.ThisClusterID) {
		return nil, exit.Usage("contender %s: --install replaces the pod network that there is; leave one of the two out", kube.ThisClusterID)
	}
	return ids, nil
}

func (g *KubePlace) Equip(programs []string) error {
	g.Options.Programs = programs
	return nil
}

func (g *KubePlace) Describe(c *contender.Contender) result.ContenderInfo {
	info := result.ContenderInfo{ID: c.ID, Product: c.Product, Version: c.Version, Summary: c.Summary, Overhead: c.Datapath.Overhead, SHA256: c.SHA256}
	var parts []string
	for _, part := range []string{c.Datapath.Attach, c.Datapath.Transport, c.Datapath.Services} {
		if part != "" && part != "none" {
			parts = append(parts, part)
		}
	}
	info.Datapath = strings.Join(parts, " × ")
	if g.installer != nil {
		if version, err := g.installer.Version(c); err == nil {
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
