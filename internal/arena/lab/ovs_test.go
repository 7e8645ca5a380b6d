//go:build linux

package lab

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// inUserSpace is a contender whose switch forwards in ovs-vswitchd itself, so
// that the flows that cnibench and OVN write are tried on every kernel.
// Geneve needs the kernel's datapath.
func inUserSpace(t *testing.T, id string) *contender.Contender {
	t.Helper()
	c, err := contender.Find(catalogue(t), id)
	if err != nil {
		t.Fatal(err)
	}
	x := *c
	x.Lab.Attach = &contender.Piece{Use: c.Lab.Attach.Use, Params: map[string]any{"datapath": "netdev"}}
	x.Requires.Kernel = []string{"veth", "tun"}
	return &x
}

// TestOpenVSwitch brings up the Open vSwitch contenders and has pods meet by
// each path that needs no tunnel.
func TestOpenVSwitch(t *testing.T) {
	for _, c := range []struct {
		id    string
		paths []string
	}{
		{"antrea-noencap", []string{arena.PathSameNode, arena.PathPod, arena.PathService}},
		{"kubeovn-underlay", []string{arena.PathSameNode, arena.PathPod, arena.PathService}},
	} {
		t.Run(c.id, func(t *testing.T) {
			a, err := New(options(2, 1500))
			if err != nil {
				t.Fatal(err)
			}
			x := inUserSpace(t, c.id)
			if u := arena.AsUnsupported(a.Supports(t.Context(), x)); u != nil {
				t.Skipf("%s; %s", u.Reason, u.Remedy)
			}
			n, err := a.Up(t.Context(), x, UnderlaySwitch)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := n.Down(t.Context()); err != nil {
					t.Error(err)
				}
			}()
			for _, path := range c.paths {
				if err := meet(t, n, path); err != nil {
					t.Errorf("path %s: %v", path, err)
				}
			}
		})
	}
}

// meet has the client of the path reach its server.
func meet(t *testing.T, n arena.Network, path string) error {
	t.Helper()
	pod := path
	if path == arena.PathService {
		pod = arena.PathPod
	}
	pair, err := n.Pair(t.Context(), pod)
	if err != nil {
		return err
	}
	hire := func(e arena.Endpoint) *agent.Client {
		c, err := agent.Start(t.Context(), e, os.Args[0], map[string]string{"endpoint": e.Name()}, sysmon.ScopePod)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	client, server := hire(pair.Client), hire(pair.Server)
	defer client.Close()
	defer server.Close()
	port, err := server.Echo(t.Context(), pair.Server.Addr())
	if err != nil {
		return err
	}
	if path == arena.PathService {
		if pair, _, err = n.Service(t.Context(), []arena.Port{{Protocol: arena.TCP, Number: port}, {Protocol: arena.UDP, Number: port}}, 3); err != nil {
			return err
		}
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if err = client.Reach(t.Context(), pair.Target, port); err == nil || time.Now().After(end) {
			return err
		}
	}
}

// A switch daemon that was killed is told by whatever needs it next.
func TestKilledSwitch(t *testing.T) {
	a, err := New(options(2, 1500))
	if err != nil {
		t.Fatal(err)
	}
	x := inUserSpace(t, "antrea-noencap")
	if u := arena.AsUnsupported(a.Supports(t.Context(), x)); u != nil {
		t.Skipf("%s; %s", u.Reason, u.Remedy)
	}
	n, err := a.Up(t.Context(), x, UnderlaySwitch)
	if err != nil {
		t.Fatal(err)
	}
	p, err := n.Nodes()[0].Start(t.Context(), host.Command{Argv: []string{"pkill", "-KILL", "ovs-vswitchd"}})
	if err == nil {
		err = p.Wait() // the lab has processes of its own only
	}
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); n.Fault() == nil && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond) // a process ends some time after its signal
	}
	if _, _, err := n.Service(t.Context(), []arena.Port{{Protocol: arena.TCP, Number: 80}}, 0); err == nil || !strings.Contains(err.Error(), "ovs-vswitchd on node") {
		t.Errorf("Services of a dead switch: %v", err)
	}
	if err := n.Down(t.Context()); err != nil {
		t.Error(err)
	}
}
