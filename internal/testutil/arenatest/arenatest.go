// Package arenatest tests an arena: contenders come up and go down without
// leftovers, commands run where they should, pods reach pods. Arena packages run
// it from their tests. Next: arena.go says what an arena is.
package arenatest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// Config is what the arena under test is known to be.
type Config struct {
	Exe         string // a program that serves as agent when started with "agent"
	UnderlayMTU int    // bytes; a pod's MTU is UnderlayMTU less the contender's overhead
	PodMTU      int    // bytes; if not 0, the MTU of pods that are not the nodes themselves
	Nodes       int
}

// Run brings every contender up in the arena and checks its network. A
// contender that the arena refuses must be refused as *arena.Unsupported with
// a reason and a remedy. It returns the contenders that came up.
func Run(t *testing.T, a arena.Arena, list []*contender.Contender, c Config) []string {
	testDescription(t, a)
	var ran []string
	for _, x := range list {
		err := a.Supports(t.Context(), x)
		if u := arena.AsUnsupported(err); u != nil {
			if u.Reason == "" || u.Remedy == "" {
				t.Errorf("%s is refused without reason or remedy: %+v", x.ID, u)
			}
			if u.Program && os.Getenv("CI") == "true" {
				t.Errorf("%s is not tested: %v", x.ID, u)
			}
			t.Logf("%s is refused: %s; %s", x.ID, u.Reason, u.Remedy)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", x.ID, err)
			continue
		}
		ran = append(ran, x.ID)
		t.Run(x.ID, func(t *testing.T) { testContender(t, a, x, c) })
	}
	return ran
}

// testDescription checks what the arena says of itself before a contender is up.
func testDescription(t *testing.T, a arena.Arena) {
	t.Helper()
	if names := []string{"lab", "microvm", "kube"}; !slices.Contains(names, a.Name()) {
		t.Errorf("the arena is called %q, want one of %v", a.Name(), names)
	}
	for key, value := range a.Environment() {
		if key == "" || value == "" {
			t.Errorf("environment %q is %q", key, value)
		}
	}
	const text = "path pod: no answer within 3 seconds"
	if got := a.Anonymous(text); got != text {
		t.Errorf("a text without names became %q", got)
	}
}

// wantUnsupported checks that err is an *arena.Unsupported with all its texts.
func wantUnsupported(t *testing.T, what string, err error) {
	t.Helper()
	if u := arena.AsUnsupported(err); u == nil || u.Reason == "" || u.Remedy == "" {
		t.Errorf("%s: %v, want an *arena.Unsupported with reason and remedy", what, err)
	}
}

func testContender(t *testing.T, a arena.Arena, x *contender.Contender, c Config) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	net, err := a.Up(ctx, x, a.Variant(x))
	if err != nil {
		t.Fatalf("up: %v", err)
	}
	down := false
	defer func() {
		if !down {
			_ = net.Down(context.WithoutCancel(ctx))
		}
	}()
	if n := len(net.Nodes()); n != c.Nodes {
		t.Errorf("%d nodes, want %d", n, c.Nodes)
	}
	if n := len(net.Pods()); n < c.Nodes {
		t.Errorf("%d pods on %d nodes", n, c.Nodes)
	}
	addrs := map[netip.Addr]string{}
	for _, p := range net.Pods() {
		if other, taken := addrs[p.Addr()]; taken {
			t.Errorf("%s and %s have the same address %s", other, p.Name(), p.Addr())
		}
		addrs[p.Addr()] = p.Name()
	}
	if net.Uplink() == "" {
		t.Error("the nodes' interface on the underlay has no name")
	}
	for _, note := range net.Notes() {
		if note.Code == "" || note.Text == "" {
			t.Errorf("a note without code or text: %+v", note)
		}
	}
	wantUnsupported(t, "a path that no arena has", a.HasPath(x, "no-such-path"))
	testCommands(t, ctx, net.Pods()[0])
	for _, path := range []string{arena.PathPod, arena.PathSameNode, arena.PathHost} {
		pair, err := net.Pair(ctx, path)
		if u := arena.AsUnsupported(err); u != nil {
			continue
		}
		if err != nil {
			t.Errorf("path %s: %v", path, err)
			continue
		}
		testPair(t, ctx, c, path, pair, mtuOf(path, x, c))
		if path == arena.PathPod {
			testMTU(t, ctx, c, net, pair, min(mtuOf(path, x, c), c.UnderlayMTU-int(x.Datapath.Overhead)))
		}
	}
	testEveryPod(t, ctx, c, net)
	if a.HasPath(x, arena.PathService) == nil {
		testService(t, ctx, c, net)
	}
	testReset(t, ctx, c, net)
	testSandbox(t, ctx, net)
	if err := net.Fault(); err != nil {
		t.Errorf("the network is up, but Fault returns: %v", err)
	}

	// Down ends the processes that still run in the network.
	sleeper, err := net.Pods()[0].Start(context.WithoutCancel(ctx), host.Command{Argv: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatalf("start sleep: %v", err)
	}
	down = true
	if err := net.Down(ctx); err != nil {
		t.Errorf("down: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- sleeper.Wait() }()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a process outlived its network")
		}
	case <-time.After(10 * time.Second):
		t.Error("a process still runs after the network went down")
	}
}

