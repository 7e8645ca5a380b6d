//go:build linux

package lab

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
)

// After Reset a network has neither connections nor Services of the step before.
func TestReset(t *testing.T) {
	const tracked = "cat /proc/sys/net/netfilter/nf_conntrack_count"
	for id, counts := range map[string]struct {
		services, served string // shell commands: how many there are, and connections of theirs
	}{
		"kube-proxy-iptables": {"iptables-nft-save -t nat | grep -c ^:KUBE-SVC-", tracked},
		"kube-proxy-ipvs":     {"ipvsadm -Sn | grep -c ^-A", "tail -n +2 /proc/net/ip_vs_conn | wc -l"},
	} {
		t.Run(id, func(t *testing.T) {
			n := upHere(t, id)
			const none, some = true, false
			fresh := func() {
				t.Helper()
				if err := n.Reset(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			check := func(when, command string, want bool) {
				t.Helper()
				for end := time.Now().Add(5 * time.Second); (count(t, n, command) == "0") != want; time.Sleep(10 * time.Millisecond) {
					if time.Now().After(end) {
						t.Errorf("%s: %s says %s", when, command, count(t, n, command))
						return
					}
					// A last packet of a connection, on its way while the table was emptied,
					// has made an entry of its own.
					if want == none {
						fresh()
					}
				}
			}
			if err := meet(t, n, arena.PathService); err != nil {
				t.Fatal(err)
			}
			for _, command := range []string{counts.services, counts.served, tracked} {
				check("asked a Service", command, some)
			}
			fresh()
			for _, command := range []string{counts.services, counts.served, tracked} {
				check("fresh", command, none)
			}
			if err := meet(t, n, arena.PathPod); err != nil {
				t.Fatal(err)
			}
			check("asked a pod", tracked, some)
			fresh()
			check("fresh again", tracked, none)
		})
	}
}

// upHere is a contender's network that goes down with the test, which is
// skipped where the kernel lacks something.
func upHere(t *testing.T, id string) *labNetwork {
	t.Helper()
	a, err := New(options(2, 1500))
	if err != nil {
		t.Fatal(err)
	}
	c, err := contender.Find(catalogue(t), id)
	if err != nil {
		t.Fatal(err)
	}
	if u := arena.AsUnsupported(a.Supports(t.Context(), c)); u != nil {
		t.Skipf("%s; %s", u.Reason, u.Remedy)
	}
	n, err := a.Up(t.Context(), c, UnderlaySwitch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Down(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return n.(*labNetwork)
}

// count is what a shell command on the client's node prints; that grep finds
// nothing is no failure.
func count(t *testing.T, n *labNetwork, command string) string {
	t.Helper()
	var out bytes.Buffer
	p, err := n.nodes[0].Start(t.Context(), host.Command{Argv: []string{"sh", "-c", command + " || true"}, Stdout: &out})
	if err == nil {
		err = p.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
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
