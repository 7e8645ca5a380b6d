// Package install puts contenders on a scratch cluster and takes them off
// again: their recipes' steps in order, until pods on all nodes reach each
// other; then the steps in reverse, the nodes cleaned, and a comparison with
// what was there before as proof that nothing is left. It measures nothing,
// and touches no cluster that is not marked as scratch. Next: recipe.go for
// what a contender's recipe becomes, scratch.go for the refusals, nodes.go for
// the nodes, steps.go for the steps.
package install

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/nearest"
)

// Options is what the installer is told.
type Options struct {
	// Versions is the version set of the recipes: contender.VersionSets; empty
	// is the first. A contender without that set is unsupported.
	Versions string
	// Mirror is a folder with charts and manifests; empty downloads them.
	Mirror string
	// Scratch marks the cluster as scratch, as the label does.
	Scratch bool
	// Facts override what is found out of the cluster, by the names of
	// contender.Placeholders.
	Facts map[string]string
	// Patience is how long a contender may take until it works, and how long
	// until it has gone; 0 is 10 minutes.
	Patience time.Duration
	// Log says what goes on; nil is silent.
	Log func(format string, args ...any)
}

// Installer implements kube.Installer.
type Installer struct {
	o      Options
	source *source
	id     string // of this process in the journal
	// unfinished is the contender whose removal has failed.
	unfinished *contender.Contender
}

var _ kube.Installer = (*Installer)(nil)

