package tune

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
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
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
	answer func(endpoint string) (Answer, error)
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

func benchOf(n *fakeNetwork, v Variant) *Bench {
	return &Bench{Arena: fakeArena{net: n}, Exe: "cnibench", Variants: map[string]Variant{v.ID: v}}
}

// A variant's network is reset between steps and tells of its faults, just
// like that of the contender without settings, which it is compared with.
func TestVariantIsTreatedLikeItsBaseline(t *testing.T) {
	v := Variants(base.ID, Request{Settings: []Choice{{Setting: "rps"}}})[0]
	died := errors.New("flanneld on node1 has ended")
	for _, c := range []*contender.Contender{base, v.Contender(base)} {
		inner := &fakeNetwork{answer: func(string) (Answer, error) { return Answer{Made: 1}, nil }}
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
func TestBench(t *testing.T) {
	v := Variants(base.ID, Request{Settings: []Choice{{Setting: "rps"}}})[0]
	n := &fakeNetwork{answer: func(endpoint string) (Answer, error) {
		if endpoint == "pod2" {
			return Answer{Made: 1}, nil
		}
		return Answer{Left: map[string]string{"rps": "no"}}, nil
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

func TestBenchFails(t *testing.T) {
	v := Variants(base.ID, Request{Settings: []Choice{{Setting: "rps"}}})[0]
	n := &fakeNetwork{answer: func(string) (Answer, error) { return Answer{}, errors.New("denied") }}
	if _, err := benchOf(n, v).Up(t.Context(), v.Contender(base), ""); err == nil || n.up != "" {
		t.Errorf("%v, left up: %q", err, n.up)
	}
}

// The machine's own settings hold from Up to Down.
func TestBenchMachine(t *testing.T) {
	m, root := build(t, shapes["laptop"])
	w := writer{t, root}
	w.file("proc/sys/fs/file-max", "2000000")
	if err := os.Remove(w.path("proc/sys/kernel/sched_migration_cost_ns")); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, root)
	v := Variants(base.ID, Request{Settings: []Choice{{Setting: "governor"}, {Setting: "file-max"}, {Setting: "sched-migration-cost"}, {Setting: "fin-timeout"}}})[4]
	n := &fakeNetwork{answer: func(string) (Answer, error) {
		return Answer{Left: map[string]string{"governor": "inside", "file-max": "inside", "fin-timeout": "it is so already"}}, nil
	}}
	b := benchOf(n, v)
	b.Host, b.Journal = m, journalOf(t, m, filepath.Join(t.TempDir(), "state"))
	net, err := b.Up(t.Context(), v.Contender(base), "")
	if err != nil {
		t.Fatal(err)
	}
	const file = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
	if got := snapshot(t, root); got[file] != "performance\n" || got["/proc/sys/net/ipv4/tcp_fin_timeout"] != "60\n" {
		t.Errorf("governor %q, and the namespace's setting reached the machine", got[file])
	}
	// Of the machine's own settings its reason stands, and no namespace is asked.
	want := []result.Reason{
		{Code: "left_out", Text: "x"}, {Code: NothingSet, Text: "file-max changed nothing: it is so already"},
		{Code: NothingSet, Text: "fin-timeout changed nothing: it is so already"},
		{Code: NothingSet, Text: "sched-migration-cost changed nothing: this kernel has neither kernel.sched_migration_cost_ns nor /sys/kernel/debug/sched/migration_cost_ns"},
	}
	if diff := cmp.Diff(want, net.Notes()); diff != "" {
		t.Error(diff)
	}
	if question := n.asked[0]; strings.Contains(question, "governor") || !strings.Contains(question, "fin-timeout") {
		t.Error(question)
	}
	if err := net.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
		t.Error(diff)
	}
}

func TestVariants(t *testing.T) {
	var ids []string
	for _, v := range Variants("host", Request{Settings: []Choice{{Setting: "rps"}, {Setting: "xps"}}, Sysctls: map[string]string{"net.b": "1", "net.a": "2"}}) {
		ids = append(ids, v.ID)
	}
	if diff := cmp.Diff([]string{"host+rps", "host+xps", "host+net.a", "host+net.b", "host+all"}, ids); diff != "" {
		t.Error(diff)
	}
}

func TestJudge(t *testing.T) {
	of := func(contender, metric, better string, ci *analysis.Interval, p float64) analysis.Result {
		r := analysis.Result{Contender: contender, Step: "dts", Metric: metric, Better: better, Ranked: true, Median: 2}
		if contender != "host" {
			r.VsBaseline = &analysis.Comparison{Ratio: 1, CI: ci, P: &p}
		}
		return r
	}
	r := &analysis.Report{Baseline: "host", Steps: []result.Step{{ID: "dts"}}, Results: []analysis.Result{
		of("host", "goodput", "higher", nil, 0),
		of("host+a", "goodput", "higher", &analysis.Interval{1.1, 1.2}, 0.001), of("host+a", "cpu_per_gbit", "lower", &analysis.Interval{1.1, 1.2}, 0.001),
		of("host+b", "goodput", "higher", &analysis.Interval{0.9, 1.2}, 0.5), of("host+b", "cpu_per_gbit", "lower", &analysis.Interval{0.5, 0.9}, 0.02),
		of("host+c", "goodput", "higher", nil, 0.5), of("host+d", "goodput", "higher", &analysis.Interval{1.1, 1.2}, 0.001),
	}}
	samples := []result.Sample{
		{Contender: "host+d", Started: time.Time{}, Notes: []result.Reason{{Code: NothingSet, Text: "d changed nothing: why"}}},
		{Contender: "host+e", Step: "setup", Reasons: []result.Reason{{Text: "of another step"}}},
		{Contender: "host+e", Step: "dts", Reasons: []result.Reason{{Text: "it did not come up: denied"}}},
	}
	var variants []Variant
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		variants = append(variants, Variant{"host+" + name, Request{Settings: []Choice{{Setting: name}}}})
	}
	j := Judge(r, samples, variants)
	var got []string
	for _, e := range j.Effects {
		got = append(got, fmt.Sprintf("%s %s %s %s", e.Variant, e.Metric, e.Verdict, e.Reason))
	}
	// b's 0.02 is 0.06 with two more likely ones left of five.
	want := []string{
		"host+a goodput helped ", "host+a cpu_per_gbit hurt ", "host+b goodput cannot be told apart ",
		"host+b cpu_per_gbit cannot be told apart of so many comparisons one looks like this by chance",
		"host+c goodput too few rounds ", "host+d goodput nothing to set d changed nothing: why", "host+e  no figure to compare it did not come up: denied",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if j.Comparisons != 5 || j.LeastRounds != 8 { // 2^(1-8)·5 = 0.04
		t.Errorf("%d comparisons, %d rounds at least", j.Comparisons, j.LeastRounds)
	}
	// Six rounds that agree would show one comparison, not five.
	for i := range r.Results {
		if v := r.Results[i].VsBaseline; v != nil && v.P != nil && *v.P == 0.02 {
			v.Pairs = 6
		}
	}
	if e := Judge(r, samples, variants).Effects[3]; e.Verdict != TooFew || e.Reason != "6 rounds have both figures, and so many comparisons take 8" {
		t.Errorf("%+v", e)
	}
	if least := leastRounds(1); least != 6 || leastRounds(0) != 0 {
		t.Errorf("one comparison takes %d rounds", least)
	}
}

// What the lab can't measure is a setting that there is.
func TestNotInLab(t *testing.T) {
	for name := range notInLab() {
		if _, err := Lookup(name); err != nil {
			t.Error(err)
		}
	}
	if governor.NotInLab() != "" || tcpLowLatency.NotInLab() == "" || irq.NotInLab() == "" {
		t.Error("the wrong settings are left out")
	}
}
