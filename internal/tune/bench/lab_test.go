package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/tune"
)

// fakeArena has a network of two pods, and a third that a path makes.
type fakeArena struct {
	arena.Arena
	net *fakeNetwork
}

func (f fakeArena) Up(_ context.Context, c *contender.Contender, _ string) (arena.Network, error) {
	f.net.up = c.ID
	return f.net, nil
}

type fakeNetwork struct {
	arena.Network
	up     string
	resets int
	fault  error
	asked  []string // endpoint and question
	answer func(endpoint string) (tune.Answer, error)
}

func (n *fakeNetwork) Nodes() []arena.Endpoint                            { return []arena.Endpoint{n.at("node1")} }
func (n *fakeNetwork) Pods() []arena.Endpoint                             { return []arena.Endpoint{n.at("pod1"), n.at("pod2")} }
func (n *fakeNetwork) Effort(context.Context) (map[string]float64, error) { return nil, nil }
func (n *fakeNetwork) Notes() []result.Reason                             { return []result.Reason{{Code: "left_out", Text: "x"}} }
func (n *fakeNetwork) Fault() error                                       { return n.fault }
func (n *fakeNetwork) Reset(context.Context) error {
	n.resets++
	return nil
}
func (n *fakeNetwork) Down(context.Context) error {
	n.up = ""
	return nil
}

func (n *fakeNetwork) Pair(_ context.Context, path string) (arena.Pair, error) {
	if path == arena.PathSameNode {
		return arena.Pair{Client: n.at("pod1"), Server: n.at("pod3")}, nil
	}
	return arena.Pair{Client: n.at("pod1"), Server: n.at("pod2")}, nil
}

func (n *fakeNetwork) at(name string) arena.Endpoint { return fakeEndpoint{name, n} }

type fakeEndpoint struct {
	name string
	net  *fakeNetwork
}

func (e fakeEndpoint) Name() string     { return e.name }
func (e fakeEndpoint) Node() string     { return "node1" }
func (e fakeEndpoint) Addr() netip.Addr { return netip.Addr{} }
func (e fakeEndpoint) Dir() string      { return "" }
func (e fakeEndpoint) CPUs() []int      { return nil }

func (e fakeEndpoint) Start(_ context.Context, c host.Command) (host.Process, error) {
	question, err := io.ReadAll(c.Stdin)
	if err != nil {
		return nil, err
	}
	e.net.asked = append(e.net.asked, fmt.Sprintf("%s: %s: %s", e.name, c, question))
	a, err := e.net.answer(e.name)
	if err == nil {
		err = json.NewEncoder(c.Stdout).Encode(a)
	}
	return ended{err}, nil
}

type ended struct{ err error }

func (e ended) Wait() error          { return e.err }
func (ended) Signal(os.Signal) error { return nil }

var base = &contender.Contender{ID: "flannel-vxlan", Summary: "s"}

func benchOf(n *fakeNetwork, v tune.Variant) *Lab {
	return &Lab{Arena: fakeArena{net: n}, Exe: "cnibench", Variants: map[string]tune.Variant{v.ID: v}}
}

