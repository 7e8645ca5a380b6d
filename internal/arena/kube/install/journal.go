package install

import (
	"bytes"
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

// ownNamespace holds the journal and the pods that look after nodes. It is
// there before the first change of an installation and until the proof that
// nothing is left, so that a crashed run's contender can be taken off.
const ownNamespace = "cnibench-install"

const journalName = "journal"

// journal is what an installation wrote down before it began.
type journal struct {
	By        string    `json:"by"` // Installer.id
	Contender string    `json:"contender"`
	Versions  string    `json:"versions"` // the version set
	Since     string    `json:"since"`
	Before    *findings `json:"before"` // nil: nothing was changed yet

	// What another process needs to take it off; empty in older journals.
	Facts      map[string]string `json:"facts,omitempty"` // given and found, the version among them
	Image      string            `json:"image,omitempty"`
	PullPolicy string            `json:"pull_policy,omitempty"`
	// Manifests are the objects that manifests make, by the recipe's addresses.
	Manifests map[string][]corev1.ObjectReference `json:"manifests,omitempty"`
	// Charts are the objects that charts make, by the release as NAMESPACE/NAME.
	Charts map[string]*chartRecord `json:"charts,omitempty"`
}

// chartRecord names what an installed chart has made, or is about to make.
type chartRecord struct {
	Definitions []corev1.ObjectReference `json:"definitions,omitempty"` // of its crds folder
	Objects     []corev1.ObjectReference `json:"objects,omitempty"`     // in the order of their deletion
	HookObjects []corev1.ObjectReference `json:"hook_objects,omitempty"`
	Hooks       []*release.Hook          `json:"hooks,omitempty"` // that run when the chart is deleted
}

// record writes into the journal what a chart is about to make.
func (j *job) record(ctx context.Context, c *contender.Chart, made *chartRecord) error {
	if j.charts == nil {
		j.charts = map[string]*chartRecord{}
	}
	j.charts[c.Namespace+"/"+c.Release] = made
	return j.write(ctx)
}

// left is the journal of an installation that is there; nil if there is none.
func (i *Installer) left(ctx context.Context, cl *kube.Cluster) (*journal, error) {
	var cm *corev1.ConfigMap
	err := i.patiently(ctx, fmt.Sprintf("read the journal %s/%s", ownNamespace, journalName), func(ctx context.Context) (err error) {
		cm, err = cl.Client.CoreV1().ConfigMaps(ownNamespace).Get(ctx, journalName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			cm, err = nil, nil
		}
		return err
	})
	if err != nil || cm == nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(cm.BinaryData["journal.json.gz"]))
	if err != nil {
		return nil, fmt.Errorf("journal %s/%s: %w", ownNamespace, journalName, err)
	}
	var l journal
	if err := json.NewDecoder(io.LimitReader(z, 64<<20)).Decode(&l); err != nil {
		return nil, fmt.Errorf("journal %s/%s: %w", ownNamespace, journalName, err)
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
		By: j.id, Contender: j.c.ID, Versions: j.o.Versions, Since: time.Now().UTC().Format(time.RFC3339),
		Before: before, Facts: facts, Image: j.image, PullPolicy: j.pullPolicy, Manifests: j.manifests, Charts: j.charts,
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
	return unsupported("wait for the run that installs it, or if that has ended take it off with: cnibench clean --arena kube (and this run's --kubeconfig and --context)",
		"%s is installed on the cluster since %s", left.Contender, left.Since)
}

// ensureNamespace makes the installer's own namespace, which may hold
// privileged pods.
func (j *job) ensureNamespace(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ownNamespace, Labels: map[string]string{
		"pod-security.kubernetes.io/enforce": "privileged",
		"app.kubernetes.io/part-of":          "cnibench",
	}}}
	return j.patiently(ctx, "make namespace "+ownNamespace, func(ctx context.Context) error {
		there, err := j.cl.Client.CoreV1().Namespaces().Get(ctx, ownNamespace, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			_, err = j.cl.Client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
			return err
		case err == nil && there.DeletionTimestamp != nil:
			return fmt.Errorf("an earlier one is still going")
		}
		return err
	})
}

// forget removes the namespace and the journal in it.
func (j *job) forget(ctx context.Context) error {
	return j.deleteObject(ctx, object("v1", "Namespace", "", ownNamespace))
}
