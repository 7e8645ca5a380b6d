// Package install puts contenders on a scratch cluster and takes them off
// again: their recipes' steps in order, until pods on all nodes reach each
// other; then the steps in reverse, the nodes cleaned, and a comparison with
// what was there before as proof that nothing is left. It measures nothing,
// and touches no cluster that is not marked as scratch. Next: recipe.go for
// what a contender's recipe becomes, scratch.go for the refusals, nodes.go for
// the nodes, step.go for the steps.
package install

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	// Image and PullPolicy are those of the pods on nodes; empty: the cluster's
	// Options. Clean wants an Image.
	Image, PullPolicy string
	// AcceptUnpinned installs charts and manifests without a known digest, too.
	AcceptUnpinned bool
	// Digests is a file that remembers the digests of such charts and manifests;
	// empty remembers nothing.
	Digests string
	// Log says what goes on; nil is silent.
	Log func(format string, args ...any)
}

// Installer implements kube.Installer.
type Installer struct {
	o      Options
	source *source
	id     string // of this process in the journal
	// begun is what this process has put on a cluster last.
	begun *contender.Contender
	// older are the pods that were there before it.
	older map[types.UID]bool
	// open makes a pod of this program on a node; tests replace it.
	open func(ctx context.Context, cl *kube.Cluster, nodeName string, privileged bool) (worker, error)
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
	src.acceptUnpinned, src.digests = o.AcceptUnpinned, o.Digests
	return &Installer{o: o, source: src, id: hex.EncodeToString(random(8)), open: openWorker}, nil
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
	*objects
	c       *contender.Contender
	version string
	facts   *facts
	// before is what was there, once that is known: it stays.
	before *findings
	// steps are what the recipe's steps make, once their files were read.
	steps []*stepRecord
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
	if err := i.vacate(ctx, cl); err != nil {
		return err
	}
	begin := time.Now()
	i.begun, i.older = c, map[types.UID]bool{}
	pods, err := allPods(ctx, cl.Client)
	if err != nil {
		return err
	}
	for _, p := range pods {
		i.older[p.UID] = true
	}
	if err := j.claim(ctx); err != nil {
		return err
	}
	if err := j.begin(ctx); err != nil {
		// Nothing is changed yet but the installer's own namespace.
		return errors.Join(err, j.forget(context.WithoutCancel(ctx)))
	}
	if err := j.kubeProxy(ctx, false); err != nil {
		return fmt.Errorf("install %s %s: %w", c.ID, j.version, err)
	}
	for _, s := range j.stepsOf() {
		if err := s.do(ctx, j); err != nil {
			return fmt.Errorf("install %s %s: %w", c.ID, j.version, err)
		}
	}
	if err := j.works(ctx); err != nil {
		return fmt.Errorf("install %s %s: %w", c.ID, j.version, err)
	}
	i.o.Log("%s %s works after %v", c.ID, j.version, time.Since(begin).Round(time.Second))
	return nil
}

// vacate is nil if nothing is installed. What this process has put there and
// could not take off is tried once more.
func (i *Installer) vacate(ctx context.Context, cl *kube.Cluster) error {
	left, err := i.left(ctx, cl)
	switch {
	case err != nil || left == nil:
		return err
	case left.By != i.id:
		return occupied(left)
	}
	i.o.Log("taking off %s once more", left.Contender)
	return i.Uninstall(ctx, cl, i.begun)
}

// begin looks at what is there, and writes it down if the recipe fits and all
// its files are at hand.
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
	if err := j.gather(ctx); err != nil {
		return fmt.Errorf("install %s %s: nothing was changed: %w", j.c.ID, j.version, err)
	}
	j.before = before
	return j.write(ctx)
}

// Uninstall takes the contender off the cluster, cleans the nodes and
// compares with what was there before. An error lists what is left.
func (i *Installer) Uninstall(ctx context.Context, cl *kube.Cluster, c *contender.Contender) error {
	left, err := i.left(ctx, cl)
	if err != nil {
		return err
	}
	if left == nil || left.By != i.id || left.Contender != c.ID {
		return nil // never begun, or another process's
	}
	j, err := i.recall(cl, c, left)
	if err != nil {
		return err
	}
	return j.remove(ctx, left)
}

// Clean takes off what a crashed run left, and says what that was; "" if there
// was nothing. all is the catalogue. The run's versions and facts are in its
// journal; Options.Facts and PullPolicy go before those. Whoever can write into
// the journal's namespace can write the journal: so Clean wants the cluster's
// mark, and its pods run the image that Options name now. Errors:
// *arena.Unsupported where nothing was changed.
func (i *Installer) Clean(ctx context.Context, cl *kube.Cluster, all []*contender.Contender) (string, error) {
	left, err := i.left(ctx, cl)
	if apierrors.IsForbidden(err) {
		return "", nil // who may not read it has installed nothing
	}
	if err != nil {
		return "", err
	}
	if left == nil {
		return i.cleanBare(ctx, cl)
	}
	c, err := contender.Find(all, left.Contender)
	if err != nil {
		return "", fmt.Errorf("the cluster has a contender installed that this version does not know: %w", err)
	}
	if err := i.mayClean(ctx, cl, left); err != nil {
		return "", err
	}
	j, err := i.recall(cl, c, left)
	if err != nil {
		return "", err
	}
	what := c.ID + " " + j.version
	if left.Before == nil {
		what = "namespace " + ownNamespace
	}
	return what, j.remove(ctx, left)
}

// bareLook is how long clean looks at the installer's namespace before it takes the
// namespace for one whose process died before it made the journal. It reads no clock of
// another machine.
const bareLook = time.Minute

