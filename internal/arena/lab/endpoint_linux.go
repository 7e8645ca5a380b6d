package lab

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/linux"
)

// endpoint is a node or a pod of the lab.
type endpoint struct {
	net  *labNetwork
	box  *linux.NetNS
	node string
	addr netip.Addr
	cpus []int // for measured commands; empty: all CPUs
}

func (n *labNetwork) endpoint(box *linux.NetNS, node string, addr netip.Addr) *endpoint {
	return &endpoint{net: n, box: box, node: node, addr: addr}
}

// bindTo returns the endpoint with its measured commands bound to the CPUs.
func (e *endpoint) bindTo(cpus []int) *endpoint {
	bound := *e
	bound.cpus = cpus
	return &bound
}

// Name implements arena.Endpoint.
func (e *endpoint) Name() string { return e.box.Name }

// Node implements arena.Endpoint.
func (e *endpoint) Node() string { return e.node }

// Addr implements arena.Endpoint.
func (e *endpoint) Addr() netip.Addr { return e.addr }

// CPUs implements arena.Endpoint.
func (e *endpoint) CPUs() []int { return e.cpus }

// Dir implements arena.Endpoint.
func (e *endpoint) Dir() string {
	dir := filepath.Join(e.net.dir, e.box.Name)
	_ = os.MkdirAll(dir, 0o755) // a user of the folder sees the error
	return dir
}

// Start implements host.Runner.
func (e *endpoint) Start(ctx context.Context, c host.Command) (host.Process, error) {
	cpus := e.cpus
	if c.OffMeasuredCPUs {
		cpus = e.net.lab.opt.CPUs.Rest
	}
	p, err := host.StartWith(ctx, c, nil, func(cmd *exec.Cmd) error { return e.box.Start(cmd, cpus) })
	if err != nil {
		return nil, err
	}
	t := &tracked{Process: p, ended: make(chan struct{})}
	e.net.procs.Add(1)
	go func() {
		defer e.net.procs.Done()
		t.err = p.Wait()
		close(t.ended)
	}()
	return t, nil
}

// tracked is a process that the network waits for. Its starter may wait, too.
type tracked struct {
	host.Process
	ended chan struct{}
	err   error
}

func (t *tracked) Wait() error {
	<-t.ended
	return t.err
}
