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
)

// ownNamespace holds the journal and the pods that look after nodes. It is
// there before the first change of an installation and until the proof that
// nothing is left, so that a crashed run's contender can be taken off.
const ownNamespace = "cnibench-install"

const journalName = "journal"

// journalSchema names the form of the journal. A version of cnibench that
// changes the form reads this one, too: testdata/journal-1.json is a specimen.
const journalSchema = "cnibench/install/1"

// journal is what an installation writes down: before its first change what was
// there, and before each step what the step makes.
type journal struct {
	Schema    string    `json:"schema"`
	By        string    `json:"by"` // Installer.id
	Contender string    `json:"contender"`
	Versions  string    `json:"versions"` // the version set
	Since     string    `json:"since"`
	Before    *findings `json:"before"` // nil: nothing was changed yet

	// What another process needs to take the contender off.
	Facts      map[string]string `json:"facts,omitempty"` // given and found, the version among them
	Image      string            `json:"image,omitempty"`
	PullPolicy string            `json:"pull_policy,omitempty"`
	Steps      []*stepRecord     `json:"steps,omitempty"` // in the order in which they are done
	// Digests are the SHA-256 sums of charts and manifests that no recipe pins.
	Digests map[string]string `json:"digests,omitempty"`
}

// stepRecord names what a step of a recipe makes; one of its fields is set.
// Steps that make nothing have none.
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

// chartRecord names what an installed chart has made, or is about to make.
type chartRecord struct {
	Namespace   string                   `json:"namespace"`
	Release     string                   `json:"release"`
	Definitions []corev1.ObjectReference `json:"definitions,omitempty"` // of its crds folder
	Objects     []corev1.ObjectReference `json:"objects,omitempty"`     // in the order of their deletion
	HookObjects []corev1.ObjectReference `json:"hook_objects,omitempty"`
	Hooks       []*release.Hook          `json:"hooks,omitempty"` // that run when the chart is deleted
}

// left is the journal of an installation that is there; nil if there is none.
func (i *Installer) left(ctx context.Context, cl *kube.Cluster) (*journal, error) {
	var cm *corev1.ConfigMap
	err := persist(ctx, i.o.Patience, fmt.Sprintf("read the journal %s/%s", ownNamespace, journalName), func(ctx context.Context) (err error) {
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

// claim makes the journal: of several that try, the first has the cluster.
// Errors: *arena.Unsupported for the others.
func (j *job) claim(ctx context.Context) error {
	if err := j.ensureNamespace(ctx); err != nil {
		return err
	}
	cm, err := j.page(nil, nil)
	if err != nil {
		return err
	}
	taken := false
	err = j.patiently(ctx, "make the journal", func(ctx context.Context) error {
		_, err := j.cl.Client.CoreV1().ConfigMaps(ownNamespace).Create(ctx, cm, metav1.CreateOptions{})
		if taken = apierrors.IsAlreadyExists(err); taken {
			return nil
		}
		return err
	})
	if err != nil || !taken {
		return err
	}
	left, err := j.left(ctx, j.cl)
	switch {
	case err != nil:
		return err
	case left == nil:
		return unsupported("try again", "another run's installation has only just gone")
	case left.By == j.id && left.Contender == j.c.ID:
		return nil // made by a request whose answer was lost
	}
	return occupied(left)
}

// write brings the journal up to date.
func (j *job) write(ctx context.Context) error {
	cm, err := j.page(j.before, j.facts.all(ctx))
	if err != nil {
		return err
	}
	return j.patiently(ctx, "write the journal", func(ctx context.Context) error {
		_, err := j.cl.Client.CoreV1().ConfigMaps(ownNamespace).Update(ctx, cm, metav1.UpdateOptions{})
		return err
	})
}

// page is the journal as an object.
func (j *job) page(before *findings, facts map[string]string) (*corev1.ConfigMap, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	l := journal{
		Schema: journalSchema, By: j.id, Contender: j.c.ID, Versions: j.o.Versions, Since: time.Now().UTC().Format(time.RFC3339),
		Before: before, Facts: facts, Image: j.cl.Options.Image, PullPolicy: j.cl.Options.PullPolicy, Steps: j.steps, Digests: j.source.unpinned,
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

// occupied refuses a cluster that has another run's installation. A refusal is
// published with a run, so it does not say where the cluster is.
func occupied(left *journal) error {
	return unsupported("wait for the run that installs it, or if that has ended take it off with: cnibench clean --arena kube --scratch --image IMAGE (and this run's --kubeconfig and --context)",
		"%s is installed on the cluster since %s", left.Contender, left.Since)
}

// ensureNamespace makes the installer's own namespace, which may hold
// privileged pods.
func (j *job) ensureNamespace(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ownNamespace, Labels: map[string]string{
		"pod-security.kubernetes.io/enforce": "privileged",
		"app.kubernetes.io/part-of":          "cnibench",
	}}}
	var foreign error
	err := j.patiently(ctx, "make namespace "+ownNamespace, func(ctx context.Context) error {
		there, err := j.cl.Client.CoreV1().Namespaces().Get(ctx, ownNamespace, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			_, err = j.cl.Client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
			return err
		case err == nil && there.DeletionTimestamp != nil:
			return fmt.Errorf("an earlier namespace %s is still being deleted", ownNamespace)
		case err == nil:
			foreign = requireOurs(there)
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
	return unsupported("remove it, if nobody needs it", "namespace %s was not made by cnibench: it lacks the label app.kubernetes.io/part-of=cnibench", ns.Name)
}

// forget removes the namespace and the journal in it.
func (j *job) forget(ctx context.Context) error {
	return j.deleteObject(ctx, object("v1", "Namespace", "", ownNamespace))
}
