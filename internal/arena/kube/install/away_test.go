package install

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// outages are what keeps the API server from doing its work.
var outages = map[string]struct {
	err error
	of  func(verb string) bool // the requests that it concerns
}{
	"away": {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, func(string) bool { return true }},
	"a stalled webhook": {
		apierrors.NewInternalError(errors.New(`failed calling webhook "x.example": context deadline exceeded`)),
		func(verb string) bool { return verb != "get" && verb != "list" },
	},
	"its store is full": {
		apierrors.NewInternalError(errors.New("etcdserver: mvcc: database space exceeded")),
		func(verb string) bool { return verb == "create" || verb == "update" || verb == "patch" },
	},
}

// The API server does not do its work for a while from any one request of an
// installation and a removal on: where the patience is longer, nobody notices; where it
// is not, clean brings the cluster back.
func TestAPIServerAway(t *testing.T) {
	before := newFaulty(t).state(t)
	step := needs.Trials(1, 4) // from every request on, or from each fourth
	for name, o := range outages {
		for _, long := range []bool{false, true} {
			for from, total := 1, 1; from <= total; from += step {
				t.Run(fmt.Sprintf("%s/long=%v/%d", name, long, from), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						f := newFaulty(t)
						outage := 20 * time.Second
						if long {
							outage = 10 * time.Minute
						}
						requests, since := 0, time.Time{}
						f.away = func(verb string) error {
							if !o.of(verb) {
								return nil
							}
							if requests++; requests == from {
								since = time.Now()
							}
							if !since.IsZero() && time.Since(since) < outage {
								return o.err
							}
							return nil
						}
						ctx, in := f.started(t)
						err := errors.Join(in.Install(ctx, f.Cluster, recipe()), in.Uninstall(ctx, f.Cluster, recipe()))
						if !long && err != nil {
							t.Error(err)
						}
						if total = max(total, from+step); since.IsZero() {
							total = 0 // there are no more
						}
						if long && !since.IsZero() {
							time.Sleep(outage)
							ctx, in := f.started(t)
							if _, err := in.Clean(ctx, f.Cluster, []*contender.Contender{recipe()}); err != nil {
								t.Error(err)
							}
						}
						if diff := cmp.Diff(before, f.state(t)); diff != "" {
							t.Error(diff)
						}
					})
				})
			}
		}
	}
}

// A node that does not answer while a contender is taken off: that is said, the journal
// stays, and clean ends the removal once the node is back.
func TestNodeAwayWhileTakingOff(t *testing.T) {
	before := newFaulty(t).state(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFaulty(t)
		ctx, in := f.started(t)
		if err := in.Install(ctx, f.Cluster, recipe()); err != nil {
			t.Fatal(err)
		}
		lost := errors.New("node a does not answer: Kubelet stopped posting node status.")
		f.gone = func(string) error { return lost }
		if err := in.Uninstall(ctx, f.Cluster, recipe()); !errors.Is(err, lost) {
			t.Errorf("uninstall: %v", err)
		}
		left, err := in.loadJournal(ctx, f.Cluster)
		if err != nil || left == nil {
			t.Fatalf("the journal: %v, %v", left, err)
		}
		_, again := f.started(t)
		if _, err := again.Clean(ctx, f.Cluster, []*contender.Contender{recipe()}); err == nil || !strings.Contains(err.Error(), lost.Error()) {
			t.Errorf("clean: %v", err)
		}
		f.gone = func(string) error { return nil }
		if _, err := again.Clean(ctx, f.Cluster, []*contender.Contender{recipe()}); err != nil {
			t.Errorf("clean: %v", err)
		}
		if diff := cmp.Diff(before, f.state(t)); diff != "" {
			t.Error(diff)
		}
	})
}

// An installer's namespace without a journal is one of a killed process, or of one that
// is about to make the journal: clean looks which, and asks no clock of the cluster.
func TestCleanBare(t *testing.T) {
	const begins = "another installation begins meanwhile"
	for _, clock := range []time.Duration{0, -24 * time.Hour, 24 * time.Hour} {
		for _, what := range []string{"abandoned", begins, "somebody else's"} {
			t.Run(fmt.Sprintf("%s, the cluster's clock %v off", what, clock), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFaulty(t)
					bare := namespace(ownNamespace, ourLabels)
					if what == "somebody else's" {
						bare.Labels = nil
					}
					bare.CreationTimestamp = metav1.NewTime(time.Now().Add(clock))
					if err := errors.Join(f.client.Tracker().Add(bare), f.dynamic.Tracker().Add(object("v1", "Namespace", "", ownNamespace))); err != nil {
						t.Fatal(err)
					}
					ctx, in := f.started(t)
					if what == begins {
						_, other := f.started(t)
						j, err := other.job(f.Cluster, recipe())
						if err != nil {
							t.Fatal(err)
						}
						go func() {
							time.Sleep(emptyPatience / 2)
							if err := j.lock(t.Context()); err != nil {
								t.Error(err)
							}
						}()
					}
					did, err := in.Clean(ctx, f.Cluster, []*contender.Contender{recipe()})
					if err != nil {
						t.Error(err)
					}
					if removed := did != ""; removed != (what == "abandoned") {
						t.Errorf("removed: %q", did)
					}
				})
			})
		}
	}
}
