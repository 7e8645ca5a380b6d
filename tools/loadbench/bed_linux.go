package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/linux"
)

// bed is where everything runs: a client's and a server's network namespace
// with a veth between them, each with a CPU of its own.
type bed struct {
	cnibench string // the program under test
	dir      string // for files
	client   place
	server   place
}

// place is one side of the bed.
type place struct {
	ns   *linux.NetNS
	cpu  int
	addr netip.Addr
}

const (
	device    = "eth0"
	prefix    = "/24"
	httpPort  = 8080
	stopLimit = 5 * time.Second
)

// newBed makes the bed. It goes away with this process, or with close.
func newBed(ctx context.Context, cnibench, dir string) (b *bed, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("CPUs: %w", err)
	}
	var cpus []int
	for cpu := 0; len(cpus) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	if len(cpus) < 2 {
		return nil, errors.New("two CPUs are needed: one for the client and one for the server")
	}
	b = &bed{
		cnibench: cnibench, dir: dir,
		client: place{cpu: cpus[0], addr: netip.MustParseAddr("10.83.0.1")},
		server: place{cpu: cpus[1], addr: netip.MustParseAddr("10.83.0.2")},
	}
	if b.client.ns, err = linux.NewNetNS("client"); err != nil {
		return nil, err
	}
	if b.server.ns, err = linux.NewNetNS("server"); err != nil {
		b.client.ns.Close()
		return nil, err
	}
	steps := []struct {
		at   place
		argv []string
	}{
		{b.client, []string{"ip", "link", "add", device, "type", "veth", "peer", "name", device, "netns", b.server.ns.Path()}},
		{b.client, []string{"ip", "addr", "add", b.client.addr.String() + prefix, "dev", device}},
		{b.server, []string{"ip", "addr", "add", b.server.addr.String() + prefix, "dev", device}},
		{b.client, []string{"ip", "link", "set", device, "up"}},
		{b.server, []string{"ip", "link", "set", device, "up"}},
	}
	for _, step := range steps {
		if _, err := b.run(ctx, step.at, step.argv...); err != nil {
			b.close()
			return nil, err
		}
	}
	// bbr, where it is the default, paces in namespaces to no good; reno is
	// the one that every namespace may use.
	for _, at := range []place{b.client, b.server} {
		if err := at.ns.SetSysctl("net.ipv4.tcp_congestion_control", "reno"); err != nil {
			b.close()
			return nil, err
		}
	}
	return b, nil
}

func (b *bed) close() {
	b.client.ns.Close()
	b.server.ns.Close()
}

// target is where the HTTP server listens.
func (b *bed) target() netip.AddrPort { return netip.AddrPortFrom(b.server.addr, httpPort) }

func (b *bed) url() string { return "http://" + b.target().String() + "/" }

// running is a program on the bed.
type running struct {
	host.Process
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer // to be read after wait
}

// start starts a program on a side and its CPU, and keeps what it prints.
func (b *bed) start(ctx context.Context, at place, argv ...string) (*running, error) {
	return b.startBetween(ctx, at, nil, nil, argv...)
}

// startBetween gives the program a standard input, and hands its standard output to w
// instead, if there are such.
func (b *bed) startBetween(ctx context.Context, at place, in io.Reader, w io.Writer, argv ...string) (*running, error) {
	r := &running{}
	if w == nil {
		w = &r.stdout
	}
	p, err := host.StartWith(ctx, host.Command{Argv: argv, Stdin: in, Stdout: w, Stderr: &r.stderr},
		func(cmd *exec.Cmd) { r.cmd = cmd },
		func(cmd *exec.Cmd) error { return at.ns.Start(cmd, []int{at.cpu}) })
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	r.Process = p
	return r, nil
}

// wait waits for the program's end.
func (r *running) wait() error {
	if err := r.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(r.stderr.Bytes()))
	}
	return nil
}

// cpu is what the program and its children that it waited for have used.
func (r *running) cpu() time.Duration {
	return r.cmd.ProcessState.UserTime() + r.cmd.ProcessState.SystemTime()
}

// stop has the program end by itself.
func (r *running) stop() error {
	if err := r.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	kill := time.AfterFunc(stopLimit, func() { _ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) })
	defer kill.Stop()
	return r.wait()
}

// run runs a program to its end.
func (b *bed) run(ctx context.Context, at place, argv ...string) (*running, error) {
	r, err := b.start(ctx, at, argv...)
	if err != nil {
		return nil, err
	}
	return r, r.wait()
}

// awaitServer waits until the server answers; one that does not is ended.
func (b *bed) awaitServer(ctx context.Context, server *running) (*running, error) {
	_, err := b.run(ctx, b.client, b.cnibench, "load", "http", b.url(), "--rate", "100", "--duration", "50ms", "--wait", "10s", "--json")
	if err != nil {
		return nil, errors.Join(err, server.stop())
	}
	return server, nil
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s" }