// cleanBare removes the installer's namespace where it has no journal: nothing was
// installed.
func (i *Installer) cleanBare(ctx context.Context, cl *kube.Cluster) (string, error) {
	found, err := i.bare(ctx, cl)
	if err != nil || found == nil {
		return "", err
	}
	i.o.Log("looking for %v whether an installation begins in namespace %s", bareLook, ownNamespace)
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(bareLook):
	}
	still, err := i.bare(ctx, cl)
	if err != nil || still == nil || still.UID != found.UID {
		return "", err
	}
	left, err := i.left(ctx, cl)
	if err != nil || left != nil {
		return "", err // somebody installs
	}
	own := &objects{cl: cl, patience: i.o.Patience}
	return "namespace " + ownNamespace, own.deleteObject(ctx, object("v1", "Namespace", "", ownNamespace))
}

// bare is the installer's namespace; nil: there is none that this program made.
func (i *Installer) bare(ctx context.Context, cl *kube.Cluster) (ns *corev1.Namespace, err error) {
	err = persist(ctx, i.o.Patience, "read namespace "+ownNamespace, func(ctx context.Context) (err error) {
		ns, err = cl.Client.CoreV1().Namespaces().Get(ctx, ownNamespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || err == nil && requireOurs(ns) != nil { // who may not read it has made none
			ns, err = nil, nil
		}
		return err
	})
	return ns, err
}

// mayClean refuses to follow a journal on a cluster that is not marked as
// scratch, in a namespace of somebody else, or with an image that only the
// journal names.
func (i *Installer) mayClean(ctx context.Context, cl *kube.Cluster, left *journal) error {
	ns, err := cl.Client.CoreV1().Namespaces().Get(ctx, ownNamespace, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read namespace %s: %w", ownNamespace, err)
	}
	if err := requireOurs(ns); err != nil {
		return err
	}
	if left.Before == nil {
		return nil // nothing was installed: only that namespace goes
	}
	if err := i.requireMark(ctx, cl.Client, "taking "+left.Contender+" off deletes pods and cleans the nodes as root"); err != nil {
		return err
	}
	if i.o.Image == "" {
		return unsupported("name the image of cnibench that may run as root on the nodes: --image IMAGE", "the nodes are cleaned by privileged pods, and their image is not taken from the journal, which names %s", left.Image)
	}
	return nil
}

func (i *Installer) job(cl *kube.Cluster, c *contender.Contender) (*job, error) {
	version, err := i.version(c)
	if err != nil {
		return nil, err
	}
	own := *cl // whose options are those of the pods on nodes
	own.Options.Image, own.Options.PullPolicy = cmp.Or(i.o.Image, cl.Options.Image), cmp.Or(i.o.PullPolicy, cl.Options.PullPolicy)
	return &job{
		Installer: i, objects: &objects{cl: &own, owner: c.ID, patience: i.o.Patience},
		c: c, version: version, facts: newFacts(cl.Client, version, i.o.Facts),
	}, nil
}

// recall is the job that an installation was, by its journal.
func (i *Installer) recall(cl *kube.Cluster, c *contender.Contender, left *journal) (*job, error) {
	again := *i
	again.o.Versions = left.Versions
	again.o.PullPolicy = cmp.Or(i.o.PullPolicy, left.PullPolicy)
	again.o.Facts = map[string]string{}
	maps.Copy(again.o.Facts, left.Facts)
	maps.Copy(again.o.Facts, i.o.Facts)
	j, err := again.job(cl, c)
	if err != nil {
		return nil, err
	}
	j.version, j.steps = j.facts.known["version"], left.Steps
	if j.before = left.Before; j.before != nil {
		j.facts.uplinks = uplinksOf(j.before.Nodes)
	}
	return j, nil
}

func (j *job) remove(ctx context.Context, left *journal) error {
	if left.Before == nil {
		return j.forget(ctx)
	}
	begin := time.Now()
	if err := j.takeOff(ctx, left); err != nil {
		return fmt.Errorf("uninstall %s %s: %w", j.c.ID, j.version, err)
	}
	j.o.Log("%s %s is gone after %v", j.c.ID, j.version, time.Since(begin).Round(time.Second))
	return nil
}

// takeOff goes on after errors as far as it can: the more is gone, the better.
func (j *job) takeOff(ctx context.Context, left *journal) error {
	if err := requireNoBarePods(ctx, j.cl.Client); err != nil {
		return err
	}
	if err := j.cordon(ctx, true); err != nil {
		return err
	}
	var failed []error
	// Pods first, while the plugin that detaches them is still there.
	failed = append(failed, j.emptyNodes(ctx), j.farewells(ctx))
	for _, s := range slices.Backward(j.steps) {
		failed = append(failed, s.undo(ctx, j))
	}
	failed = append(failed, j.cleanObjects(ctx), j.kubeProxy(ctx, true), j.cleanNodes(ctx, left.Before))
	failed = append(failed, j.prove(ctx, left.Before), j.cordon(ctx, false))
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return j.forget(ctx)
}

// prove compares with what was there before. What is still on its way out gets a
// moment, and is cleaned again.
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
		// A program that was on its way out may have written again after the cleaning.
		if err := j.cleanNodes(ctx, before); err != nil {
			return err
		}
	}
}

// unsupported is a refusal that changed nothing.
func unsupported(remedy, reason string, args ...any) error {
	return &arena.Unsupported{Reason: fmt.Sprintf(reason, args...), Remedy: remedy}
}
