// Package install installs contenders on a scratch cluster and uninstalls them. To
// install, it does the steps of the contender's recipe in order, and waits until pods on
// all nodes reach each other. To uninstall, it undoes the steps in reverse, cleans the
// nodes, and compares the cluster with its state before the installation. It measures
// nothing, and changes no cluster that is not marked as scratch. Next: recipe.go for a
// recipe's version, scratch.go for the refusals, nodes.go for the nodes, step.go for the
// steps.
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
	"github.com/cnibench/cnibench/internal/text"
)

// Options are the settings of the installer.
type Options struct {
	// Versions is the version set of the recipes: contender.VersionSets; empty
	// is the first. A contender without that set is unsupported.
	Versions string
	// Mirror is a folder with charts and manifests; empty downloads them.
	Mirror string
	// Scratch marks the cluster as scratch, as ScratchLabel does.
	Scratch bool
	// Facts override facts found in the cluster. Their names are those of
	// contender.Placeholders.
	Facts map[string]string
	// Patience limits how long a contender may take until it works, and until it is
	// removed; 0 is 10 minutes.
	Patience time.Duration
	// Image and PullPolicy are for the pods on nodes; empty: those of the cluster's
	// Options.
	Image, PullPolicy string
	// AcceptUnpinned installs charts and manifests without a known digest, too.
	AcceptUnpinned bool
	// Digests is a file that remembers the digests of such charts and manifests;
	// empty remembers nothing.
	Digests string
	// Log, if not nil, is called with messages on the progress.
	Log func(format string, args ...any)
}

// Installer implements kube.Installer.
type Installer struct {
	o      Options
	source *source
	id     string // of this process in the journal
	// installed is the contender that this process installed last, or tried to install.
	installed *contender.Contender
	// olderPods are the pods that existed before that installation.
	olderPods map[types.UID]bool
	// open makes a pod of this program on a node; tests replace it.
	open func(ctx context.Context, cl *kube.Cluster, nodeName string, privileged bool) (worker, error)
}

var _ kube.Installer = (*Installer)(nil)

