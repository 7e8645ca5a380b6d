package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/text"
)

// kubeconfig is a file with that server.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: lab
clusters: [{name: c, cluster: {server: %q}}]
contexts: [{name: lab, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
`, server)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestConnect(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	refuse := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer refuse.Close()
	forbid := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	}))
	defer forbid.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	for name, c := range map[string]struct {
		o    Options
		says string
	}{
		"no kubeconfig":       {Options{}, "no --kubeconfig, $KUBECONFIG"},
		"unreachable":         {Options{Kubeconfig: kubeconfig(t, "http://"+nobody)}, "the cluster at http://" + nobody + " does not answer"},
		"credentials expired": {Options{Kubeconfig: kubeconfig(t, refuse.URL)}, "refuses the credentials, which may have expired"},
		"may not":             {Options{Kubeconfig: kubeconfig(t, forbid.URL)}, "answers, but may not be asked for its version"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Connect(t.Context(), c.o)
			if text := unsupported(t, err); !strings.Contains(text, c.says) {
				t.Error(text)
			}
		})
	}
	_, err = Connect(t.Context(), Options{Kubeconfig: "no/such/file"})
	if text := usageText(t, err); !strings.Contains(text, "--kubeconfig no/such/file: there is no such file") {
		t.Error(text)
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("{apiVersion: v1, kind: Pod"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Connect(t.Context(), Options{Kubeconfig: broken})
	_ = usageText(t, err)
	var unknown *text.UnknownError
	if _, err := Connect(t.Context(), Options{Kubeconfig: kubeconfig(t, refuse.URL), Context: "lap"}); !errors.As(err, &unknown) || !strings.Contains(err.Error(), `did you mean "lab"`) {
		t.Errorf("an unknown context: %v", err)
	}
}

// An interruption is no word about the cluster.
func TestConnectInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan struct{})
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-asked
	}))
	defer hang.Close()
	defer close(asked)
	_, err := Connect(ctx, Options{Kubeconfig: kubeconfig(t, hang.URL)})
	if !errors.Is(err, context.Canceled) || arena.AsUnsupported(err) != nil {
		t.Errorf("%v", err)
	}
}

func TestConnectAnswers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"major":"1","minor":"34","gitVersion":"v1.34.4"}`)
	}))
	defer server.Close()
	cl, err := Connect(t.Context(), Options{Kubeconfig: kubeconfig(t, server.URL)})
	if err != nil {
		t.Fatal(err)
	}
	if cl.Version.GitVersion != "v1.34.4" || cl.Context != "lab" {
		t.Errorf("%+v", cl)
	}
}

func TestRetry(t *testing.T) {
	away := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	resource := schema.GroupResource{Resource: "pods"}
	forbidden := apierrors.NewForbidden(resource, "x", errors.New("RBAC is not yet loaded"))
	for name, c := range map[string]struct {
		errs  []error
		tries int32
	}{
		"at once":                   {nil, 1},
		"away for a moment":         {[]error{away, away}, 3},
		"overloaded":                {[]error{apierrors.NewTooManyRequests("later", 1)}, 2},
		"not found":                 {[]error{apierrors.NewNotFound(resource, "x"), nil}, 1},
		"forbidden":                 {[]error{forbidden}, 1},
		"forbidden after it was up": {[]error{away, forbidden}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			var tries atomic.Int32
			said := 0
			cl := &Cluster{Options: Options{Log: func(string, ...any) { said++ }}}
			err := cl.do(t.Context(), "ask", func(context.Context) error {
				n := int(tries.Add(1))
				if n <= len(c.errs) {
					return c.errs[n-1]
				}
				return nil
			})
			if tries.Load() != c.tries {
				t.Errorf("%d tries, want %d; %v", tries.Load(), c.tries, err)
			}
			if (said == 1) != (c.tries > 1) {
				t.Errorf("%d messages about %d tries", said, c.tries)
			}
			if last := int(c.tries); last <= len(c.errs) && (err == nil || !strings.HasPrefix(err.Error(), "ask: ")) {
				t.Errorf("error %v", err)
			}
		})
	}
	err := Retry(t.Context(), time.Millisecond, func(context.Context) error { return away }, func(error) bool { return true })
	if !errors.Is(err, away) || !strings.Contains(err.Error(), "tried for") {
		t.Errorf("after all patience: %v", err)
	}
}
