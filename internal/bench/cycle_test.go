package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// together is a fakeArena in which contenders stand at the same time.
type together struct{ *fakeArena }

func (together) MaxUp() int { return 9 }

// paced is a Sliceable that measures what it is told to, by slice.
type paced struct {
	open, maximum int
	taken         []string         // "contender" of each slice, in order
	after         func(slices int) // called after each slice
}

func (*paced) Info() workload.Info {
	return workload.Info{Name: "paced", Metrics: []string{result.Goodput}}
}
func (*paced) Drive(context.Context, *workload.Session) (workload.Outcome, error) {
	return workload.Outcome{}, errors.New("driven as a whole")
}
func (w *paced) Open(context.Context, *workload.Session) (workload.Slicer, error) {
	w.open++
	w.maximum = max(w.maximum, w.open)
	return &pacedSlicer{w: w, id: w.open}, nil
}

type pacedSlicer struct {
	w  *paced
	id int
	n  int
}

func (s *pacedSlicer) Slice(ctx context.Context, lead, length time.Duration, begin, end func()) (workload.Slice, error) {
	s.w.taken = append(s.w.taken, string(rune('a'+s.id-1)))
	begin()
	time.Sleep(length)
	end()
	s.n++
	if s.w.after != nil {
		s.w.after(len(s.w.taken))
	}
	return workload.Slice{Elapsed: length, Metrics: map[string]float64{result.Goodput: 1e9 * float64(s.n)}}, ctx.Err()
}

func (s *pacedSlicer) Close(counts func(int) bool) (workload.Outcome, error) {
	s.w.open--
	n := 0
	for i := range s.n {
		if counts(i) {
			n++
		}
	}
	return workload.Outcome{Metrics: map[string]float64{result.Goodput: 1e9 * float64(n)}}, nil
}

func runInSlices(t *testing.T, w *paced, contenders ...string) (*Runner, *result.Plan, *fakeArena) {
	t.Helper()
	p := plan(2, contenders, []string{"x"})
	for i := range p.Steps {
		p.Steps[i].Workload, p.Steps[i].Path = "paced", arena.PathPod
	}
	p.Duration, p.Slice, p.Together = 0.05, 0.01, len(contenders)
	a := &fakeArena{}
	r := runner(t, together{a}, p)
	r.lookup = func(string) (workload.Workload, error) { return w, nil }
	return r, p, a
}

