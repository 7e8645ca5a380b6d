package kube

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// This file is about the Lease of a run. While the run is under way it renews its
// Lease, and notifies its pods of each renewal. A pod that is not notified for a while
// ends by itself. `cnibench clean` leaves a run alone whose Lease is renewed.

// leaseName is the name of a run's Lease in the run's first namespace.
const leaseName = "cnibench"

const (
	renewEvery = 5 * time.Second
	// notifyPause is the time until the next try after a pod could not be notified.
	notifyPause = time.Second
	// leaseWatch is how long clean waits for a renewal, leasePoll how often it reads.
	leaseWatch = 4 * renewEvery
	leasePoll  = time.Second
)

// errLost says that the Lease was deleted, or taken by another run.
var errLost = errors.New("the lease is not this run's any more")

// lease is a Lease that a run renews until stop.
type lease struct {
	cl    *Cluster
	run   string
	held  *coordinationv1.Lease // as last read or written
	ctx   context.Context       // ends with stop
	end   context.CancelFunc
	tasks sync.WaitGroup

	mu   sync.Mutex
	pods []chan struct{} // one for each pod; gets a value after each renewal
}

// holdLease makes the Lease, or takes over a Lease that an earlier run left, and renews
// it until stop.
func (cl *Cluster) holdLease(ctx context.Context, namespace, name, run string) (*lease, error) {
	l := &lease{cl: cl, run: run}
	seconds := int32(leaseWatch / time.Second)
	want := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: runLabels(run)},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &run, LeaseDurationSeconds: &seconds, RenewTime: new(metav1.NowMicro())},
	}
	api := cl.Client.CoordinationV1().Leases(namespace)
	err := cl.do(ctx, "make the lease "+name, func(ctx context.Context) (err error) {
		l.held, err = api.Create(ctx, want, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		old, err := api.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		old.Labels, old.Spec = want.Labels, want.Spec
		l.held, err = api.Update(ctx, old, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	l.ctx, l.end = context.WithCancel(context.WithoutCancel(ctx))
	l.tasks.Go(l.renewals)
	return l, nil
}

// renewals renews the Lease and notifies the pods, until stop or until the Lease is lost.
// Then somebody has deleted the Lease, and the pods end by themselves.
func (l *lease) renewals() {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-ticker.C:
		}
		switch err := l.renew(); {
		case errors.Is(err, errLost):
			l.cl.Options.log("run %s: %v: its pods will end", l.run, err)
			return
		case err != nil && l.ctx.Err() == nil: // the next renewal may succeed
			l.cl.Options.log("run %s: %v", l.run, err)
			continue
		}
		l.mu.Lock()
		for _, pod := range l.pods {
			select {
			case pod <- struct{}{}:
			default: // the notification before is still on its way
			}
		}
		l.mu.Unlock()
	}
}

func (l *lease) renew() error {
	api := l.cl.Client.CoordinationV1().Leases(l.held.Namespace)
	return l.cl.do(l.ctx, "renew the lease "+l.held.Name, func(ctx context.Context) error {
		next := l.held.DeepCopy()
		next.Spec.RenewTime = new(metav1.NowMicro())
		got, err := api.Update(ctx, next, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) { // our renewal whose answer was lost, or another run's
			if got, err = api.Get(ctx, next.Name, metav1.GetOptions{}); err == nil && got.Labels[labelRun] != l.run {
				return errLost
			}
		}
		if apierrors.IsNotFound(err) {
			return errLost
		}
		if err == nil {
			l.held = got
		}
		return err
	})
}

// notify notifies the pod of each renewal, until the Lease or the pod ends.
func (l *lease) notify(e *endpoint) {
	renewed := make(chan struct{}, 1)
	renewed <- struct{}{}
	l.mu.Lock()
	l.pods = append(l.pods, renewed)
	l.mu.Unlock()
	l.tasks.Go(func() {
		for e.checkPod(l.ctx) == nil && l.ctx.Err() == nil {
			l.stream(e, renewed)
			select {
			case <-l.ctx.Done():
			case <-time.After(notifyPause):
			}
		}
	})
}

// stream writes a line for each renewal to `agent renew` in the pod, or to its shell, until
// that ends.
func (l *lease) stream(e *endpoint, renewed <-chan struct{}) {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	r, w := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		argv := []string{l.cl.program, "agent", "renew"}
		if e.carried {
			argv = []string{"sh", "-c", renewing, "sh", l.cl.dir + "/renewed"}
		}
		err := l.cl.Exec(e.namespace, e.pod, container, argv)(ctx, r, io.Discard, io.Discard)
		r.CloseWithError(cmp.Or(err, io.EOF))
	}()
	defer func() { <-ended }()
	defer func() { _ = w.Close() }() // never fails
	for {
		select {
		case <-ended:
			return
		case <-ctx.Done():
			return
		case <-renewed:
			text := "\n"
			if e.carried {
				text = rand.Text() + text
			}
			if _, err := w.Write([]byte(text)); err != nil {
				return
			}
		}
	}
}

// stop ends the renewals. The Lease is removed with its namespace, or by dropLease.
func (l *lease) stop() {
	if l == nil {
		return
	}
	l.end()
	l.tasks.Wait()
}

// dropLease deletes the Lease of a run in a namespace that stays.
func (cl *Cluster) dropLease(ctx context.Context, namespace, name, run string) error {
	return cl.do(ctx, "delete the lease "+name, func(ctx context.Context) error {
		api := cl.Client.CoordinationV1().Leases(namespace)
		held, err := api.Get(ctx, name, metav1.GetOptions{})
		if err != nil || held.Labels[labelRun] != run {
			return ignoreNotFound(err)
		}
		return ignoreNotFound(api.Delete(ctx, name, metav1.DeleteOptions{}))
	})
}

// alive returns the runs whose Lease is renewed within leaseWatch. runs maps each run to
// the namespace of its Lease. alive compares no clocks of different machines.
func (cl leftovers) alive(ctx context.Context, runs map[string]string) (map[string]bool, error) {
	alive := map[string]bool{}
	if len(runs) == 0 {
		return alive, nil
	}
	first := map[string]string{}
	for run, namespace := range runs {
		renewal, err := cl.renewal(ctx, namespace, run)
		if err != nil {
			return nil, err
		}
		first[run] = renewal
	}
	cl.Options.log("looking for %v whether runs are under way", leaseWatch)
	err := wait.PollUntilContextTimeout(ctx, leasePoll, leaseWatch, false, func(context.Context) (bool, error) {
		for run, namespace := range runs {
			renewal, err := cl.renewal(ctx, namespace, run)
			if err != nil {
				return false, err
			}
			alive[run] = alive[run] || renewal != "" && renewal != first[run]
		}
		for run := range runs {
			if !alive[run] {
				return false, nil
			}
		}
		return true, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = nil
	}
	return alive, err
}

// renewal returns when the run last renewed its Lease, by the run's clock; "" without a
// Lease.
func (cl leftovers) renewal(ctx context.Context, namespace, run string) (string, error) {
	held, err := ask(ctx, cl.Cluster, "read the lease of run "+run, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return cl.Client.CoordinationV1().Leases(namespace).Get(ctx, leaseName, metav1.GetOptions{})
	})
	if err != nil || held.Labels[labelRun] != run || held.Spec.RenewTime == nil {
		return "", ignoreNotFound(err)
	}
	return fmt.Sprint(held.Spec.RenewTime.UnixMicro()), nil
}