// testReset checks that pods still reach each other after two calls of Reset.
func testReset(t *testing.T, ctx context.Context, c Config, net arena.Network) {
	t.Helper()
	for range 2 {
		if err := net.Reset(ctx); err != nil {
			t.Fatalf("reset: %v", err)
		}
	}
	pair, err := net.Pair(ctx, arena.PathPod)
	if err != nil {
		t.Fatal(err)
	}
	client, server := startAgent(t, ctx, c, pair.Client), startAgent(t, ctx, c, pair.Server)
	defer closeAgent(t, client)
	defer closeAgent(t, server)
	port, err := server.Echo(ctx, pair.Server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if err := retry(ctx, func() error { return client.Reach(ctx, pair.Target, port) }); err != nil {
		t.Errorf("after Reset: %v", err)
	}
}

// testSandbox checks that the network has pods for policies, or says why not.
func testSandbox(t *testing.T, ctx context.Context, net arena.Network) {
	t.Helper()
	s, err := net.Sandbox(ctx, []arena.SandboxNamespace{{Name: "x", Pods: []arena.SandboxPod{{Name: "p"}}}})
	if err != nil {
		wantUnsupported(t, "sandbox", err)
		return
	}
	if _, err := s.Pod("x", "p"); err != nil {
		t.Errorf("sandbox: its pod: %v", err)
	}
	if len(s.Addrs("x", "p")) == 0 {
		t.Error("sandbox: its pod has no address")
	}
	if _, err := s.Pod("x", "nobody"); err == nil {
		t.Error("sandbox: Pod found a pod that the sandbox was not made with")
	}
	if err := s.Close(ctx); err != nil {
		t.Errorf("sandbox: close: %v", err)
	}
}

// mtuOf is the MTU that the path's server must have.
func mtuOf(path string, x *contender.Contender, c Config) int {
	if path == arena.PathHost {
		return c.UnderlayMTU
	}
	if asked := cmp.Or(c.PodMTU, int(x.Datapath.PodMTU)); asked > 0 && x.Datapath.Attach != "none" {
		return asked
	}
	if x.Datapath.UnderlayPodMTU {
		return c.UnderlayMTU
	}
	return c.UnderlayMTU - int(x.Datapath.Overhead)
}

// testCommands checks the endpoint as a place where commands run.
func testCommands(t *testing.T, ctx context.Context, e arena.Endpoint) {
	t.Helper()
	var out bytes.Buffer
	p, err := e.Start(ctx, host.Command{Argv: []string{"sh", "-c", "cat; echo $GREETING; ls -d " + e.Dir()}, Env: []string{"GREETING=hello"}, Stdin: strings.NewReader("stdin\n"), Stdout: &out})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("sh: %v", err)
	}
	if want := "stdin\nhello\n" + e.Dir() + "\n"; out.String() != want {
		t.Errorf("sh printed %q, want %q", out.String(), want)
	}
	p, err = e.Start(ctx, host.Command{Argv: []string{"sh", "-c", "echo broken >&2; exit 7"}})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	var exit *host.ExitError
	if err := p.Wait(); !errors.As(err, &exit) || exit.Code != 7 || !strings.Contains(exit.Stderr, "broken") {
		t.Errorf("a command that exits with 7 gave %v", err)
	}
	var missing *host.ProgramError
	if _, err := e.Start(ctx, host.Command{Argv: []string{"cnibench-no-such-program"}}); !errors.As(err, &missing) {
		t.Errorf("a missing program gave %v", err)
	}
	limit, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err = e.Start(limit, host.Command{Argv: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	cancel()
	if err := p.Wait(); err == nil {
		t.Error("a command outlived its context")
	}
}

func startAgent(t *testing.T, ctx context.Context, c Config, e arena.Endpoint) *agent.Client {
	t.Helper()
	a, err := agent.Start(ctx, e, c.Exe, map[string]string{"endpoint": e.Name(), "node": e.Node()}, sysmon.ScopePod)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func closeAgent(t *testing.T, a *agent.Client) {
	t.Helper()
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// testPair checks that the pair's client reaches its server, and that the
// server's interface has the MTU.
func testPair(t *testing.T, ctx context.Context, c Config, path string, pair arena.Pair, mtu int) {
	t.Helper()
	client, server := startAgent(t, ctx, c, pair.Client), startAgent(t, ctx, c, pair.Server)
	defer closeAgent(t, client)
	defer closeAgent(t, server)
	port, err := server.Echo(ctx, pair.Server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if err := retry(ctx, func() error { return client.Reach(ctx, pair.Target, port) }); err != nil {
		t.Errorf("path %s: %v", path, err)
	}
	hello, err := server.Hello(ctx, pair.Server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if hello.MTU != mtu {
		t.Errorf("path %s: %s has MTU %d, want %d", path, pair.Server.Name(), hello.MTU, mtu)
	}
}

// testMTU checks that in both directions the largest packet that crosses to
// another node unfragmented has that MTU: the pods', or what the encapsulation leaves
// of the underlay's. A wrong overhead in the contender's file fails here.
func testMTU(t *testing.T, ctx context.Context, c Config, net arena.Network, pair arena.Pair, mtu int) {
	t.Helper()
	ends := [2]arena.Endpoint{pair.Client, pair.Server}
	var agents [2]*agent.Client
	var targets [2]netip.AddrPort
	for i, e := range ends {
		agents[i] = startAgent(t, ctx, c, e)
		defer closeAgent(t, agents[i])
		port, err := agents[i].Echo(ctx, e.Addr())
		if err != nil {
			t.Fatal(err)
		}
		targets[i] = netip.AddrPortFrom(e.Addr(), port)
	}
	for i, from := range ends {
		at := slices.IndexFunc(net.Nodes(), func(n arena.Endpoint) bool { return n.Name() == from.Node() })
		if at < 0 {
			t.Fatalf("%s is on %s, which is no node of the network", from.Name(), from.Node())
		}
		watch := startAgent(t, ctx, c, net.Nodes()[at])
		defer closeAgent(t, watch)
		if err := watch.Sniff(ctx, agent.Sniff{Device: net.Uplink()}); err != nil {
			t.Fatal(err)
		}
		for size, want := range map[int]bool{mtu: true, mtu + 1: false} {
			crosses, err := agents[i].Crosses(ctx, watch, agent.SizeProbe{Target: targets[1-i], Size: size, Timeout: 2 * time.Second})
			if err != nil || crosses != want {
				t.Errorf("path %s: %s to %s: a packet of %d bytes crosses in one piece: %v, %v; want %v", arena.PathPod, from.Name(), ends[1-i].Name(), size, crosses, err, want)
			}
		}
	}
}

// testEveryPod checks that the first pod and every other pod reach each other.
func testEveryPod(t *testing.T, ctx context.Context, c Config, net arena.Network) {
	t.Helper()
	pods := net.Pods()
	first := startAgent(t, ctx, c, pods[0])
	defer closeAgent(t, first)
	firstPort, err := first.Echo(ctx, pods[0].Addr())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods[1:] {
		other := startAgent(t, ctx, c, p)
		port, err := other.Echo(ctx, p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if err := retry(ctx, func() error { return first.Reach(ctx, p.Addr(), port) }); err != nil {
			t.Errorf("%s to %s: %v", pods[0].Name(), p.Name(), err)
		}
		if err := retry(ctx, func() error { return other.Reach(ctx, pods[0].Addr(), firstPort) }); err != nil {
			t.Errorf("%s to %s: %v", p.Name(), pods[0].Name(), err)
		}
		closeAgent(t, other)
	}
}

// retry repeats ask until it succeeds, at most for the 5 s that a new network may
// take to settle.
func retry(ctx context.Context, ask func() error) error {
	var err error
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		if err = ask(); err == nil {
			return nil
		}
	}
	return err
}

// MainAgent runs the agent if this program was started as an agent, and returns
// whether it was.
func MainAgent() bool {
	if len(os.Args) < 2 || os.Args[1] != "agent" {
		return false
	}
	serve := func() error { return agent.Serve(context.Background(), os.Stdin, os.Stdout, sysmon.ScopePod, nil) }
	if slices.Equal(os.Args[2:], []string{"hold"}) {
		serve = func() error { return agent.Hold(os.Stdin, os.Stdout) }
	}
	if err := serve(); err != nil {
		os.Exit(1)
	}
	return true
}
