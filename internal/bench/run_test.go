package bench

//make:alone 3

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// TestMain serves as agent where the runner starts this program as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		labels := map[string]string{}
		for i, arg := range os.Args {
			if arg == "--label" {
				name, value, _ := strings.Cut(os.Args[i+1], "=")
				labels[name] = value
			}
		}
		if err := agent.Serve(context.Background(), os.Stdin, os.Stdout, sysmon.ScopeNode, labels); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// fakeArena is an arena on this machine's loopback: its contenders are all the
// same, but for those that fail to come up.
type fakeArena struct {
	broken map[string]error
	ups    []string
	open   int
	stuck  map[string]error // by contender: why it does not go down
	resets int
	fault  error // of every network
	// cut, where set, are the processes that end before the second step.
	cut *[]host.Process
}

func (a *fakeArena) Environment() result.Environment                      { return nil }
func (a *fakeArena) Name() string                                         { return "fake" }
func (a *fakeArena) Supports(context.Context, *contender.Contender) error { return nil }
func (a *fakeArena) Variant(*contender.Contender) string                  { return "switch" }
func (a *fakeArena) HasPath(*contender.Contender, string) error           { return nil }
func (a *fakeArena) MaxUp() int                                           { return 1 }
func (a *fakeArena) Slice() (lead, length time.Duration)                  { return 0, time.Millisecond }
func (a *fakeArena) Anonymous(text string) string {
	return strings.ReplaceAll(text, "worker-a", "node1")
}
func (a *fakeArena) Up(_ context.Context, c *contender.Contender, variant string) (arena.Network, error) {
	a.ups = append(a.ups, c.ID+"@"+variant)
	if err := a.broken[c.ID]; err != nil {
		return nil, err
	}
	a.open++
	return &fakeNet{a, a.stuck[c.ID]}, nil
}

type fakeNet struct {
	a     *fakeArena
	stuck error
}

func (n *fakeNet) Nodes() []arena.Endpoint {
	return []arena.Endpoint{fakeEnd{name: "node1", a: n.a}, fakeEnd{name: "node2", a: n.a}}
}
func (n *fakeNet) Pods() []arena.Endpoint { return n.Nodes() }
func (n *fakeNet) Uplink() string         { return "lo" }
func (n *fakeNet) Effort(context.Context) (map[string]float64, error) {
	return map[string]float64{result.InstallImages: 3}, errors.New("the nodes do not answer")
}
func (n *fakeNet) Notes() []result.Reason { return nil }
func (n *fakeNet) Service(ctx context.Context, _ []arena.Port, _ int) (arena.Pair, time.Duration, error) {
	p, err := n.Pair(ctx, arena.PathPod)
	return p, time.Millisecond, err
}
func (n *fakeNet) Pair(context.Context, string) (arena.Pair, error) {
	return arena.Pair{Client: n.Nodes()[0], Server: n.Nodes()[1], Target: loopback}, nil
}
func (n *fakeNet) Fault() error { return n.a.fault }
func (n *fakeNet) Sandbox(context.Context, []arena.SandboxNamespace) (arena.Sandbox, error) {
	return nil, &arena.Unsupported{Reason: "no policies", Remedy: "none"}
}
func (n *fakeNet) Reset(context.Context) error {
	if n.a.resets++; n.a.resets == 2 && n.a.cut != nil {
		for _, p := range *n.a.cut {
			_ = p.Signal(os.Kill)
		}
	}
	return nil
}
func (n *fakeNet) Down(context.Context) error { n.a.open--; return n.stuck }

var loopback = netip.MustParseAddr("127.0.0.1")

type fakeEnd struct {
	host.Local
	name string
	a    *fakeArena
}

func (e fakeEnd) Start(ctx context.Context, c host.Command) (host.Process, error) {
	p, err := e.Local.Start(ctx, c)
	if err == nil && e.a.cut != nil {
		*e.a.cut = append(*e.a.cut, p)
	}
	return p, err
}

