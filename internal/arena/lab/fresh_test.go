//go:build linux

package lab

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
)

// A fresh network has neither connections nor Services of the step before.
func TestFresh(t *testing.T) {
	a, err := New(options(2, 1500))
	if err != nil {
		t.Fatal(err)
	}
	c, err := contender.Find(catalogue(t), "kube-proxy-iptables")
	if err != nil {
		t.Fatal(err)
	}
	if u := arena.AsUnsupported(a.Supports(t.Context(), c)); u != nil {
		t.Skipf("%s; %s", u.Reason, u.Remedy)
	}
	up, err := a.Up(t.Context(), c, UnderlaySwitch)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := up.Down(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	n := up.(*network)
	ask := func(argv ...string) string {
		t.Helper()
		var out bytes.Buffer
		p, err := n.nodes[0].Start(t.Context(), host.Command{Argv: argv, Stdout: &out})
		if err == nil {
			err = p.Wait()
		}
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out.String())
	}
	connections := func() string { return ask("cat", "/proc/sys/net/netfilter/nf_conntrack_count") }
	services := func() int {
		return strings.Count(ask("iptables-nft-save", "-t", "nat"), ":KUBE-SVC-")
	}
	if err := meet(t, n, arena.PathService); err != nil {
		t.Fatal(err)
	}
	if count := connections(); count == "0" || services() == 0 {
		t.Errorf("after a Service was asked: %s connections, %d Services", count, services())
	}
	if err := n.Fresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if count := connections(); count != "0" || services() != 0 {
		t.Errorf("fresh: %s connections, %d Services, want none", count, services())
	}
	if err := meet(t, n, arena.PathPod); err != nil {
		t.Fatal(err)
	}
	if connections() == "0" {
		t.Error("connections from pod to pod are not tracked")
	}
	if err := n.Fresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if count := connections(); count != "0" {
		t.Errorf("fresh again: %s connections, want none", count)
	}
}

// The other Services have endpoints of their own.
func TestOtherServices(t *testing.T) {
	seen := map[string]bool{}
	table := services(hostOf(podNet, 2), []arena.Port{{Protocol: arena.TCP, Number: 9000}}, 10000)
	for _, s := range table {
		seen[s.Backends[0].String()] = true
	}
	if len(table) != 10001 || len(seen) < 10000 {
		t.Errorf("%d Services with %d endpoints", len(table), len(seen))
	}
}
