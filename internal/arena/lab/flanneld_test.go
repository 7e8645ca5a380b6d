//go:build linux

package lab

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// What the pieces write for flannel's contenders is what flannel's own daemon
// writes: links with their offloads, addresses, routes, neighbours and
// forwarding entries of a node.
func TestReproducesFlanneld(t *testing.T) {
	needs.Flanneld(t)
	bin, err := filepath.Abs("../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", os.Getenv("PATH")+":"+bin)
	if err := host.Have("flanneld"); err != nil {
		needs.Missing(t, "no flanneld; build it with: make flanneld")
	}
	a, err := New(options(3, 1500))
	if err != nil {
		t.Fatal(err)
	}
	for id, c := range map[string]struct{ backend, device string }{
		"flannel-vxlan":     {"vxlan", "flannel.1"},
		"flannel-host-gw":   {"host-gw", ""},
		"flannel-ipip":      {"ipip", "flannel.ipip"},
		"flannel-wireguard": {"wireguard", "flannel-wg"},
	} {
		t.Run(id, func(t *testing.T) {
			ours, err := contender.Find(catalogue(t), id)
			if err != nil {
				t.Fatal(err)
			}
			theirs := *ours
			theirs.Requires.Kernel = append([]string{"br_netfilter"}, ours.Requires.Kernel...) // the daemon asks for it
			if u := arena.AsUnsupported(a.Supports(t.Context(), &theirs)); u != nil {
				t.Skipf("%v", u)
			}
			theirs.Lab.Transport = &contender.Piece{Use: "flanneld", Params: map[string]any{"type": c.backend}}
			// The daemon masquerades by itself.
			theirs.Lab.Extras = slices.DeleteFunc(slices.Clone(ours.Lab.Extras), func(p contender.Piece) bool { return p.Use == "masquerade" })
			if diff := cmp.Diff(configured(t, a, &theirs, c.device), configured(t, a, ours, c.device)); diff != "" {
				t.Errorf("flanneld (-) and the lab's pieces (+) differ: %s", diff)
			}
		})
	}
}

// configured is what a node of the contender's network looks like, in the
// words of ip, bridge and ethtool, without what is arbitrary.
func configured(t *testing.T, a arena.Arena, c *contender.Contender, device string) string {
	t.Helper()
	n, err := a.Up(t.Context(), c, UnderlaySwitch)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Down(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	script := "ip -4 route"
	if device != "" {
		script = fmt.Sprintf(`ip -d link show dev %[1]s; ip -4 addr show dev %[1]s | grep inet; ip -4 route
ip -4 neigh show dev %[1]s; bridge fdb show dev %[1]s; ethtool -k %[1]s; wg show %[1]s 2>/dev/null`, device)
	}
	var out bytes.Buffer
	p, err := n.Nodes()[1].Start(t.Context(), host.Command{Argv: []string{"sh", "-c", script}, Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Wait() // of wg, where there is none to show
	text := out.String()
	for _, r := range arbitrary {
		text = r.what.ReplaceAllString(text, r.with)
	}
	lines := strings.Split(text, "\n")
	slices.Sort(lines) // addresses that are made up decide on the order
	return strings.Join(lines, "\n")
}

var arbitrary = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`(?m)^\d+: `), "N: "},
	{regexp.MustCompile(`([0-9a-f]{2}:){5}[0-9a-f]{2}`), "MAC"},
	{regexp.MustCompile(`[A-Za-z0-9+/]{43}=`), "KEY"},
	{regexp.MustCompile(`(?m)^  (latest handshake|transfer): .*\n`), ""},
	{regexp.MustCompile(`(?m) (qlen \d+)?$`), ""}, // of devices that queue nothing (noqueue)
}

// Without the programs the contender is refused with the command that builds the
// one, and with the package of the other.
func TestFlanneldMissing(t *testing.T) {
	t.Setenv("PATH", "/nonexistent")
	a, err := New(options(2, 1500))
	if err != nil {
		t.Fatal(err)
	}
	vxlan, err := contender.Find(catalogue(t), "flannel-vxlan")
	if err != nil {
		t.Fatal(err)
	}
	daemon := *vxlan
	daemon.Lab.Transport = &contender.Piece{Use: "flanneld"}
	u := arena.AsUnsupported(a.Supports(t.Context(), &daemon))
	if u == nil || !strings.Contains(u.Reason, "flanneld: program not found") || !strings.Contains(u.Reason, "etcd: program not found") ||
		!strings.Contains(u.Remedy, "make flanneld") {
		t.Errorf("without flanneld and etcd: %+v", u)
	}
}