func (e fakeEnd) Name() string     { return e.name }
func (e fakeEnd) Node() string     { return e.name }
func (e fakeEnd) Addr() netip.Addr { return loopback }
func (e fakeEnd) Dir() string      { return os.TempDir() }
func (e fakeEnd) CPUs() []int      { return nil }

// runner runs the plan in the arena into a fresh folder.
func runner(t *testing.T, a arena.Arena, p *result.Plan) *Runner {
	t.Helper()
	store, err := result.Create(filepath.Join(t.TempDir(), "run"), &result.Run{Schema: result.RunSchema, Plan: *p})
	if err != nil {
		t.Fatal(err)
	}
	r := &Runner{
		Arena: a, Catalogue: func(id string) (*contender.Contender, error) { return &contender.Contender{ID: id}, nil },
		Store: store, Exe: os.Args[0], Kernel: "6.1", Progress: func(Progress) {}, Log: slog.New(slog.DiscardHandler),
	}
	t.Cleanup(func() {
		if err := r.Store.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func samplesOf(t *testing.T, r *Runner) []result.Sample {
	t.Helper()
	rec, err := result.Load(r.Store.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for i := range rec.Samples {
		forgetSteal(&rec.Samples[i])
	}
	return rec.Samples
}

// forgetSteal takes back what this machine's hypervisor did: the recorders are real.
func forgetSteal(s *result.Sample) {
	before := len(s.Reasons)
	s.Reasons = slices.DeleteFunc(s.Reasons, func(r result.Reason) bool { return r.Code == "cpu_steal" })
	if before > 0 && len(s.Reasons) == 0 {
		s.Verdict = result.Valid
	}
}

// Agents that ended, as with a broken connection to their endpoints, are there
// again for the next step.
func TestRunMendsAgents(t *testing.T) {
	p := plan(1, []string{"host"}, []string{"x", "y"})
	p.Duration = 0.1
	r := runner(t, &fakeArena{cut: &[]host.Process{}}, p)
	if err := r.Run(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	for _, s := range samplesOf(t, r) {
		if slices.ContainsFunc(s.Reasons, func(r result.Reason) bool { return strings.Contains(r.Text, agent.ErrEnded.Error()) }) {
			t.Errorf("%s: %v", s.Step, s.Reasons)
		}
	}
}

// A contender that does not come up gives invalid samples with the reason; the
// others are measured, and nothing stays up.
func TestRunBrokenContender(t *testing.T) {
	p := plan(2, []string{"host", "bad"}, []string{"x", "y"})
	p.Duration = 0.1
	a := &fakeArena{broken: map[string]error{"bad": errors.New("no such piece on worker-a")}}
	r := runner(t, a, p)
	if err := r.Run(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if a.open != 0 {
		t.Errorf("%d networks are still up", a.open)
	}
	if a.resets != 4 {
		t.Errorf("%d networks were reset, want one before each of 2 rounds × 2 steps", a.resets)
	}
	samples := samplesOf(t, r)
	if len(samples) != 12 {
		t.Errorf("%d samples, want 2 rounds × 2 contenders × (2 steps and the set-up)", len(samples))
	}
	for _, s := range samples {
		if s.Contender == "bad" && (s.Verdict != result.Invalid || s.Reasons[0].Code != "setup_failed") {
			t.Errorf("%s of the broken contender: %s %v", s.Step, s.Verdict, s.Reasons)
		}
		if s.Contender == "bad" && !strings.HasSuffix(s.Reasons[0].Text, "no such piece on node1") {
			t.Errorf("%s: what is sealed names a node: %v", s.Step, s.Reasons)
		}
		if s.Contender == "host" && s.Step == result.SetupStep && s.Metrics["setup_time"] <= 0 {
			t.Errorf("no setup_time: %v", s.Metrics)
		}
		if s.Contender == "host" && s.Step == result.SetupStep && (s.Metrics[result.InstallImages] != 3 || len(s.Notes) != 1) {
			t.Errorf("what is known of the installation is not there, or not that a part is missing: %v, %v", s.Metrics, s.Notes)
		}
	}
}

// A contender that does not go down ends no run, but the run's error says so.
func TestRunGoesOnOverWhatIsLeft(t *testing.T) {
	p := plan(2, []string{"host", "sticky"}, []string{"x"})
	p.Duration = 0.1
	stuck := errors.New("the namespace is not gone")
	a := &fakeArena{stuck: map[string]error{"sticky": stuck}}
	r := runner(t, a, p)
	err := r.Run(t.Context(), p, nil)
	if !errors.Is(err, ErrLeft) || !errors.Is(err, stuck) {
		t.Fatalf("error %v", err)
	}
	for _, round := range []string{"round 1/2: sticky: ", "round 2/2: sticky: "} {
		if strings.Count(err.Error(), round) != 1 {
			t.Errorf("%q is not there once:\n%v", round, err)
		}
	}
	if samples := samplesOf(t, r); len(samples) != 8 {
		t.Errorf("%d samples, want 2 rounds × 2 contenders × (a step and the set-up)", len(samples))
	}
}

// The end of the context drops the step under way and takes the network down;
// a second run does what is left and no more.
func TestRunInterruptedAndResumed(t *testing.T) {
	p := plan(3, []string{"host", "a"}, []string{"x"})
	p.Duration = 0.1
	a := &fakeArena{}
	r := runner(t, a, p)
	ctx, cancel := context.WithCancel(t.Context())
	r.Progress = func(at Progress) {
		if at.Done == 3 {
			cancel()
		}
	}
	if err := r.Run(ctx, p, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if a.open != 0 {
		t.Errorf("%d networks are still up", a.open)
	}
	first := samplesOf(t, r)
	sealed := map[result.Key]bool{}
	for _, s := range first {
		sealed[s.Key()] = true
	}
	r.Progress = func(Progress) {}
	if err := r.Run(t.Context(), p, sealed); err != nil {
		t.Fatal(err)
	}
	all := samplesOf(t, r)
	count := map[result.Key]int{}
	for _, s := range all {
		count[s.Key()]++
	}
	if len(count) != len(all) || len(all) != 12 {
		t.Errorf("%d samples of %d kinds, want 12 of 12", len(all), len(count))
	}
	if !slices.IsSortedFunc(all, func(a, b result.Sample) int { return a.Order - b.Order }) {
		t.Error("the order does not rise")
	}
}

func TestEstimate(t *testing.T) {
	p := plan(2, []string{"host", "a"}, []string{"x"})
	p.Duration = 10
	e := newEstimate(p, Visits(p))
	if at := e.now("x"); at.Total != 4 || at.Remaining < 40*time.Second || at.Remaining > 60*time.Second {
		t.Errorf("at the start: %+v", at)
	}
	e.begin = time.Now().Add(-time.Minute)
	e.step()
	e.step()
	if at := e.now("x"); at.Done != 2 || at.Remaining.Round(time.Second) != time.Minute {
		t.Errorf("half way: %+v", at)
	}
}

// The contender comes up on the underlay that the plan's entry names.
func TestRunUnderlay(t *testing.T) {
	p := plan(1, []string{"host"}, []string{"x"})
	p.Duration = 0.1
	p.Contenders = append(p.Contenders, result.Entry{ID: "host", Underlay: "vpc"})
	a := &fakeArena{}
	r := runner(t, a, p)
	if err := r.Run(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	slices.Sort(a.ups)
	if !slices.Equal(a.ups, []string{"host@switch", "host@vpc"}) {
		t.Errorf("came up: %v", a.ups)
	}
}

func TestOffBeat(t *testing.T) {
	for rate, want := range map[float64]float64{5000: 5003, 250: 253, 1234.7: 1234, 0.2: 1, 75: 78} {
		if got := offBeat(rate); got != want {
			t.Errorf("%v: %v, want %v", rate, got, want)
		}
	}
}

// A guess of the capacity does for shares of at most half of it, if no other step asks for
// more of the same load.
func TestOnlySmall(t *testing.T) {
	step := func(share, response string) *result.Step {
		return &result.Step{ID: share, Workload: "http_rate", Path: arena.PathPod, Params: map[string]any{"rate": share, "response": response}}
	}
	small, low, high := step("30%", "350B"), step("30%", "4KiB"), step("90%", "4KiB")
	for name, steps := range map[string][]*result.Step{"in order": {small, low, high}, "the other way": {high, low, small}} {
		only, err := onlySmall(steps)
		if err != nil {
			t.Fatal(err)
		}
		for of, want := range map[*result.Step]bool{small: true, low: false, high: false} {
			key, err := of.Load()
			if err != nil {
				t.Fatal(err)
			}
			if only[key] != want {
				t.Errorf("%s: %s of %v: only small is %v", name, of.ID, of.Params["response"], only[key])
			}
		}
	}
}

// Looks at a capacity that are a tenth apart mostly come to the same rate.
func TestRounded(t *testing.T) {
	for rate, want := range map[float64]float64{0.2: 1, 1: 1, 7900: 7000, 8200: 7000, 8600: 10000, 9800: 10000, 1199: 1000, 1300: 1500, 24000: 20000, 26000: 30000} {
		if got := roundRate(rate); got != want {
			t.Errorf("%v is rounded to %v, want %v", rate, got, want)
		}
	}
}

// A load without a capacity takes its own steps out of the plan, with the reason, and no other.
func TestCalibrationLeavesOut(t *testing.T) {
	step := func(id, rate, response string) result.Step {
		return result.Step{ID: id, Workload: "http_rate", Params: map[string]any{"rate": rate, "response": response}}
	}
	small, large := step("a", "30%", "350B"), step("b", "90%", "4KiB")
	key, err := large.Load()
	if err != nil {
		t.Fatal(err)
	}
	failed := map[string]error{key: errors.New("no rate was sustained")}
	given, usual := step("c", "90%", "4KiB"), step("d", "90%", "4KiB")
	given.Params["rate"] = 1000
	delete(usual.Params, "rate")
	search := result.Step{ID: "max", Workload: "http_max", Params: map[string]any{"response": "4KiB"}}
	r := new(Runner)
	for doubt, want := range map[error][]string{nil: {"b"}, &doubtful{found: 10, loop: 2875}: {"b", "max"}} {
		run := &result.Run{Plan: result.Plan{Steps: []result.Step{small, large, given, usual, search, {ID: "dts", Workload: "tcp_bulk"}}}}
		if err := leaveOut(run, result.Entry{ID: "host"}, func(s result.Step) error { return r.noRate(s, failed, doubt) }); err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, u := range run.Unsupported {
			out = append(out, u.Step)
			if u.Step == "b" && !strings.Contains(u.Reason, "no rate was sustained") {
				t.Errorf("reason %q", u.Reason)
			}
		}
		if !slices.Equal(out, want) || len(run.Plan.Steps) != 6-len(want) {
			t.Errorf("doubt %v: left out %v, want %v", doubt, out, want)
		}
	}
	none := &result.Run{Plan: result.Plan{Steps: []result.Step{large}}}
	if err := leaveOut(none, result.Entry{ID: "host"}, func(s result.Step) error { return r.noRate(s, failed, nil) }); err == nil {
		t.Error("a run without any step is no error")
	}
}

// A search that ends far below a closed loop's rate, or fails, has met the machine's limits and
// not the path's.
func TestBelievable(t *testing.T) {
	for _, c := range []struct {
		found float64
		err   error
		want  bool
	}{{10, nil, false}, {476, nil, false}, {0, errors.New("no rate"), false}, {2500, nil, true}} {
		d := &doubtful{c.found, 3457, c.err}
		if got := d.believable(); got != c.want {
			t.Errorf("%v, %v: %v", c.found, c.err, got)
		}
		if c.err != nil && (!errors.Is(d, c.err) || !strings.Contains(d.Error(), c.err.Error())) {
			t.Errorf("%v does not say %v", d, c.err)
		}
	}
}