// New makes an installer. Errors: *nearest.Error for an unknown version set,
// *kube.UsageError for a mirror that cannot be read.
func New(o Options) (*Installer, error) {
	if o.Versions == "" {
		o.Versions = contender.VersionSets()[0]
	}
	if o.Patience == 0 {
		o.Patience = 10 * time.Minute
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	set, err := nearest.Find("version set", o.Versions, contender.VersionSets(), func(s string) string { return s })
	if err != nil {
		return nil, err
	}
	for name := range o.Facts {
		if _, err := nearest.Find("fact", name, contender.Placeholders(), func(s string) string { return s }); err != nil {
			return nil, err
		}
	}
	o.Versions = set
	src, err := newSource(o.Mirror, o.Log)
	if err != nil {
		return nil, err
	}
	return &Installer{o: o, source: src, id: hex.EncodeToString(random(8))}, nil
}

// Supports is nil if the contender can be installed in the asked versions.
func (i *Installer) Supports(c *contender.Contender) error {
	_, err := i.version(c)
	return err
}

// Version is the version that Install puts on the cluster.
func (i *Installer) Version(c *contender.Contender) (string, error) {
	return i.version(c)
}

// Check is nil on a cluster that is marked as scratch and has no foreign
// workloads; it changes nothing. Install checks the same again. Errors:
// *arena.Unsupported.
func (i *Installer) Check(ctx context.Context, cl *kube.Cluster) error {
	return i.scratch(ctx, cl.Client)
}

// job is one contender on its way onto a cluster, or off it.
type job struct {
	*Installer
	cl      *kube.Cluster
	c       *contender.Contender
	version string
	facts   *facts
}

// Install puts the contender on the cluster. One whose removal failed before is
// taken off first; one of another process is not: it may still be measured.
// Errors: *arena.Unsupported where nothing was changed.
func (i *Installer) Install(ctx context.Context, cl *kube.Cluster, c *contender.Contender) error {
	j, err := i.job(cl, c)
	if err != nil {
		return err
	}
	if err := i.scratch(ctx, cl.Client); err != nil {
		return err
	}
	if err := i.finish(ctx, cl); err != nil {
		return err
	}
	if left, err := i.left(ctx, cl); err != nil {
		return err
	} else if left != nil {
		return unsupported("wait for the run that installed it, or if that has ended take it off with: cnibench clean --arena kube",
			"%s is installed on the cluster since %s", left.Contender, left.Since)
	}
	begin := time.Now()
	if err := j.begin(ctx); err != nil {
		// Nothing is changed yet but the installer's own namespace.
		return errors.Join(err, j.forget(context.WithoutCancel(ctx)))
	}
	if err := j.kubeProxy(ctx, false); err != nil {
		return fmt.Errorf("install %s %s: %w", c.ID, j.version, err)
	}
	for _, s := range c.Kube.StepsOf(i.o.Versions) {
		if err := j.do(ctx, s); err != nil {
			return fmt.Errorf("install %s %s: %w", c.ID, j.version, err)
		}
	}
	if err := j.works(ctx); err != nil {
		return fmt.Errorf("install %s %s: %w", c.ID, j.version, err)
	}
	i.o.Log("%s %s works after %v", c.ID, j.version, time.Since(begin).Round(time.Second))
	return nil
}

// begin looks at what is there, and writes it down if the recipe fits.
func (j *job) begin(ctx context.Context) error {
	before, err := j.survey(ctx)
	if err != nil {
		return err
	}
	if err := j.fits(before); err != nil {
		return err
	}
	if err := j.noKubeProxy(ctx, before); err != nil {
		return err
	}
	return j.write(ctx, before)
}

// Uninstall takes the contender off the cluster, cleans the nodes and
// compares with what was there before. An error lists what is left.
func (i *Installer) Uninstall(ctx context.Context, cl *kube.Cluster, c *contender.Contender) error {
	j, err := i.job(cl, c)
	if err != nil {
		return err
	}
	left, err := i.left(ctx, cl)
	if err != nil {
		return err
	}
	if left == nil || left.By != i.id {
		return nil // never begun, or another process's
	}
	err = j.remove(ctx, left)
	if i.unfinished = nil; err != nil {
		i.unfinished = c
	}
	return err
}

// finish tries once more to take off what could not be.
func (i *Installer) finish(ctx context.Context, cl *kube.Cluster) error {
	if i.unfinished == nil {
		return nil
	}
	i.o.Log("taking off %s once more", i.unfinished.ID)
	return i.Uninstall(ctx, cl, i.unfinished)
}

// Clean takes off what a crashed run left, and says what that was; "" if
// there was nothing. all is the catalogue.
func (i *Installer) Clean(ctx context.Context, cl *kube.Cluster, all []*contender.Contender) (string, error) {
	left, err := i.left(ctx, cl)
	if err != nil || left == nil {
		return "", err
	}
	c, err := contender.Find(all, left.Contender)
	if err != nil {
		return "", fmt.Errorf("the cluster has a contender installed that this version does not know: %w", err)
	}
	again := *i
	again.o.Versions = left.Versions
	j, err := again.job(cl, c)
	if err != nil {
		return "", err
	}
	return c.ID + " " + j.version, j.remove(ctx, left)
}

func (i *Installer) job(cl *kube.Cluster, c *contender.Contender) (*job, error) {
	version, err := i.version(c)
	if err != nil {
		return nil, err
	}
	return &job{i, cl, c, version, newFacts(cl.Client, version, i.o.Facts)}, nil
}

func (j *job) remove(ctx context.Context, left *journal) error {
	begin := time.Now()
	if err := j.takeOff(ctx, left); err != nil {
		return fmt.Errorf("uninstall %s %s: %w", j.c.ID, j.version, err)
	}
	j.o.Log("%s %s is gone after %v", j.c.ID, j.version, time.Since(begin).Round(time.Second))
	return nil
}

// takeOff goes on after errors as far as it can: the more is gone, the better.
func (j *job) takeOff(ctx context.Context, left *journal) error {
	if err := j.cordon(ctx, true); err != nil {
		return err
	}
	var failed []error
	// Pods first, while the plugin that detaches them is still there.
	failed = append(failed, j.emptyNodes(ctx))
	steps := j.c.Kube.StepsOf(j.o.Versions)
	for n := len(steps) - 1; n >= 0; n-- {
		if err := j.undo(ctx, steps[n]); err != nil {
			failed = append(failed, err)
		}
	}
	failed = append(failed, j.cleanObjects(ctx), j.kubeProxy(ctx, true), j.cleanNodes(ctx, left.Before))
	failed = append(failed, j.prove(ctx, left.Before), j.cordon(ctx, false))
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return j.forget(ctx)
}

// prove compares with what was there before. What is still on its way out
// gets a moment.
func (j *job) prove(ctx context.Context, before *findings) error {
	for try := 0; ; try++ {
		after, err := j.survey(ctx)
		if err != nil {
			return err
		}
		more := after.beyond(before)
		if len(more) == 0 {
			return nil
		}
		if try == 2 {
			return fmt.Errorf("left behind: %s", listing(more))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Second):
		}
	}
}

// unsupported is a refusal that changed nothing.
func unsupported(remedy, reason string, args ...any) error {
	return &arena.Unsupported{Reason: fmt.Sprintf(reason, args...), Remedy: remedy}
}
