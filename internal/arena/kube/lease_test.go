package kube

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ktesting "k8s.io/client-go/testing"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
)

// pod is a pod that hears of renewals.
type pod struct {
	mu    sync.Mutex
	heard bytes.Buffer
	cuts  int // streams that end after their first byte
}

func (p *pod) exec(_, _, _ string, argv []string) agent.Stream {
	return func(ctx context.Context, stdin io.Reader, _, _ io.Writer) error {
		one := make([]byte, 1)
		for {
			if _, err := stdin.Read(one); err != nil {
				return nil
			}
			p.mu.Lock()
			p.heard.Write(one)
			p.cuts--
			cut := p.cuts >= 0
			p.mu.Unlock()
			if cut {
				return errors.New("the stream is cut")
			}
		}
	}
}

func (p *pod) renewals() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard.Len()
}

// leased is a bed on which a run holds its Lease, with a pod.
func leased(t *testing.T, o Options, run string) (*bed, *lease, *pod) {
	t.Helper()
	namespace := run
	if len(o.Within) > 0 {
		namespace = o.Within[0]
	}
	at := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", UID: "1", Labels: runLabels(run)}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}}}
	objects := []runtime.Object{&at}
	if len(o.Within) == 0 {
		objects = append(objects, namespaceFor(run, run, "privileged", nil))
	}
	b := newBed(t, o, objects...)
	p := &pod{}
	b.Exec = p.exec
	l, err := b.holdLease(t.Context(), namespace, leaseName, run)
	if err != nil {
		t.Fatal(err)
	}
	l.notify(&endpoint{cl: b.Cluster, namespace: namespace, pod: "p", uid: "1", node: &node{}, ctx: t.Context()})
	return b, l, p
}

// While a run is under way its pods hear of each renewal, though a stream breaks;
// afterwards, and where the Lease is taken away, of none.
func TestLeaseKeepsPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, p := leased(t, Options{}, "r")
		p.cuts = 2
		time.Sleep(10*renewEvery + time.Second)
		if n := p.renewals(); n < 8 || n > 11 {
			t.Errorf("%d renewals", n)
		}
		l.stop()
		before := p.renewals()
		time.Sleep(time.Hour)
		if n := p.renewals(); n != before {
			t.Errorf("%d renewals after the end", n-before)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b, l, p := leased(t, Options{}, "r")
		time.Sleep(renewEvery + time.Second)
		if err := b.dropLease(t.Context(), "r", leaseName, "another"); err != nil {
			t.Error(err)
		}
		time.Sleep(renewEvery)
		before := p.renewals()
		if before < 3 {
			t.Errorf("%d renewals: the lease is not another run's", before)
		}
		if err := b.dropLease(t.Context(), "r", leaseName, "r"); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		if n := p.renewals(); n != before {
			t.Errorf("%d renewals without a lease", n-before)
		}
		l.stop()
	})
}

// A renewal whose answer was lost is the run's own; a Lease that another run has taken
// is lost.
func TestLeaseConflicts(t *testing.T) {
	for name, c := range map[string]struct {
		holder string
		want   error
	}{"own": {"r", nil}, "another's": {"other", errLost}} {
		t.Run(name, func(t *testing.T) {
			b, l, _ := leased(t, Options{}, "r")
			defer l.stop()
			taken := l.held.DeepCopy()
			taken.Labels = runLabels(c.holder)
			if err := b.client.Tracker().Update(coordinationv1.SchemeGroupVersion.WithResource("leases"), taken, "r"); err != nil {
				t.Fatal(err)
			}
			first := true
			b.client.PrependReactor("update", "leases", func(ktesting.Action) (bool, runtime.Object, error) {
				conflict := first
				first = false
				return conflict, nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, leaseName, errors.New("changed"))
			})
			if err := l.renew(); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// Clean leaves a run alone whose Lease is renewed, and removes what a killed one left,
// one without a Lease too; told so, it removes all.
func TestCleanSparesRunsUnderWay(t *testing.T) {
	for name, o := range map[string]Options{"own namespaces": {}, "within": {Within: []string{"measure"}}} {
		for _, how := range []string{"under way", "killed", "told"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b, l, _ := leased(t, o, "cnibench-r")
					defer l.stop()
					if how == "killed" {
						l.stop()
					}
					begin := time.Now()
					did, err := leftovers{b.Cluster}.clean(t.Context(), how == "told")
					if err != nil {
						t.Fatal(err)
					}
					took := time.Since(begin)
					t.Logf("%v: %+v", took, did)
					if spared := slices.Equal(did.Spared, []string{"cnibench-r"}) && len(did.Removed) == 0; spared != (how == "under way") {
						t.Errorf("%+v", did)
					}
					if how != "under way" && len(did.Removed) != 1 {
						t.Errorf("%+v", did)
					}
					if how == "told" && took > renewEvery || took > leaseWatch+10*time.Second {
						t.Errorf("it took %v", took)
					}
				})
			})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, Options{}, namespaceFor("cnibench-old", "cnibench-old", "privileged", nil))
		did, err := leftovers{b.Cluster}.clean(t.Context(), false)
		if diff := cmp.Diff(&Cleaned{Removed: []string{"cnibench-old"}}, did); diff != "" || err != nil {
			t.Error(diff, err)
		}
	})
}