// A variant's network is reset between steps and tells of its faults, just
// like that of the contender without settings, which it is compared with.
func TestVariantIsTreatedLikeItsBaseline(t *testing.T) {
	v := tune.Variants(base.ID, tune.Request{Settings: []tune.Choice{{Setting: "rps"}}})[0]
	died := errors.New("flanneld on node1 has ended")
	for _, c := range []*contender.Contender{base, v.Contender(base)} {
		inner := &fakeNetwork{answer: func(string) (tune.Answer, error) { return tune.Answer{Made: 1}, nil }}
		net, err := benchOf(inner, v).Up(t.Context(), c, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := net.Reset(t.Context()); err != nil || inner.resets != 1 {
			t.Errorf("%s: reset %d times, %v; want once", c.ID, inner.resets, err)
		}
		inner.fault = died
		if err := net.Fault(); !errors.Is(err, died) {
			t.Errorf("%s: fault %v, want %v", c.ID, err, died)
		}
	}
}

// Every endpoint is set once, those of a path when it is made; others come up
// untouched.
func TestLab(t *testing.T) {
	v := tune.Variants(base.ID, tune.Request{Settings: []tune.Choice{{Setting: "rps"}}})[0]
	n := &fakeNetwork{answer: func(endpoint string) (tune.Answer, error) {
		if endpoint == "pod2" {
			return tune.Answer{Made: 1}, nil
		}
		return tune.Answer{Left: map[string]string{"rps": "no"}}, nil
	}}
	b := benchOf(n, v)
	if net, err := b.Up(t.Context(), base, ""); err != nil || net != arena.Network(n) {
		t.Fatal(net, err)
	}
	net, err := b.Up(t.Context(), v.Contender(base), "")
	if err != nil || n.up != "flannel-vxlan+rps" {
		t.Fatal(n.up, err)
	}
	for range 2 {
		if _, err := net.Pair(t.Context(), arena.PathSameNode); err != nil {
			t.Fatal(err)
		}
	}
	const question = `: cnibench tune here: {"settings":[{"setting":"rps"}]}`
	if diff := cmp.Diff([]string{"node1" + question, "pod1" + question, "pod2" + question, "pod3" + question}, n.asked); diff != "" {
		t.Error(diff)
	}
	if notes := net.Notes(); len(notes) != 1 { // it did change something on pod2
		t.Errorf("%+v", notes)
	}
}

func TestLabFails(t *testing.T) {
	v := tune.Variants(base.ID, tune.Request{Settings: []tune.Choice{{Setting: "rps"}}})[0]
	n := &fakeNetwork{answer: func(string) (tune.Answer, error) { return tune.Answer{}, errors.New("denied") }}
	if _, err := benchOf(n, v).Up(t.Context(), v.Contender(base), ""); err == nil || n.up != "" {
		t.Errorf("%v, left up: %q", err, n.up)
	}
}

// The machine's own settings hold from Up to Down.
func TestLabMachine(t *testing.T) {
	root := t.TempDir()
	maxFiles := filepath.Join(root, "proc/sys/fs/file-max")
	for path, text := range map[string]string{maxFiles: "1000", filepath.Join(root, "proc/sys/net/ipv4/tcp_fin_timeout"): "60", filepath.Join(root, "sys/devices/system/cpu/online"): "0"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	v := tune.Variants(base.ID, tune.Request{Settings: []tune.Choice{{Setting: "file-max"}, {Setting: "sched-migration-cost"}, {Setting: "fin-timeout"}}})[3]
	n := &fakeNetwork{answer: func(string) (tune.Answer, error) {
		return tune.Answer{Left: map[string]string{"file-max": "inside", "fin-timeout": "it is so already"}}, nil
	}}
	b := benchOf(n, v)
	b.Host = &tune.Machine{Files: host.Tree(root)}
	journal, err := tune.OpenJournal(filepath.Join(t.TempDir(), "state"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	b.Journal = journal
	net, err := b.Up(t.Context(), v.Contender(base), "")
	if err != nil {
		t.Fatal(err)
	}
	read := func() string {
		text, err := os.ReadFile(maxFiles)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	if now := read(); now == "1000" {
		t.Error("file-max was not set")
	}
	if text, err := os.ReadFile(filepath.Join(root, "proc/sys/net/ipv4/tcp_fin_timeout")); err != nil || string(text) != "60\n" {
		t.Errorf("the namespace's setting reached the machine: %q, %v", text, err)
	}
	// Of the machine's own settings its reason stands, and no namespace is asked.
	want := []result.Reason{
		{Code: "left_out", Text: "x"},
		{Code: tune.NothingSet, Text: "fin-timeout changed nothing: it is so already"},
		{Code: tune.NothingSet, Text: "sched-migration-cost changed nothing: this kernel has neither kernel.sched_migration_cost_ns nor /sys/kernel/debug/sched/migration_cost_ns"},
	}
	if diff := cmp.Diff(want, net.Notes()); diff != "" {
		t.Error(diff)
	}
	if question := n.asked[0]; strings.Contains(question, "file-max") || !strings.Contains(question, "fin-timeout") {
		t.Error(question)
	}
	if err := net.Down(t.Context()); err != nil || read() != "1000" {
		t.Errorf("file-max %s, %v", read(), err)
	}
}
