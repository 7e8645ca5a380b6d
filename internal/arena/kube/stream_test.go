package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	gwebsocket "github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/host"
)

// execServer is an API server that knows exec requests only, each of which
// starts this program. Without websockets it is as old as one before 1.31.
func execServer(t *testing.T, websockets bool) (server *httptest.Server, asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var list []string
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		list = append(list, r.Method+" "+r.URL.Path)
		mu.Unlock()
		argv := r.URL.Query()["command"]
		switch {
		case r.Header.Get("Upgrade") != "websocket":
			serveSPDY(t, w, r, argv)
		case websockets:
			serveWebSocket(t, w, r, argv)
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(server.Close)
	return server, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return list
	}
}

// success is what the error stream says of a command that ended well.
func success() []byte {
	b, _ := json.Marshal(metav1.Status{Status: metav1.StatusSuccess}) // has no other form
	return b
}

func serveSPDY(t *testing.T, w http.ResponseWriter, r *http.Request, argv []string) {
	if _, err := httpstream.Handshake(r, w, []string{remotecommand.StreamProtocolV4Name}); err != nil {
		t.Error(err)
		return
	}
	opened := make(chan httpstream.Stream)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		opened <- s
		return nil
	})
	if conn == nil {
		t.Error("no SPDY connection")
		return
	}
	defer conn.Close()
	streams := map[string]httpstream.Stream{}
	for len(streams) < 4 {
		s := <-opened
		streams[s.Headers().Get(corev1.StreamType)] = s
	}
	in := streams[corev1.StreamTypeStdin]
	runFor(argv, in, streams[corev1.StreamTypeStdout], streams[corev1.StreamTypeStderr])
	_, _ = streams[corev1.StreamTypeError].Write(success())
	for _, s := range streams {
		_ = s.Close()
	}
}

func serveWebSocket(t *testing.T, w http.ResponseWriter, r *http.Request, argv []string) {
	upgrader := gwebsocket.Upgrader{Subprotocols: []string{remotecommand.StreamProtocolV5Name}}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	in, stdin := io.Pipe()
	go func() {
		defer stdin.Close()
		for {
			_, b, err := conn.ReadMessage()
			if err != nil || len(b) == 2 && b[0] == remotecommand.StreamClose {
				return
			}
			if b[0] == remotecommand.StreamStdIn {
				_, _ = stdin.Write(b[1:])
			}
		}
	}()
	var mu sync.Mutex
	channel := func(id byte) io.Writer {
		return writerFunc(func(p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return len(p), conn.WriteMessage(gwebsocket.BinaryMessage, append([]byte{id}, p...))
		})
	}
	runFor(argv, in, channel(remotecommand.StreamStdOut), channel(remotecommand.StreamStdErr))
	_, _ = channel(remotecommand.StreamErr).Write(success())
	_ = conn.WriteMessage(gwebsocket.CloseMessage, gwebsocket.FormatCloseMessage(gwebsocket.CloseNormalClosure, ""))
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// runFor runs the command as a runtime does: the end of the stream is that of
// its standard input.
func runFor(argv []string, stdin io.Reader, stdout, stderr io.Writer) {
	cmd := exec.CommandContext(context.Background(), argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return
	}
	if cmd.Start() != nil {
		return
	}
	go func() {
		_, _ = io.Copy(in, stdin)
		in.Close()
	}()
	_ = cmd.Wait()
}

func TestStreams(t *testing.T) {
	for name, c := range map[string]struct {
		websockets bool
		asked      []string
	}{
		"WebSocket": {true, []string{"GET /api/v1/namespaces/ns/pods/p/exec"}},
		"SPDY":      {false, []string{"GET /api/v1/namespaces/ns/pods/p/exec", "POST /api/v1/namespaces/ns/pods/p/exec"}},
	} {
		t.Run(name, func(t *testing.T) {
			server, asked := execServer(t, c.websockets)
			cl := &Cluster{Config: &rest.Config{Host: server.URL}}
			cl.Client = kubernetes.NewForConfigOrDie(cl.Config)
			text := strings.Repeat("0123456789", 50_000)
			var out bytes.Buffer
			p, err := agent.StartExec(t.Context(), cl.stream("ns", "p", container, []string{os.Args[0], "agent", "exec"}), host.Command{Argv: []string{"cat"}, Stdin: strings.NewReader(text), Stdout: &out})
			if err == nil {
				err = p.Wait()
			}
			if err != nil || out.String() != text {
				t.Errorf("%d bytes of %d came back, %v", out.Len(), len(text), err)
			}
			if diff := cmp.Diff(c.asked, asked()); diff != "" {
				t.Error(diff)
			}
			ctx, cancel := context.WithCancel(t.Context())
			p, err = agent.StartExec(ctx, cl.stream("ns", "p", container, []string{os.Args[0], "agent", "exec"}), host.Command{Argv: []string{"sleep", "1000"}})
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			if err := p.Wait(); err == nil {
				t.Error("sleep ended well")
			}
		})
	}
}