// All contenders of a round stand at the same time and take their slices by turns;
// the baseline takes more where there are many.
func TestCycles(t *testing.T) {
	w := &paced{}
	r, p, a := runInSlices(t, w, "host", "a", "b", "c", "d")
	begun := time.Now()
	if err := r.Run(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	took, elapsed := time.Since(begun).Seconds(), 0.0
	if a.open != 0 || w.open != 0 || w.maximum != 5 {
		t.Errorf("%d networks and %d loads are open; at most %d loads were at once, want all 5", a.open, w.open, w.maximum)
	}
	samples := samplesOf(t, r)
	if len(samples) != 2*5*2 {
		t.Fatalf("%d samples, want 2 rounds × 5 contenders × (the step and the set-up)", len(samples))
	}
	for _, s := range samples {
		if s.Step != "x" {
			continue
		}
		if s.Verdict != result.Valid || s.Slices == nil {
			t.Fatalf("%s: %s %v, slices %v", s.Contender, s.Verdict, s.Reasons, s.Slices)
		}
		each := 1
		if s.Contender == "host" {
			each = 2 // √4 others
		}
		var want []int
		for cycle := 1; cycle <= 5; cycle++ {
			want = append(want, slices.Repeat([]int{cycle}, each)...)
		}
		if !slices.Equal(s.Slices.Cycles, want) || len(s.Slices.Metrics[result.Goodput]) != len(want) {
			t.Errorf("%s: cycles %v with %d values, want %v", s.Contender, s.Slices.Cycles, len(s.Slices.Metrics[result.Goodput]), want)
		}
		if got := float64(s.Elapsed); got < 0.01*float64(len(want)) {
			t.Errorf("%s: %v s elapsed, want the length of its %d slices", s.Contender, got, len(want))
		}
		elapsed += float64(s.Elapsed)
		if _, err := os.Stat(filepath.Join(r.Store.Dir(), s.Raw, "slices.jsonl")); err != nil {
			t.Error(err)
		}
	}
	if elapsed > took {
		t.Errorf("slices of %v s in a run of %v s: they overlap", elapsed, took)
	}
	// In turns: nobody has two cycles before another one has the first.
	if first := w.taken[:6]; len(slices.Compact(slices.Sorted(slices.Values(first)))) != 5 {
		t.Errorf("the first cycle was of %q", first)
	}
	if slices.Equal(w.taken[:6], w.taken[6:12]) && slices.Equal(w.taken[6:12], w.taken[12:18]) {
		t.Errorf("three cycles have the same order: %q", w.taken)
	}
}

// Without room for all loads at the same time, contenders take turns in blocks: the
// baseline's load is open in all of them and has every cycle, the others have their block's.
func TestBlocks(t *testing.T) {
	w := &paced{}
	r, p, a := runInSlices(t, w, "host", "a", "b", "c", "d")
	p.Together, p.Rounds = 3, 1
	if err := r.Run(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if a.open != 0 || w.open != 0 || w.maximum != 3 {
		t.Errorf("%d networks and %d loads are open; at most %d loads were at once, want 3", a.open, w.open, w.maximum)
	}
	beside := map[int][]string{} // the contenders of each cycle
	for _, s := range samplesOf(t, r) {
		if s.Slices == nil {
			continue
		}
		if s.Verdict != result.Valid {
			t.Errorf("%s: %v", s.Contender, s.Reasons)
		}
		for _, cycle := range s.Slices.Cycles {
			beside[cycle] = append(beside[cycle], s.Contender)
		}
	}
	for cycle := 1; cycle <= 10; cycle++ {
		first := beside[1+(cycle-1)/5*5] // of the block
		if !slices.Equal(beside[cycle], first) || len(first) != 3 || !slices.Contains(first, "host") {
			t.Errorf("cycle %d is of %v, want the host and the block's two", cycle, beside[cycle])
		}
	}
	if len(beside) != 10 || slices.Equal(beside[1], beside[6]) {
		t.Errorf("%d cycles, those of the blocks %v and %v", len(beside), beside[1], beside[6])
	}
}

func TestBlocksOfLists(t *testing.T) {
	for _, c := range []struct {
		n, size int
		want    []int
	}{{0, 3, []int{0}}, {3, 3, []int{3}}, {4, 3, []int{2, 2}}, {7, 3, []int{2, 2, 3}}, {2, 0, []int{1, 1}}} {
		var got []int
		for _, block := range blocks(make([]int, c.n), c.size) {
			got = append(got, len(block))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d in blocks of %d: %v, want %v", c.n, c.size, got, c.want)
		}
	}
}

// A run that is ended within a cycle has sealed none of the step's samples, and
// goes on with all contenders of the round.
func TestCyclesInterruptedAndResumed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &paced{after: func(n int) {
		if n == 25 { // in the second round
			cancel()
		}
	}}
	r, p, a := runInSlices(t, w, "host", "a", "b")
	if err := r.Run(ctx, p, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if a.open != 0 || w.open != 0 {
		t.Errorf("%d networks and %d loads are open", a.open, w.open)
	}
	sealed := map[result.Key]bool{}
	for _, s := range samplesOf(t, r) {
		sealed[s.Key()] = true
		if s.Step == "x" && s.Round == 2 {
			t.Errorf("%s of the interrupted cycle is sealed", s.Contender)
		}
	}
	w.after = nil
	if err := r.Store.Close(); err != nil {
		t.Fatal(err)
	}
	store, _, err := result.Resume(r.Store.Dir())
	if err != nil {
		t.Fatal(err)
	}
	r.Store = store
	if err := r.Run(t.Context(), p, maps.Clone(sealed)); err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, s := range samplesOf(t, r) {
		if s.Step == "x" {
			count++
		}
		if s.Step == "x" && s.Verdict != result.Valid {
			t.Errorf("%s, round %d: %v", s.Contender, s.Round, s.Reasons)
		}
	}
	if count != 6 {
		t.Errorf("%d samples of the step, want 2 rounds × 3 contenders", count)
	}
}

// A run that has enough ends after a whole round, with its last contender kept up if that
// is wanted.
func TestRunEndsWhenEnough(t *testing.T) {
	w := &paced{}
	r, p, a := runInSlices(t, w, "host", "a")
	p.Rounds = 9
	var asked []int
	r.Enough = func(round int, _ time.Duration) bool {
		asked = append(asked, round)
		return round == 3
	}
	kept := 0 // networks that are up meanwhile
	r.Keep = func(context.Context, []string) { kept += a.open }
	if err := r.Run(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if kept != 1 {
		t.Errorf("%d networks were kept up at the end, want the last contender's", kept)
	}
	if a.open != 0 || !slices.Equal(asked, []int{1, 2, 3}) || len(samplesOf(t, r)) != 3*2*2 {
		t.Errorf("asked after rounds %v, %d samples, %d networks up; want 3 rounds × 2 contenders × (the step and the set-up)", asked, len(samplesOf(t, r)), a.open)
	}
}

// searching is a workload that searches for a rate.
type searching struct{}

func (searching) Info() workload.Info {
	return workload.Info{Name: "searching", Metrics: []string{result.Goodput}, Search: time.Minute}
}
func (searching) Drive(context.Context, *workload.Session) (workload.Outcome, error) {
	time.Sleep(10 * time.Millisecond)
	return workload.Outcome{Metrics: map[string]float64{result.Goodput: 1e9}}, nil
}

// Steps that search for a rate are left out of rounds that do without, and Enough learns
// how long they took in the others.
func TestSearchesAreLeftOut(t *testing.T) {
	w := &paced{}
	r, p, _ := runInSlices(t, w, "host", "a")
	p.Rounds = 3
	p.Steps = append(p.Steps, result.Step{ID: "top", Workload: "searching", Path: arena.PathPod})
	r.lookup = func(name string) (workload.Workload, error) {
		if name == "searching" {
			return searching{}, nil
		}
		return w, nil
	}
	round := 0
	r.Search = func() bool { round++; return round == 2 }
	var took []bool
	r.Enough = func(_ int, searched time.Duration) bool {
		took = append(took, searched >= 20*time.Millisecond)
		return false
	}
	last := Progress{}
	r.Progress = func(p Progress) { last = p }
	if err := r.Run(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, s := range samplesOf(t, r) {
		got[fmt.Sprint(s.Step, " in round ", s.Round)]++
	}
	want := map[string]int{"x in round 1": 2, "x in round 2": 2, "x in round 3": 2, "top in round 2": 2, "setup in round 1": 2, "setup in round 2": 2, "setup in round 3": 2}
	if !maps.Equal(got, want) || !slices.Equal(took, []bool{false, true, false}) {
		t.Errorf("samples %v, want %v; searched %v", got, want, took)
	}
	if last.Done != 8 || last.Total != 8 {
		t.Errorf("%d of %d done at the end, want 8 of 8", last.Done, last.Total)
	}
}

// What other processes used is of the cycles that count, and no negative time.
func TestForeign(t *testing.T) {
	from := reading{total: 100, foreign: 5, cpus: 2}
	var all cpuUsage
	if all.foreignRate() != nil {
		t.Error("known before anything was read")
	}
	all.add(from.usage(reading{total: 104, foreign: 5.2, cpus: 2})) // 2 s of two CPUs
	all.add(from.usage(reading{total: 108, foreign: 5.4, cpus: 2})) // 4 s
	if got := all.foreignRate(); got == nil || math.Abs(*got-0.1) > 1e-12 {
		t.Errorf("got %v, want 0.1 CPUs", got)
	}
	ticks := from.usage(reading{total: 104, foreign: 4.9, cpus: 2})
	if got := ticks.foreignRate(); got == nil || *got != 0 {
		t.Errorf("got %v, want 0", got)
	}
	unread := from.usage(reading{})
	if unread.foreignRate() != nil {
		t.Error("known although /proc could not be read")
	}
}

// mostlyBusy is a detector that finds one of six cycles undisturbed.
type mostlyBusy struct{ cycles int }

func (g *mostlyBusy) begin() { g.cycles++ }

func (g *mostlyBusy) end() (string, cpuUsage) {
	if g.cycles%6 == 1 {
		return "", cpuUsage{}
	}
	return "the neighbour was there", cpuUsage{}
}

func (*mostlyBusy) close() {}

// The slices of the undisturbed cycles are a whole window, however many were left out.
func TestFewCyclesAreNoShortWindow(t *testing.T) {
	r, p, _ := runInSlices(t, &paced{}, "host", "a")
	p.Duration, r.detector = 0.06, &mostlyBusy{}
	if err := r.Run(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	for _, s := range samplesOf(t, r) {
		if s.Slices == nil {
			continue
		}
		forgetSteal(&s)
		if len(s.Slices.Cycles) != 2 || s.Verdict != result.Valid {
			t.Errorf("%s: cycles %v of which the sample is %s: %v", s.Contender, s.Slices.Cycles, s.Verdict, s.Reasons)
		}
	}
}

// A disturbed cycle is left out for all contenders; what the detector says looks at no
// figure.
func TestGate(t *testing.T) {
	idle := reading{total: 100}
	for name, c := range map[string]struct {
		to   reading
		want bool
	}{
		"quiet":      {reading{total: 104, steal: 0.1, foreign: 0.1}, false},
		"hypervisor": {reading{total: 104, steal: 1}, true},
		"neighbour":  {reading{total: 104, foreign: 0.6}, true},
		"no time":    {reading{total: 100}, false},
	} {
		if got := idle.disturbance(c.to); (got != "") != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
