package workload

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/host"
)

// How long a server may take until it listens, and the time from one look to the next.
const (
	listenPatience = 5 * time.Second
	listenPoll     = 5 * time.Millisecond
)

// awaitListening waits until the servers listen on their ports, as the endpoint's socket
// table shows. A test connection would end a server that serves a single client, and not
// every server prints that it is ready.
func awaitListening(ctx context.Context, e arena.Endpoint, servers []*program, ports []int) error {
	deadline := time.Now().Add(listenPatience)
	for {
		taken, err := listListeners(ctx, e)
		if err != nil {
			return err
		}
		ready := true
		for i, server := range servers {
			if server.ended() {
				return fmt.Errorf("%s ended before it listened on port %d", server.role, ports[i])
			}
			if !taken[ports[i]] {
				ready = false
				if time.Now().After(deadline) {
					return fmt.Errorf("%s does not listen on port %d after %v; its .stderr file among the raw files may say why", server.role, ports[i], listenPatience)
				}
			}
		}
		if ready {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(listenPoll):
		}
	}
}

// freePorts returns n ports, the lowest from first on, on which nothing listens at the endpoint.
func freePorts(ctx context.Context, e arena.Endpoint, first, n int) ([]int, error) {
	taken, err := listListeners(ctx, e)
	if err != nil {
		return nil, err
	}
	var ports []int
	for port := first; port < 1<<16 && len(ports) < n; port++ {
		if !taken[port] {
			ports = append(ports, port)
		}
	}
	if len(ports) < n {
		return nil, fmt.Errorf("%s: no %d free TCP ports from %d on", e.Name(), n, first)
	}
	return ports, nil
}

// listListeners returns the TCP ports that have a listener at the endpoint.
func listListeners(ctx context.Context, e arena.Endpoint) (map[int]bool, error) {
	var out bytes.Buffer
	// On a kernel without IPv6 there is no tcp6; cat fails, but prints the other file.
	cmd := host.Command{Argv: []string{"cat", "/proc/net/tcp", "/proc/net/tcp6"}, Stdout: &out, OffMeasuredCPUs: true}
	p, err := e.Start(ctx, cmd)
	if err != nil {
		return nil, fmt.Errorf("read the sockets of %s: %w", e.Name(), err)
	}
	err = p.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil && out.Len() == 0 {
		return nil, fmt.Errorf("read the sockets of %s: %w", e.Name(), err)
	}
	ports, err := parseListening(&out)
	if err != nil {
		return nil, fmt.Errorf("sockets of %s: %w", e.Name(), err)
	}
	return ports, nil
}

// stateListen is TCP_LISTEN as /proc/net/tcp prints it (include/net/tcp_states.h).
const stateListen = "0A"

// parseListening returns the ports with a listener from the text of /proc/net/tcp and
// /proc/net/tcp6, in any number and order.
func parseListening(r io.Reader) (map[int]bool, error) {
	ports := map[int]bool{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) == 0 || f[0] == "sl" {
			continue
		}
		if len(f) < 4 {
			return nil, fmt.Errorf("/proc/net/tcp: line %q is cut off", lines.Text())
		}
		_, hex, found := strings.Cut(f[1], ":")
		port, err := strconv.ParseUint(hex, 16, 16)
		if !found || err != nil {
			return nil, fmt.Errorf("/proc/net/tcp: %q is no address with a port", f[1])
		}
		if f[3] == stateListen {
			ports[int(port)] = true
		}
	}
	return ports, lines.Err()
}
