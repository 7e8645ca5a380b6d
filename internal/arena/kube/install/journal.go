package install

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/contender"
)

// ownNamespace holds the journal and the pods on nodes. It exists from before the first
// change of an installation until nothing of the contender is left, so that Clean can
// uninstall a crashed run's contender.
const ownNamespace = "cnibench-install"

const journalName = "journal"

// journalSchema names the form of the journal. A version of cnibench that
// changes the form reads this one, too: testdata/journal-1.json is a specimen.
const journalSchema = "cnibench/install/1"

// journal is the record of an installation. Before the first change it holds the state of
// the cluster, and before each step the names of what the step makes.
type journal struct {
	Schema    string    `json:"schema"`
	By        string    `json:"by"` // Installer.id
	Contender string    `json:"contender"`
	Versions  string    `json:"versions"` // the version set
	Since     string    `json:"since"`
	Before    *findings `json:"before"` // nil: nothing was changed yet

	// What another process needs to uninstall the contender.
	Facts      map[string]string `json:"facts,omitempty"` // given and found, the version among them
	Image      string            `json:"image,omitempty"`
	PullPolicy string            `json:"pull_policy,omitempty"`
	Steps      []*stepRecord     `json:"steps,omitempty"` // in the order in which they are done
	Recipe     *keptRecipe       `json:"recipe,omitempty"`
	// Digests are the SHA-256 sums of charts and manifests that no recipe pins.
	Digests map[string]string `json:"digests,omitempty"`
}

// keptRecipe is what the removal needs of a recipe beyond the records of its steps, for a
// version whose catalogue has the contender no more.
type keptRecipe struct {
	KubeProxy string              `json:"kube_proxy,omitempty"`
	Leftovers contender.Leftovers `json:"leftovers"`
}

// forgotten returns a contender that the catalogue does not have, as the journal kept it. The
// journal can be written by others: what it names must be what a recipe may name, and it
// has no commands. why is why the catalogue does not have it.
func (l *journal) forgotten(why error) (*contender.Contender, error) {
	if l.Recipe == nil {
		return nil, fmt.Errorf("the cluster has a contender installed that this version does not know; uninstall it with the version that installed it: %w", why)
	}
	if err := l.Recipe.Leftovers.Check(); err != nil {
		return nil, fmt.Errorf("journal %s/%s: %w", ownNamespace, journalName, err)
	}
	return &contender.Contender{ID: l.Contender, Kube: &contender.Kube{
		Versions:  map[string]contender.KubeVersion{l.Versions: {Version: l.Facts["version"]}},
		KubeProxy: l.Recipe.KubeProxy, Leftovers: l.Recipe.Leftovers,
	}}, nil
}

// stepRecord names what a step of a recipe makes. One of its fields is set. A step that
// makes nothing has no stepRecord.
type stepRecord struct {
	Objects []corev1.ObjectReference `json:"objects,omitempty"`
	Labels  *labelsRecord            `json:"labels,omitempty"`
	Chart   *chartRecord             `json:"chart,omitempty"`
}

// labelsRecord are the labels that a step sets on nodes.
type labelsRecord struct {
	Nodes string   `json:"nodes"` // "all" or "control-plane"
	Keys  []string `json:"keys"`
}

// chartRecord names what a chart has made or will make.
type chartRecord struct {
	Namespace   string                   `json:"namespace"`
	Release     string                   `json:"release"`
	Definitions []corev1.ObjectReference `json:"definitions,omitempty"` // of its crds folder
	Objects     []corev1.ObjectReference `json:"objects,omitempty"`     // in the order of their deletion
	HookObjects []corev1.ObjectReference `json:"hook_objects,omitempty"`
	Hooks       []*release.Hook          `json:"hooks,omitempty"` // that run when the chart is deleted
}

// loadJournal returns the journal of the cluster's installation; nil if there is none.
func (i *Installer) loadJournal(ctx context.Context, cl *kube.Cluster) (*journal, error) {
	var cm *corev1.ConfigMap
	err := retryFor(ctx, i.o.Patience, fmt.Sprintf("read the journal %s/%s", ownNamespace, journalName), func(ctx context.Context) (err error) {
		cm, err = cl.Client.CoreV1().ConfigMaps(ownNamespace).Get(ctx, journalName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			cm, err = nil, nil
		}
		return err
	})
	if err != nil || cm == nil {
		return nil, err
	}
	l, err := readJournal(bytes.NewReader(cm.BinaryData["journal.json.gz"]))
	if err != nil {
		return nil, fmt.Errorf("journal %s/%s: %w", ownNamespace, journalName, err)
	}
	return l, nil
}

