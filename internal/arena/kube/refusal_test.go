package kube

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"
)

// Only what a policy refuses is the host network; a quota's words are its own,
// and a namespace that has no service account yet is waited for.
func TestHostNetworkRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		why     error
		times   int
		refused bool // the host network
		allowed bool
	}{
		"Pod Security":        {forbidden(podSecurity), -1, true, false},
		"an admission policy": {forbidden("ValidatingAdmissionPolicy 'x' with binding 'y' denied request: not for you"), -1, true, false},
		"a webhook":           {apierrors.NewBadRequest(`admission webhook "x" denied the request: not for you`), -1, true, false},
		"OpenShift":           {forbidden("unable to validate against any security context constraint: []"), -1, true, false},
		"a quota":             {forbidden("exceeded quota: q, requested: pods=1, used: pods=4, limited: pods=4"), -1, false, false},
		"too new a namespace": {forbidden(`error looking up service account x/default: serviceaccount "default" not found`), 2, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, Options{}, testNode("a"), testNode("b"))
			refuseHost(b, c.times, c.why)
			a := b.arena(t)
			err := a.Supports(t.Context(), baseline)
			if c.allowed {
				if err != nil {
					t.Error(err)
				}
				return
			}
			text := unsupported(t, err)
			if !strings.Contains(text, c.why.Error()) || strings.Contains(text, "refuses pods in the host network") != c.refused {
				t.Error(text)
			}
			if left := b.left(t); left != nil {
				t.Errorf("left: %v", left)
			}
			if c.refused {
				return
			}
			if _, err := a.Up(t.Context(), here, ""); err == nil || !strings.Contains(err.Error(), c.why.Error()) {
				t.Errorf("up: %v", err)
			}
		})
	}
}

// An error that may pass is no answer: it is asked again.
func TestHostNetworkIsAskedAgain(t *testing.T) {
	b := newBed(t, Options{}, testNode("a"))
	fails := true
	b.client.PrependReactor("create", "namespaces", func(a ktesting.Action) (bool, runtime.Object, error) {
		if !fails {
			return false, nil, nil
		}
		fails = false // it is made, and the answer is lost
		n := a.(ktesting.CreateAction).GetObject()
		if err := b.client.Tracker().Create(a.GetResource(), n, ""); err != nil {
			return true, nil, err
		}
		return true, nil, apierrors.NewBadRequest("lost")
	})
	a := b.arena(t)
	if err := a.Supports(t.Context(), baseline); err == nil {
		t.Error("no error")
	}
	if left := b.left(t); left != nil {
		t.Errorf("left: %v", left)
	}
	if err := a.Supports(t.Context(), baseline); err != nil {
		t.Error(err)
	}
}

// A node that has died since is not waited for.
func TestUpOnANodeThatDied(t *testing.T) {
	b := newBed(t, Options{}, testNode("a"), testNode("b"))
	a := b.arena(t)
	if _, err := b.client.CoreV1().Nodes().Update(t.Context(), testNode("b", sick), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.pod = func(p *corev1.Pod) {
		if p.Spec.NodeName == "b" {
			p.Status = corev1.PodStatus{Phase: corev1.PodPending}
		}
	}
	begin := time.Now()
	_, err := a.Up(t.Context(), here, "")
	if err == nil || !strings.Contains(err.Error(), "node b (node2) does not answer: Kubelet stopped") {
		t.Errorf("error %v", err)
	}
	if time.Since(begin) > upPatience/2 {
		t.Error("it was waited for")
	}
}
