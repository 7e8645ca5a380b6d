package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/serve"
)

// maxNginxResponse is the largest response that one parameter of nginx's
// configuration, at most 4096 bytes, can hold as its body.
const maxNginxResponse = 4 << 10

// NginxConfig is the whole configuration of an nginx that answers every
// request with size bytes, serve.HeaderBytes of them header. Everything that
// it writes is in dir, so that it needs no rights there or elsewhere. The
// response is in the configuration itself: a file would be opened for every
// request, which has nothing to do with the network. each says that every
// request asks for the end of its connection.
func NginxConfig(listen netip.AddrPort, dir string, workers, connections, size int, each bool) (string, error) {
	body := size - serve.HeaderBytes
	if body < 1 || size > maxNginxResponse {
		return "", fmt.Errorf("a response of %d bytes; nginx is set up for %d to %d, and server: cnibench gives larger ones",
			size, serve.HeaderBytes+1, maxNginxResponse)
	}
	after := "keep-alive"
	if each {
		after = "close"
	}
	// As nginx writes it with server_tokens off; only the pad is ours.
	header := "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: text/plain\r\n" +
		"Content-Length: " + strconv.Itoa(body) + "\r\nConnection: " + after + "\r\nX-Pad: \r\n\r\n"
	pad := strings.Repeat("x", serve.HeaderBytes-len(header))
	return strings.NewReplacer(
		"DIR", dir, "LISTEN", listen.String(), "WORKERS", strconv.Itoa(workers),
		"CONNECTIONS", strconv.Itoa(connections+64), // any worker may get them all, and needs some of its own
		"PAD", pad, "BODY", strings.Repeat("x", body),
	).Replace(`daemon off;
# A user namespace may map one user only, so that the workers cannot become another.
user root;
worker_processes WORKERS;
pid "DIR/nginx.pid";
error_log stderr warn;
events {
    worker_connections CONNECTIONS;
}
http {
    access_log off;
    server_tokens off;
    default_type text/plain;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    client_body_temp_path "DIR/nginx-body";
    proxy_temp_path "DIR/nginx-proxy";
    fastcgi_temp_path "DIR/nginx-fastcgi";
    uwsgi_temp_path "DIR/nginx-uwsgi";
    scgi_temp_path "DIR/nginx-scgi";
    server {
        listen LISTEN backlog=4096;
        location / {
            add_header X-Pad "PAD";
            return 200 "BODY";
        }
    }
}
`), nil
}

// httpServer starts what the session's parameters ask for. That it listens is
// the client's business to find out.
func (c *crew) httpServer(self string, listen netip.AddrPort, size int) (*program, error) {
	argv, err := httpServerArgs(c.ctx, c.s, self, listen, size)
	if err != nil {
		return nil, err
	}
	return c.start(c.s.Server, "server", ".txt", argv...)
}

// httpServerArgs is the server's command line; what it needs is written before.
func httpServerArgs(ctx context.Context, s *Session, self string, listen netip.AddrPort, size int) ([]string, error) {
	stall := s.Params.String("stall")
	switch server := s.Params.String("server"); {
	case server == "cnibench":
		argv := []string{self, "serve", "http", "--listen", listen.String(), "--size", strconv.Itoa(size),
			"--threads", strconv.Itoa(s.Params.Int("workers"))}
		if stall != "" {
			argv = append(argv, "--stall", stall, "--every", s.Params.String("every"))
		}
		return argv, nil
	case server != "nginx":
		return nil, fmt.Errorf("server %q; there are nginx and cnibench", server)
	case stall != "":
		return nil, errors.New("nginx does not stall on purpose; use server: cnibench")
	}
	dir := s.Server.Dir()
	config, err := NginxConfig(listen, dir, s.Params.Int("workers"), s.Params.Int("connections"), size, s.Params.Bool("connection_per_request"))
	if err != nil {
		return nil, err
	}
	if err := writeRaw(s.Raw, "nginx.conf", config); err != nil {
		return nil, err
	}
	file := path.Join(dir, "nginx.conf")
	if err := writeAt(ctx, s.Server, file, config); err != nil {
		return nil, err
	}
	return []string{"nginx", "-e", "stderr", "-p", dir, "-c", file}, nil
}

// stopPatience is how long a server may take to end by itself.
const stopPatience = 3 * time.Second

// stop ends a server and waits for it. Errors: a server that was dead before,
// or that had not come to serving (nginx waits for a port that is taken), so
// that something else must have answered. Exit codes in fine are an end in
// order, too.
func (c *crew) stop(server *program, fine ...int) error {
	if server.ended() {
		return fmt.Errorf("the server died in the middle of the step: %w", server.died())
	}
	if err := server.process.Signal(syscall.SIGTERM); err != nil {
		c.kill()
	}
	if err := c.await(time.Now().Add(stopPatience), server); err != nil {
		c.kill() // an end that is not its own says nothing
		<-server.exited
		return nil
	}
	var exit *host.ExitError
	if err := server.failure(); err != nil && !(errors.As(err, &exit) && slices.Contains(fine, exit.Code)) {
		return fmt.Errorf("the server was not serving: %w", err)
	}
	return nil
}

// writeAt writes a file at an endpoint, which need not share the runner's
// file system.
func writeAt(ctx context.Context, e arena.Endpoint, name, text string) error {
	p, err := e.Start(ctx, host.Command{
		Argv: []string{"sh", "-c", `cat >"$1"`, "sh", name}, Stdin: strings.NewReader(text), Aside: true,
	})
	if err == nil {
		err = p.Wait()
	}
	if err != nil {
		return fmt.Errorf("write %s at %s: %w", name, e.Name(), err)
	}
	return nil
}

func writeRaw(raw Raw, name, text string) error {
	w, err := raw.Create(name)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return errors.Join(err, w.Close())
}
