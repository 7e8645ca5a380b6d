package check

import (
	"context"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
)

// loopback is the simulated cluster with real agents: each pod is an address
// of the loopback, which no policy has any effect on.
type loopback struct{ simulated }

func (l *loopback) Sandbox(ctx context.Context, list []arena.SandboxNamespace) (arena.Sandbox, error) {
	_, err := l.simulated.Sandbox(ctx, list)
	return l, err
}

func (l *loopback) Pod(namespace, name string) (arena.Endpoint, error) {
	return loopbackPod{simPod{&l.simulated, namespace + "/" + name}}, nil
}

func (l *loopback) Addrs(namespace, name string) []netip.Addr {
	a := l.addrs[namespace+"/"+name][0].As4()
	return []netip.Addr{netip.AddrFrom4([4]byte{127, a[1], a[2], a[3]})}
}

type loopbackPod struct{ simPod }

func (p loopbackPod) Start(ctx context.Context, c host.Command) (host.Process, error) {
	return host.Local{}.Start(ctx, c)
}

// Real agents, sockets and timeouts: on a network without any policy engine
// all is reached, and so nothing passes but what is allowed anyway.
func TestPolicyOnLoopback(t *testing.T) {
	up, err := host.Local{}.Start(t.Context(), host.Command{Argv: []string{"ip", "link", "set", "lo", "up"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Wait(); err != nil {
		t.Fatal(err)
	}
	l := &loopback{}
	subject := &Subject{Contender: &contender.Contender{ID: "x"}, Network: l, Exe: os.Args[0]}
	defer subject.Close()
	r, err := policy{pace: pace{
		forbiddenTimeout: time.Second, allowedTimeout: time.Second, tries: 3,
		settle: time.Minute, effectTimeout: 100 * time.Millisecond, laterTimeout: 40 * time.Millisecond, idleTimeout: 40 * time.Millisecond, lenient: 20 * time.Millisecond,
		probeInterval: time.Millisecond, times: 3,
		repeatTimeout: 60 * time.Millisecond, repeatBudget: time.Minute,
	}, hire: hire}.Run(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	passed := foundIn(r, Pass)
	if len(passed) != 2 || passed["ingress-allowed"] != enforced || passed["egress-allowed"] != enforced {
		t.Errorf("passed %v; first: %+v", passed, r.Cases[0])
	}
	for name, found := range foundIn(r, Fail) {
		if found != wideOpen {
			t.Errorf("%s: %s: %+v", name, found, caseOf(t, r, name))
		}
	}
	if n := len(foundIn(r, Fail)); n < 30 {
		t.Errorf("%d cases failed; skipped %v", n, foundIn(r, Skip))
	}
}
