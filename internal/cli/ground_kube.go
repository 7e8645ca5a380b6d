package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/arena/kube/install"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// kubeRow is a cluster.
func kubeRow() arenaRow {
	return arenaRow{
		name: arenaKube, makes: []string{arenaKube},
		flags: slices.Concat(kubeFixed, kubeFree, kubePlace), settings: slices.Concat(kubeFixed, kubeFree), fixed: kubeFixed,
		recorded: (*runFlags).kubeRecorded,
		check:    func(*runFlags) error { return nil },
		ground:   func(f *runFlags) (ground, error) { return newKubeGround(f) },
		grounds: func(f *checkFlags) ([]ground, error) {
			if f.given["mtu"] {
				return nil, usage("--mtu: a cluster is checked with the MTU that it has; leave it out")
			}
			g, err := newKubeGround(&f.runFlags)
			return []ground{g}, err
		},
		probe: probeKube,
		clean: cleanKube,
	}
}

// kubeGround is a cluster; nothing asks it before open.
type kubeGround struct {
	options  kube.Options
	lineRate unit.BitRate
	mtu      int
	// Either the contender that is there, of which open finds out more, or
	// what installs others.
	this      *contender.Contender
	installer *install.Installer
}

func newKubeGround(f *runFlags) (*kubeGround, error) {
	nodes, err := nodeNames(f.nodes, f.given["nodes"])
	if err != nil {
		return nil, err
	}
	g := &kubeGround{options: f.kube.options(nodes)}
	if g.lineRate, g.mtu, err = f.link(); err != nil {
		return nil, err
	}
	log := logger(os.Stderr)
	g.options.Log = func(format string, args ...any) { log.Info(fmt.Sprintf(format, args...)) }
	if !f.kube.install {
		for _, flag := range []string{"scratch", "mirror", "versions"} {
			if f.given[flag] {
				return nil, usage("--%s: says how contenders are installed; give --install, too, or leave it out", flag)
			}
		}
		g.this = &contender.Contender{ID: kube.ThisClusterID}
		return g, nil
	}
	if g.installer, err = f.kube.installer(g.options.Log); err != nil {
		return nil, err
	}
	g.options.Install = g.installer
	return g, nil
}

func (g *kubeGround) lead(c *cobra.Command, j *job) error {
	return g.inside(c, func(ctx context.Context) error { return j.run(ctx, c) })
}

func (g *kubeGround) inside(c *cobra.Command, use func(context.Context) error) error {
	ctx, stop := signal.NotifyContext(c.Context(), lab.EndSignals()...)
	defer stop()
	defer context.AfterFunc(ctx, func() {
		stop() // the next signal ends the program
		fmt.Fprintln(c.ErrOrStderr(), "cnibench: removing what is in the cluster; a second signal leaves that to `cnibench clean --arena kube`")
	})()
	return use(ctx)
}

func (g *kubeGround) open(ctx context.Context) (*opened, error) {
	a, err := kube.New(ctx, g.options)
	if err != nil {
		return nil, kubeError(err)
	}
	if g.this != nil {
		*g.this = *a.ThisCluster() // the catalogue has the pointer
	} else if err := g.installer.Check(ctx, a.Cluster()); err != nil {
		return nil, err
	}
	return &opened{arena: a, exe: kube.Program, kernel: a.Kernel(), lineRate: g.lineRate, mtu: g.mtu}, nil
}

func (g *kubeGround) own() []*contender.Contender {
	if g.this == nil {
		return nil
	}
	return []*contender.Contender{g.this}
}

// candidates are all where they can be installed, else what there is.
func (g *kubeGround) candidates(all []*contender.Contender) []*contender.Contender {
	if g.this == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(c *contender.Contender) bool { return c != g.this && c.ID != kube.HostID })
}

func (g *kubeGround) named(ids []string) ([]string, error) {
	if g.this == nil && slices.Contains(ids, kube.ThisClusterID) {
		return nil, usage("contender %s: --install replaces the pod network that there is; leave one of the two out", kube.ThisClusterID)
	}
	return ids, nil
}

func (g *kubeGround) equip(programs []host.Program) error {
	g.options.Programs = programs
	return nil
}

func (g *kubeGround) describe(c *contender.Contender) result.ContenderInfo {
	info := result.ContenderInfo{ID: c.ID, Product: c.Product, Version: c.Version, Summary: c.Summary, Overhead: c.Datapath.Overhead}
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

// kubeError gives errors of the arena kube their exit code.
func kubeError(err error) error {
	var wrong *kube.UsageError
	if errors.As(err, &wrong) {
		return &exitError{exitUsage, err}
	}
	return err
}
