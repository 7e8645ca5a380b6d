package install

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/arena/kube"
)

// ownNamespace holds the journal and the pods that look after nodes. It is
// there from the first change of an installation until the proof that nothing
// is left, so that a crashed run's contender can be taken off.
const ownNamespace = "cnibench-install"

const journalName = "journal"

// journal is what an installation wrote down before it began.
type journal struct {
	By        string    `json:"by"` // Installer.id
	Contender string    `json:"contender"`
	Versions  string    `json:"versions"`
	Since     string    `json:"since"`
	Before    *findings `json:"before"`
}

// left is the journal of an installation that is there; nil if there is none.
func (i *Installer) left(ctx context.Context, cl *kube.Cluster) (*journal, error) {
	cm, err := cl.Client.CoreV1().ConfigMaps(ownNamespace).Get(ctx, journalName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) { // who may not read it has installed nothing
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the journal %s/%s: %w", ownNamespace, journalName, err)
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

// write makes the journal.
func (j *job) write(ctx context.Context, before *findings) error {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	l := journal{j.id, j.c.ID, j.o.Versions, time.Now().UTC().Format(time.RFC3339), before}
	if err := json.NewEncoder(z).Encode(l); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: journalName, Namespace: ownNamespace},
		BinaryData: map[string][]byte{"journal.json.gz": b.Bytes()},
	}
	return j.patiently(ctx, "write the journal", func(ctx context.Context) error {
		_, err := j.cl.Client.CoreV1().ConfigMaps(ownNamespace).Create(ctx, cm, metav1.CreateOptions{})
		return err
	})
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
