package kube

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Nodes are completed by their names, pods with their namespace; without a right, or without
// a kubeconfig, there is nothing to complete.
func TestNames(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api/v1/nodes":
			fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`)
		case "/api/v1/pods":
			fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","items":[{"metadata":{"name":"cart","namespace":"shop"}}]}`)
		default:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","status":"Failure","code":403}`)
		}
	}))
	defer server.Close()
	config := filepath.Join(t.TempDir(), "config")
	text := `{"clusters":[{"name":"c","cluster":{"server":"` + server.URL + `"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[string][]string{"nodes": {"a", "b"}, "pods": {"shop/cart"}, "namespaces": nil} {
		if diff := cmp.Diff(want, Names(t.Context(), Options{Kubeconfig: config}, resource)); diff != "" {
			t.Errorf("%s: %s", resource, diff)
		}
	}
	if names := Names(t.Context(), Options{Kubeconfig: config + ".none"}, "nodes"); names != nil {
		t.Error(names)
	}
}