// Clean's look ends after its time, also where the client holds a request back that is
// under way then: client-go refuses to wait for its own limit beyond a deadline.
func TestCleanLooksToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := &rest.Config{Host: "http://cluster.invalid", QPS: 0.3, Burst: 1, Transport: notFound{}}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		alive, err := leftovers{&Cluster{Client: client}}.alive(t.Context(), map[string]string{"cnibench-r": "cnibench-r"})
		if err != nil || alive["cnibench-r"] {
			t.Errorf("%v, %v", alive, err)
		}
	})
}

// notFound is an API server that has nothing.
type notFound struct{}

func (notFound) RoundTrip(*http.Request) (*http.Response, error) {
	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
	return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// A run takes over the Lease that a killed one left in an administrator's namespace,
// and removes it at its end.
func TestLeaseWithin(t *testing.T) {
	o := Options{Within: []string{"measure"}}
	left := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "measure", Name: leaseName, Labels: runLabels("killed")}}
	b, refused := fenced(t, o, testNode("a"), left)
	n := up(t, b.arena(t), here)
	api := b.client.CoordinationV1().Leases("measure")
	if held, err := api.Get(t.Context(), leaseName, metav1.GetOptions{}); err != nil || held.Labels[labelRun] != n.(*network).run {
		t.Errorf("%+v, %v", held, err)
	}
	if err := n.Down(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := api.Get(t.Context(), leaseName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the lease stays: %v", err)
	}
	if *refused != nil {
		t.Errorf("asked for: %v", *refused)
	}
}

// leaseWatcher is an Installer that looks for the run's Lease.
type leaseWatcher struct {
	installer
	t   *testing.T
	b   *bed
	saw []string
}

func (w *leaseWatcher) look(what string) {
	list, err := w.b.client.CoordinationV1().Leases("").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Error(err)
	}
	held := "not held"
	if len(list.Items) == 1 {
		held = "held"
	}
	w.saw = append(w.saw, what+": "+held)
}

func (w *leaseWatcher) Effort(context.Context, *Cluster) (map[string]float64, error) { return nil, nil }

func (w *leaseWatcher) Install(context.Context, *Cluster, *contender.Contender) error {
	w.look("install")
	return nil
}

func (w *leaseWatcher) Uninstall(context.Context, *Cluster, *contender.Contender) error {
	w.look("uninstall")
	return w.stays
}

// While a contender is taken off, the run still says that it is under way.
func TestLeaseOutlivesTheContender(t *testing.T) {
	i := &leaseWatcher{t: t}
	b := newBed(t, Options{Install: i}, testNode("a"))
	i.b = b
	n := up(t, b.arena(t), &contender.Contender{ID: "cilium"})
	if err := n.Down(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"install: held", "uninstall: held"}, i.saw); diff != "" {
		t.Error(diff)
	}
	if left := b.left(t); left != nil {
		t.Errorf("left: %v", left)
	}
}

// A contender that could not be taken off has a run that is under way until that is
// tried with success: clean in another terminal leaves it alone meanwhile.
func TestLeaseOutlivesAFailedRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &leaseWatcher{t: t}
		i.stays = errors.New("left behind: cilium_vxlan")
		b := newBed(t, Options{Install: i}, testNode("a"))
		b.Exec = (&pod{}).exec
		i.b = b
		l, err := b.holdLease(t.Context(), "r", leaseName, "r")
		if err != nil {
			t.Fatal(err)
		}
		if err := b.client.Tracker().Add(namespaceFor("r", "r", "privileged", nil)); err != nil {
			t.Fatal(err)
		}
		a := &Arena{cl: b.Cluster, opt: b.Options}
		n := &network{arena: a, cl: b.Cluster, contender: &contender.Contender{ID: "cilium"}, run: "r", namespace: "r", made: true, installed: true, lease: l, cancel: func() {}}
		if err := n.Down(t.Context()); !errors.Is(err, i.stays) {
			t.Errorf("down: %v", err)
		}
		did, err := leftovers{b.Cluster}.clean(t.Context(), false)
		if diff := cmp.Diff(&Cleaned{Spared: []string{"r"}}, did); diff != "" || err != nil {
			t.Error(diff, err)
		}
		if err := a.removeRemaining(t.Context()); !errors.Is(err, i.stays) {
			t.Errorf("remove remaining networks: %v", err)
		}
		i.stays = nil
		if err := a.removeRemaining(t.Context()); err != nil {
			t.Errorf("remove remaining networks: %v", err)
		}
		if diff := cmp.Diff([]string{"uninstall: held", "uninstall: held", "uninstall: held"}, i.saw); diff != "" {
			t.Error(diff)
		}
		if _, err := b.client.CoreV1().Namespaces().Get(t.Context(), "r", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the namespace stays: %v", err)
		}
	})
}

// A pod that ended by itself, or for want of memory, is not the image's fault.
func TestAbandonedPod(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "cnibench: the run gave no sign for 2m0s\n"}},
	}}}}
	_, err := podRuns(p)
	if err == nil || arena.AsUnsupported(err) != nil || !strings.Contains(err.Error(), "its lease was not renewed") {
		t.Error(err)
	}
	p.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
	_, err = podRuns(p)
	if err == nil || arena.AsUnsupported(err) != nil || !strings.Contains(err.Error(), "--pod-memory") {
		t.Error(err)
	}
}