// readJournal reads the journal from its ConfigMap, which others can write, too.
func readJournal(r io.Reader) (*journal, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	var l journal
	if err := json.NewDecoder(io.LimitReader(z, 64<<20)).Decode(&l); err != nil {
		return nil, err
	}
	if l.Schema != journalSchema {
		return nil, fmt.Errorf("its schema is %.60q, and this version of cnibench reads %q; uninstall %.60s with the version that installed it",
			l.Schema, journalSchema, l.Contender)
	}
	return &l, nil
}

// lock makes the journal. If several processes try, only the first succeeds; the others
// get an *arena.Unsupported.
func (j *job) lock(ctx context.Context) error {
	if err := j.ensureNamespace(ctx); err != nil {
		return err
	}
	cm, err := j.journalMap(nil, nil)
	if err != nil {
		return err
	}
	taken := false
	err = j.retry(ctx, "make the journal", func(ctx context.Context) error {
		_, err := j.cl.Client.CoreV1().ConfigMaps(ownNamespace).Create(ctx, cm, metav1.CreateOptions{})
		if taken = apierrors.IsAlreadyExists(err); taken {
			return nil
		}
		return err
	})
	if err != nil || !taken {
		return err
	}
	left, err := j.loadJournal(ctx, j.cl)
	switch {
	case err != nil:
		return err
	case left == nil:
		return newUnsupported("try again", "another run's installation was removed a moment ago")
	case left.By == j.id && left.Contender == j.c.ID:
		return nil // made by an earlier request whose answer was lost
	}
	return errOccupied(left)
}

// write updates the journal in the cluster.
func (j *job) write(ctx context.Context) error {
	cm, err := j.journalMap(j.before, j.facts.all(ctx))
	if err != nil {
		return err
	}
	return j.retry(ctx, "write the journal", func(ctx context.Context) error {
		_, err := j.cl.Client.CoreV1().ConfigMaps(ownNamespace).Update(ctx, cm, metav1.UpdateOptions{})
		return err
	})
}

// journalMap returns the ConfigMap with the journal.
func (j *job) journalMap(before *findings, facts map[string]string) (*corev1.ConfigMap, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	l := journal{
		Schema: journalSchema, By: j.id, Contender: j.c.ID, Versions: j.o.Versions, Since: time.Now().UTC().Format(time.RFC3339),
		Before: before, Facts: facts, Image: j.cl.Options.Image, PullPolicy: j.cl.Options.PullPolicy, Steps: j.steps, Digests: j.source.unpinned,
		Recipe: &keptRecipe{j.c.Kube.KubeProxy, j.c.Kube.Leftovers},
	}
	if err := json.NewEncoder(z).Encode(l); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: journalName, Namespace: ownNamespace},
		BinaryData: map[string][]byte{"journal.json.gz": b.Bytes()},
	}, nil
}

// errOccupied returns the error of a cluster that has another run's installation. It is
// published with a run, so its command leaves out where the cluster is.
func errOccupied(left *journal) error {
	return newUnsupported("wait for the run that installs it, or if that has ended uninstall it with: cnibench clean --arena kube --scratch --image IMAGE (and this run's --kubeconfig and --context)",
		"%s is installed on the cluster since %s", left.Contender, left.Since)
}

// ensureNamespace makes the installer's own namespace, which allows privileged pods,
// unless it exists.
func (j *job) ensureNamespace(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ownNamespace, Labels: map[string]string{
		"pod-security.kubernetes.io/enforce": "privileged",
		"app.kubernetes.io/part-of":          "cnibench",
	}}}
	var foreign error
	err := j.retry(ctx, "make namespace "+ownNamespace, func(ctx context.Context) error {
		found, err := j.cl.Client.CoreV1().Namespaces().Get(ctx, ownNamespace, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			_, err = j.cl.Client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
			return err
		case err == nil && found.DeletionTimestamp != nil:
			return fmt.Errorf("an earlier namespace %s is still being deleted", ownNamespace)
		case err == nil:
			foreign = requireOurs(found)
		}
		return err
	})
	return cmp.Or(err, foreign)
}

// requireOurs refuses a namespace of that name that this program did not make.
func requireOurs(ns *corev1.Namespace) error {
	if ns.Labels["app.kubernetes.io/part-of"] == "cnibench" {
		return nil
	}
	return newUnsupported("remove it, if nobody needs it", "namespace %s was not made by cnibench: it lacks the label app.kubernetes.io/part-of=cnibench", ns.Name)
}

// removeNamespace removes the installer's namespace with the journal.
func (j *job) removeNamespace(ctx context.Context) error {
	return j.deleteObject(ctx, object("v1", "Namespace", "", ownNamespace))
}
