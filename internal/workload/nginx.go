package workload

import (
	"context"
	_ "embed"
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
	"github.com/cnibench/cnibench/internal/load/serve"
)

// maxNginxResponse is the largest response that one parameter of nginx's
// configuration, at most 4096 bytes, can hold as its body.
const maxNginxResponse = 4 << 10

// pageFile is the name of the file below nginx's folder that has the body.
const pageFile = "page"

// maxNginxFile is the largest response from a file. This process holds the file in memory
// while it writes it at the server.
const maxNginxFile = 64 << 20

// NginxSetup says what NginxConfig writes.
type NginxSetup struct {
	Listen      netip.AddrPort
	Dir         string
	Workers     int
	CPUs        []int // to which the workers are bound, one each; nil: not bound
	Connections int
	Size        int  // of a response, serve.HeaderBytes of which are its header
	Each        bool // the client closes the connection after every request
	File        bool // the response is in Dir/pageFile
}

// nginxConf is the configuration with words in capitals where NginxConfig puts values.
//
//go:embed nginx.conf
var nginxConf string

// NginxConfig returns the whole configuration of an nginx that answers every request with
// the same bytes. nginx writes only into Dir, so that it needs no rights elsewhere. Without
// File, the response is in the configuration itself: nginx would open a file for every
// request, which has nothing to do with the network.
func NginxConfig(n NginxSetup) (string, error) {
	body, maximum := n.Size-serve.HeaderBytes, maxNginxResponse
	if n.File {
		maximum = maxNginxFile
	}
	if body < 1 || n.Size > maximum {
		return "", fmt.Errorf("a response of %d bytes; nginx is set up for %d to %d, with file: true to %d, and server: cnibench gives larger ones",
			n.Size, serve.HeaderBytes+1, maximum, maxNginxFile)
	}
	connection := "keep-alive"
	if n.Each {
		connection = "close"
	}
	// The header that nginx writes with server_tokens off; only X-Pad is added by the configuration.
	header := "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: text/plain\r\n" +
		"Content-Length: " + strconv.Itoa(body) + "\r\nConnection: " + connection + "\r\nX-Pad: \r\n\r\n"
	content := `return 200 "` + strings.Repeat("x", body) + `";`
	if n.File {
		header += "Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
		content = `root "` + n.Dir + `"; try_files /` + pageFile + ` =404; etag off; max_ranges 0;`
	}
	affinity := ""
	if n.CPUs != nil {
		affinity = "worker_cpu_affinity"
		for _, cpu := range n.CPUs {
			affinity += " 1" + strings.Repeat("0", cpu)
		}
		affinity += ";"
	}
	pad := strings.Repeat("x", serve.HeaderBytes-len(header))
	return strings.NewReplacer(
		"DIR", n.Dir, "LISTEN", n.Listen.String(), "WORKERS", strconv.Itoa(n.Workers), "AFFINITY", affinity,
		"CONNECTIONS", strconv.Itoa(n.Connections+64), // a worker may get all connections, and needs a few for itself
		"PAD", pad, "CONTENT", content,
	).Replace(nginxConf), nil
}

// httpServer starts the server that the session's parameters ask for. It does not wait
// until the server listens: the client does.
func (c *programGroup) httpServer(self string, listen netip.AddrPort, size int) (*program, error) {
	argv, err := httpServerArgs(c.ctx, c.s, self, listen, size)
	if err != nil {
		return nil, err
	}
	return c.start(c.s.Server, "server", ".txt", argv...)
}

// httpServerArgs writes the server's files and returns its command line.
func httpServerArgs(ctx context.Context, s *Session, self string, listen netip.AddrPort, size int) ([]string, error) {
	stall := s.Params.String("stall")
	workers, cpus := s.spread("workers", s.Server, s.Client)
	switch server := s.Params.String("server"); {
	case server == "cnibench":
		argv := []string{self, "serve", "http", "--listen", listen.String(), "--size", strconv.Itoa(size),
			"--threads", strconv.Itoa(workers)}
		if stall != "" {
			argv = append(argv, "--stall", stall, "--every", s.Params.String("every"))
		}
		return argv, nil
	case server != "nginx":
		return nil, fmt.Errorf("server %q is unknown; choose nginx or cnibench", server)
	case stall != "":
		return nil, errors.New("nginx does not stall on purpose; use server: cnibench")
	}
	dir, fromFile := s.Server.Dir(), s.Params.Bool("file")
	config, err := NginxConfig(NginxSetup{
		Listen: listen, Dir: dir, Workers: workers, CPUs: cpus, Connections: s.Params.Int("connections"), Size: size,
		Each: s.Params.Bool("connection_per_request"), File: fromFile,
	})
	if err != nil {
		return nil, err
	}
	if fromFile {
		if err := writeAt(ctx, s.Server, path.Join(dir, pageFile), strings.Repeat("x", size-serve.HeaderBytes)); err != nil {
			return nil, err
		}
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

// stopPatience is how long a server may take to end after SIGTERM.
const stopPatience = 3 * time.Second

// stop ends a server and waits for its end. Errors: the server had ended before, or it
// exits with an error, as nginx does if its port was taken; then another server has
// answered. The exit codes in allowed are no error.
func (c *programGroup) stop(server *program, allowed ...int) error {
	if server.ended() {
		return fmt.Errorf("the server ended in the middle of the step: %w", server.explainEnd())
	}
	if err := server.process.Signal(syscall.SIGTERM); err != nil {
		c.kill()
	}
	if err := c.await(time.Now().Add(stopPatience), server); err != nil {
		c.kill() // the exit code of a killed server says nothing
		<-server.exited
		return nil
	}
	var exit *host.ExitError
	if err := server.failure(); err != nil && !(errors.As(err, &exit) && slices.Contains(allowed, exit.Code)) {
		return fmt.Errorf("the server was not serving: %w", err)
	}
	return nil
}

// writeAt writes a file at an endpoint, whose file system may not be the runner's.
func writeAt(ctx context.Context, e arena.Endpoint, name, text string) error {
	return runWriter(ctx, e, `cat >"$1"`, name, text)
}

func runWriter(ctx context.Context, e arena.Endpoint, script, name, text string) error {
	p, err := e.Start(ctx, host.Command{Argv: []string{"sh", "-c", script, "sh", name}, Stdin: strings.NewReader(text), OffMeasuredCPUs: true})
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
