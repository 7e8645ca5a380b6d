package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/contender"
)

// farewellStep runs a command in the product's own pods when the product is uninstalled.
// It does nothing at the installation.
type farewellStep struct {
	makesNothing
	*contender.Farewell
}

func (f farewellStep) do(context.Context, *job) error { return nil }

// runFarewells runs the recipe's farewell commands in the product's own pods, also after
// errors: what is left out on one node must not be left out on all. It takes the commands
// from the catalogue, because others can write the journal.
func (j *job) runFarewells(ctx context.Context) error {
	var failed []error
	for _, s := range slices.Backward(j.stepsOf()) {
		f, ok := s.(farewellStep)
		if !ok {
			continue
		}
		failed = append(failed, f.run(ctx, j))
	}
	return errors.Join(failed...)
}

// run runs the command in each of the product's running pods.
func (f farewellStep) run(ctx context.Context, j *job) error {
	var failed []error
	for _, o := range f.After {
		failed = append(failed, j.deleteMade(ctx, object(o.APIVersion, o.Kind, o.Namespace, o.Name)))
	}
	pods, err := fetch(ctx, j.patience, fmt.Sprintf("list pods %s in %s", f.Selector, f.Namespace), func(ctx context.Context) (*corev1.PodList, error) {
		return j.cl.Client.CoreV1().Pods(f.Namespace).List(ctx, metav1.ListOptions{LabelSelector: f.Selector})
	})
	if err != nil {
		return errors.Join(append(failed, err)...)
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != "Running" {
			continue
		}
		if err := f.execute(ctx, j, pod.Name); err != nil {
			failed = append(failed, fmt.Errorf("%s in pod %s/%s: %w", strings.Join(f.Command, " "), f.Namespace, pod.Name, err))
		}
	}
	return errors.Join(failed...)
}

func (f farewellStep) execute(ctx context.Context, j *job, pod string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	if err := j.cl.Exec(f.Namespace, pod, f.Container, f.Command)(ctx, strings.NewReader(""), io.Discard, &stderr); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return nil
}
