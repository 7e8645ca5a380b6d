package kube

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// stalls is an API server that answers none of the first requests, as behind an
// admission webhook that hangs.
func stalls(t *testing.T, first int32) *rest.Config {
	t.Helper()
	var asked atomic.Int32
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) <= first {
			select {
			case <-end:
			case <-r.Context().Done():
			}
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}})
	}))
	t.Cleanup(func() { close(end); server.Close() })
	return &rest.Config{Host: server.URL, Timeout: 100 * time.Millisecond, QPS: 100, Burst: 100}
}

// A request that nobody answers ends, also one without a deadline of its own, and is
// tried again; a stream has no such end.
func TestStalledServer(t *testing.T) {
	config := stalls(t, 2)
	client, err := newClient(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Pods("x").Create(context.Background(), &corev1.Pod{}, metav1.CreateOptions{}); !transient(err) {
		t.Errorf("%v is not transient", err)
	}
	cl := &Cluster{Client: client, Config: config}
	if err := cl.do(t.Context(), "make a pod", func(ctx context.Context) error {
		_, err := client.CoreV1().Pods("x").Create(ctx, &corev1.Pod{}, metav1.CreateOptions{})
		return err
	}); err != nil {
		t.Error(err)
	}
	plain := &rest.Config{}
	if got := limitRequests(plain).Timeout; got != requestTimeout || plain.Timeout != 0 {
		t.Errorf("requests end after %v, streams after %v", got, plain.Timeout)
	}
}
