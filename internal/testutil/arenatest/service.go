package arenatest

import (
	"context"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
)

// others is how many Services exist beside the tested Service.
const others = 20

// testService checks that every pod reaches two servers, on the first node and on
// another node, each at its own port of one Service address, over TCP and UDP,
// and that a new table of Services replaces the old table.
func testService(t *testing.T, ctx context.Context, c Config, net arena.Network) {
	t.Helper()
	pod, err := net.Pair(ctx, arena.PathPod)
	if err != nil {
		t.Fatal(err)
	}
	agents, numbers := map[string]*agent.Client{}, map[string]uint16{}
	var ports []arena.Port
	servers := []arena.Endpoint{pod.Server, pod.Client}
	for _, e := range servers {
		server := startAgent(t, ctx, c, e)
		defer closeAgent(t, server)
		agents[e.Name()] = server
		number, err := server.Echo(ctx, e.Addr())
		for err == nil && number == numbers[pod.Server.Name()] { // free in both pods
			number, err = server.Echo(ctx, e.Addr())
		}
		if err != nil {
			t.Fatal(err)
		}
		numbers[e.Name()] = number
		for _, protocol := range []string{arena.TCP, arena.UDP} {
			ports = append(ports, arena.Port{Protocol: protocol, Number: number, Server: e})
		}
	}
	old, took, err := net.Service(ctx, ports, others)
	if err != nil {
		t.Errorf("path %s: %v", arena.PathService, err)
		return
	}
	if took <= 0 {
		t.Errorf("path %s: programmed in %v", arena.PathService, took)
	}
	if old.Target == pod.Server.Addr() {
		t.Errorf("path %s: the Service has the server's own address %s", arena.PathService, old.Target)
	}
	for _, p := range net.Pods() {
		client := agents[p.Name()]
		if client == nil {
			client = startAgent(t, ctx, c, p)
			defer closeAgent(t, client)
		}
		for _, e := range servers {
			if p.Name() == e.Name() {
				continue
			}
			if err := retry(ctx, func() error { return client.Reach(ctx, old.Target, old.At(numbers[e.Name()]).Port()) }); err != nil {
				t.Errorf("path %s: %s to a Service on %s: %v", arena.PathService, p.Name(), e.Node(), err)
			}
		}
	}
	testReplaced(t, ctx, c, net, ports, old)
}

// testReplaced checks that after a second table of Services the new address
// answers and the old address does not.
func testReplaced(t *testing.T, ctx context.Context, c Config, net arena.Network, ports []arena.Port, old arena.Pair) {
	t.Helper()
	current, _, err := net.Service(ctx, ports, 0)
	if err != nil {
		t.Errorf("path %s: another table: %v", arena.PathService, err)
		return
	}
	client := startAgent(t, ctx, c, old.Client)
	defer closeAgent(t, client)
	if err := retry(ctx, func() error { return client.Reach(ctx, current.Target, current.At(ports[0].Number).Port()) }); err != nil {
		t.Errorf("path %s: after another table: %v", arena.PathService, err)
	}
	got, err := client.Probe(ctx, agent.Probe{Target: old.At(ports[0].Number), Timeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if current.At(ports[0].Number) != old.At(ports[0].Number) && (got.TCP.Kind == agent.OK || got.UDP.Kind == agent.OK) {
		t.Errorf("path %s: %s still answers (TCP %s, UDP %s), though its Service is gone", arena.PathService, old.At(ports[0].Number), got.TCP.Kind, got.UDP.Kind)
	}
}