// New makes an installer. Errors: *text.UnknownError for an unknown version set,
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
	set, err := text.Find("version set", o.Versions, contender.VersionSets(), func(s string) string { return s })
	if err != nil {
		return nil, err
	}
	for name := range o.Facts {
		if _, err := text.Find("fact", name, contender.Placeholders(), func(s string) string { return s }); err != nil {
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

// Supports implements kube.Installer.
func (i *Installer) Supports(c *contender.Contender) error {
	_, err := i.Version(c)
	return err
}

// job is the installation or removal of one contender.
type job struct {
	*Installer
	*objects
	c       *contender.Contender
	version string
	facts   *facts
	// before is the state before the installation; nil until that is known.
	before *findings
	// steps name what the recipe's steps make; set once the steps' files were read.
	steps []*stepRecord
}

// Install implements kube.Installer. If the removal of an earlier contender failed,
// Install removes that contender first, unless another process has installed it: that
// process may still measure it. The error is an *arena.Unsupported if nothing was changed.
func (i *Installer) Install(ctx context.Context, cl *kube.Cluster, c *contender.Contender) error {
	j, err := i.job(cl, c)
	if err != nil {
		return err
	}
	if err := i.Check(ctx, cl); err != nil {
		return err
	}
	if err := i.removeExisting(ctx, cl); err != nil {
		return err
	}
	begin := time.Now()
	i.installed, i.olderPods = c, map[types.UID]bool{}
	pods, err := allPods(ctx, cl.Client)
	if err != nil {
		return err
	}
	for _, p := range pods {
		i.olderPods[p.UID] = true
	}
	if err := j.lock(ctx); err != nil {
		return err
	}
	if err := j.begin(ctx); err != nil {
		// So far only the installer's own namespace was made.
		return errors.Join(err, j.removeNamespace(context.WithoutCancel(ctx)))
	}
	if err := j.switchKubeProxy(ctx, false); err != nil {
		return fmt.Errorf("install %s %s: %w", c.ID, j.version, err)
	}
	for _, s := range j.stepsOf() {
		if err := s.do(ctx, j); err != nil {
			return fmt.Errorf("install %s %s: %w", c.ID, j.version, err)
		}
	}
	if err := j.awaitWorking(ctx); err != nil {
		return fmt.Errorf("install %s %s: %w", c.ID, j.version, err)
	}
	i.o.Log("%s %s works after %v", c.ID, j.version, time.Since(begin).Round(time.Second))
	return nil
}

// removeExisting returns an error if a contender is installed. Before that, it tries once more to
// uninstall a contender that this process could not uninstall.
func (i *Installer) removeExisting(ctx context.Context, cl *kube.Cluster) error {
	left, err := i.loadJournal(ctx, cl)
	switch {
	case err != nil || left == nil:
		return err
	case left.By != i.id:
		return errOccupied(left)
	}
	i.o.Log("uninstalling %s once more", left.Contender)
	return i.Uninstall(ctx, cl, i.installed)
}

// begin surveys the cluster, checks that the recipe fits, reads all its files, and writes
// the journal.
func (j *job) begin(ctx context.Context) error {
	before, err := j.survey(ctx)
	if err != nil {
		return err
	}
	if err := j.checkNodes(before); err != nil {
		return err
	}
	if err := j.checkKubeProxy(ctx, before); err != nil {
		return err
	}
	if err := j.gather(ctx); err != nil {
		return fmt.Errorf("install %s %s: nothing was changed: %w", j.c.ID, j.version, err)
	}
	j.before = before
	return j.write(ctx)
}

// Uninstall implements kube.Installer. The error lists what is left.
func (i *Installer) Uninstall(ctx context.Context, cl *kube.Cluster, c *contender.Contender) error {
	left, err := i.loadJournal(ctx, cl)
	if err != nil {
		return err
	}
	if left == nil || left.By != i.id || left.Contender != c.ID {
		return nil // never begun, or installed by another process
	}
	j, err := i.fromJournal(cl, c, left)
	if err != nil {
		return err
	}
	return j.remove(ctx, left)
}

// Clean uninstalls a contender that a crashed run left, and returns its name; "" if there
// is none. all is the catalogue. Versions, facts and pull policy are those of the run's
// journal, unless Options give facts and pull policy. Other users of the cluster may be
// able to write the journal. Clean therefore needs the cluster's mark as scratch, and its
// pods run the image of Options, or one of a known publisher, and not the journal's. The error is an *arena.Unsupported
// if nothing was changed.
func (i *Installer) Clean(ctx context.Context, cl *kube.Cluster, all []*contender.Contender) (string, error) {
	left, err := i.loadJournal(ctx, cl)
	if apierrors.IsForbidden(err) {
		return "", nil // a user who may not read the journal has installed nothing
	}
	if err != nil {
		return "", err
	}
	if left == nil {
		return i.cleanEmpty(ctx, cl)
	}
	c, err := contender.Find(all, left.Contender)
	if err != nil {
		if c, err = left.forgotten(err); err != nil {
			return "", err
		}
		i.o.Log("this version does not know %s: it is removed by what was noted in the cluster when it was installed, without farewell commands", c.ID)
	}
	if err := i.checkClean(ctx, cl, left); err != nil {
		return "", err
	}
	j, err := i.fromJournal(cl, c, left)
	if err != nil {
		return "", err
	}
	name := c.ID + " " + j.version
	if left.Before == nil {
		name = "namespace " + ownNamespace
	}
	return name, j.remove(ctx, left)
}

// emptyPatience is how long Clean waits for a journal in the installer's namespace. After
// that, the process that made the namespace must have died before it made the journal.
const emptyPatience = time.Minute

// cleanEmpty removes the installer's namespace if it has no journal: nothing was
// installed.
func (i *Installer) cleanEmpty(ctx context.Context, cl *kube.Cluster) (string, error) {
	found, err := i.namespace(ctx, cl)
	if err != nil || found == nil {
		return "", err
	}
	i.o.Log("looking for %v whether an installation begins in namespace %s", emptyPatience, ownNamespace)
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(emptyPatience):
	}
	current, err := i.namespace(ctx, cl)
	if err != nil || current == nil || current.UID != found.UID {
		return "", err
	}
	left, err := i.loadJournal(ctx, cl)
	if err != nil || left != nil {
		return "", err // an installation has begun
	}
	own := &objects{cl: cl, patience: i.o.Patience}
	return "namespace " + ownNamespace, own.deleteObject(ctx, object("v1", "Namespace", "", ownNamespace))
}

// namespace returns the installer's namespace; nil if this program has made none.
func (i *Installer) namespace(ctx context.Context, cl *kube.Cluster) (ns *corev1.Namespace, err error) {
	err = retryFor(ctx, i.o.Patience, "read namespace "+ownNamespace, func(ctx context.Context) (err error) {
		ns, err = cl.Client.CoreV1().Namespaces().Get(ctx, ownNamespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || err == nil && requireOurs(ns) != nil { // a user who may not read it has made none
			ns, err = nil, nil
		}
		return err
	})
	return ns, err
}

// checkClean returns an error if Clean must not follow the journal: the cluster is not
// marked as scratch, or the namespace is somebody else's.
func (i *Installer) checkClean(ctx context.Context, cl *kube.Cluster, left *journal) error {
	ns, err := cl.Client.CoreV1().Namespaces().Get(ctx, ownNamespace, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read namespace %s: %w", ownNamespace, err)
	}
	if err := requireOurs(ns); err != nil {
		return err
	}
	if left.Before == nil {
		return nil // nothing was installed: only the namespace is removed
	}
	if err := i.requireMark(ctx, cl.Client, "taking "+left.Contender+" off deletes pods and cleans the nodes as root"); err != nil {
		return err
	}
	return nil
}

func (i *Installer) job(cl *kube.Cluster, c *contender.Contender) (*job, error) {
	version, err := i.Version(c)
	if err != nil {
		return nil, err
	}
	own := *cl // with the options of the pods on nodes
	own.Options.Image, own.Options.PullPolicy = cmp.Or(i.o.Image, cl.Options.Image), cmp.Or(i.o.PullPolicy, cl.Options.PullPolicy)
	return &job{
		Installer: i, objects: &objects{cl: &own, owner: c.ID, patience: i.o.Patience},
		c: c, version: version, facts: newFacts(cl.Client, version, i.o.Facts),
	}, nil
}

// fromJournal returns the job of an installation by its journal.
func (i *Installer) fromJournal(cl *kube.Cluster, c *contender.Contender, left *journal) (*job, error) {
	earlier := *i
	earlier.o.Versions = left.Versions
	earlier.o.PullPolicy = cmp.Or(i.o.PullPolicy, left.PullPolicy)
	earlier.o.Facts = map[string]string{}
	maps.Copy(earlier.o.Facts, left.Facts)
	maps.Copy(earlier.o.Facts, i.o.Facts)
	j, err := earlier.job(cl, c)
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
		return j.removeNamespace(ctx)
	}
	begin := time.Now()
	if err := j.uninstall(ctx, left); err != nil {
		return fmt.Errorf("uninstall %s %s: %w", j.c.ID, j.version, err)
	}
	j.o.Log("%s %s is gone after %v", j.c.ID, j.version, time.Since(begin).Round(time.Second))
	return nil
}

// uninstall removes as much as it can, also after errors.
func (j *job) uninstall(ctx context.Context, left *journal) error {
	if err := requireNoBarePods(ctx, j.cl.Client); err != nil {
		return err
	}
	if err := j.cordon(ctx, true); err != nil {
		return err
	}
	var failed []error
	// Pods first, while the plugin that detaches them still exists.
	failed = append(failed, j.emptyNodes(ctx), j.runFarewells(ctx))
	for _, s := range slices.Backward(j.steps) {
		failed = append(failed, s.undo(ctx, j))
	}
	failed = append(failed, j.cleanObjects(ctx), j.switchKubeProxy(ctx, true), j.cleanNodes(ctx, left.Before))
	failed = append(failed, j.checkNothingLeft(ctx, left.Before), j.cordon(ctx, false), j.resumeDaemonSets(ctx))
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return j.removeNamespace(ctx)
}

// checkNothingLeft returns an error that lists what differs from the state before the
// installation. It waits for objects and processes that end by themselves, and cleans the
// nodes again.
func (j *job) checkNothingLeft(ctx context.Context, before *findings) error {
	for try := 0; ; try++ {
		after, err := j.survey(ctx)
		if err != nil {
			return err
		}
		changes := after.changes(before)
		if len(changes) == 0 {
			for _, text := range after.listUnverifiedNodes(before) {
				j.o.Log("%s", text)
			}
			return nil
		}
		if try == 2 {
			return fmt.Errorf("left behind: %s", joinList(changes))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Second):
		}
		// A program that was just ending may have written something after the cleaning.
		if err := j.cleanNodes(ctx, before); err != nil {
			return err
		}
	}
}

// newUnsupported returns an *arena.Unsupported.
func newUnsupported(remedy, reason string, args ...any) error {
	return &arena.Unsupported{Reason: fmt.Sprintf(reason, args...), Remedy: remedy}
}
