package run

import (
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/bench"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/clocktest"
)

// A run ends when the widest interval of what is moved, and how long that takes, is narrow
// enough; until then it says how wide that is and what more it takes. A resumed run may ask
// for more than its plan. Tails end no run.
func TestStoppingByWidth(t *testing.T) {
	ratio := func(metric string, low, high float64) analysis.Result {
		return analysis.Result{Contender: "vxlan", Step: "dts", Metric: metric, VsBaseline: &analysis.Comparison{Ratio: 0.5, CI: &analysis.Interval{low, high}}}
	}
	interim := func() (*analysis.Report, error) {
		return &analysis.Report{Results: []analysis.Result{
			ratio(result.Goodput, 0.48, 0.52), ratio(result.NetworkTimeP50, 1.98, 2.02), ratio(result.NetworkTimeP99, 1, 9),
		}}, nil
	}
	for _, c := range []struct {
		until   string // of the resumed run; "" is the plan's 5 %
		minimum int
		enough  bool
		said    string
	}{
		{"", 0, true, "all ratios are known to ±5 %"},
		{"", 11, false, ""},
		{"", 10, true, "all ratios are known to ±5 %"},
		{"2%", 0, false, "the widest interval of a ratio is ±4.08 % (goodput of vxlan at dts); ±2 % would take some 32 more rounds"},
		{"0.1%", 0, false, "is out of reach on this machine"},
	} {
		said := ""
		p := &result.Plan{Until: 0.05}
		end := (&Request{Until: c.until, Given: map[string]bool{"until": c.until != ""}}).end(p)
		end.RaiseLeast(c.minimum)
		s := newStopping(end, p, interim, func(text string) { said += text })
		if got := s.enough(10, 0); got != c.enough || !strings.Contains(said, c.said) {
			t.Errorf("until %q: enough %v, want %v; said %q, want %q", c.until, got, c.enough, said, c.said)
		}
	}
}

// What is out of reach is said once, with what the rounds that fit would give.
func TestStoppingOutOfReach(t *testing.T) {
	interim := func() (*analysis.Report, error) {
		return &analysis.Report{Results: []analysis.Result{{Contender: "vxlan", Step: "dts", Metric: result.Goodput, VsBaseline: &analysis.Comparison{Ratio: 0.5, CI: &analysis.Interval{0.25, 1}}}}}, nil
	}
	said := ""
	s := newStopping(End{Until: 0.001, Max: 20 * time.Hour, Least: 6}, &result.Plan{}, interim, func(text string) { said += text })
	s.begun, s.last = time.Now().Add(-5*time.Hour), time.Now().Add(-time.Hour)
	s.enough(5, 0)
	for _, want := range []string{"the widest interval of a ratio is ±100 %", "the 19 rounds that fit", "about ±51.3 %"} {
		if !strings.Contains(said, want) {
			t.Errorf("said %q, want %q", said, want)
		}
	}
	if said = ""; s.enough(6, 0) || said != "" {
		t.Errorf("said again: %q", said)
	}
}

// A run ends when its time is over, whatever is done to the machine's clock meanwhile.
func TestStoppingGoesByASteadyClock(t *testing.T) {
	for name, step := range clocktest.Steps {
		for over, begun := range map[bool]time.Duration{false: 10 * time.Minute, true: time.Hour - time.Second} {
			s := newStopping(End{Max: time.Hour, Least: SelfTestRounds}, &result.Plan{}, nil, func(string) {})
			s.begun = clocktest.Before(t, time.Now().Add(-begun), step)
			s.last = clocktest.Before(t, time.Now().Add(-5*time.Minute), step)
			if s.enough(s.Least, 0) != over {
				t.Errorf("clock %s, %v after the begin of an hour: over is %v", name, begun, !over)
			}
			if s.longest < 5*time.Minute || s.longest > 6*time.Minute {
				t.Errorf("clock %s: a round of 5 minutes took %v", name, s.longest)
			}
		}
	}
}

// Searches for a rate take a third of the time at most, so that the other steps get their
// rounds; where there are no others they take all of it.
func TestStoppingLimitsSearches(t *testing.T) {
	top, ladder := result.Step{Workload: "http_max"}, result.Step{Workload: "http_rate"}
	for _, c := range []struct {
		steps    []result.Step
		searches bool
		over     bool // after the first round of half an hour, of which searches took 25 minutes
	}{
		{[]result.Step{top, ladder}, false, false},
		{[]result.Step{top}, true, true},
	} {
		said := ""
		s := newStopping(End{Max: 50 * time.Minute, Least: 1, MaxAsked: true}, &result.Plan{Steps: c.steps}, nil, func(text string) { said += text })
		if !s.searches() {
			t.Error("the first round leaves searches out")
		}
		s.begun = time.Now().Add(-30 * time.Minute)
		s.last = s.begun
		if over := s.enough(1, 25*time.Minute); over != c.over || s.searches() != c.searches || strings.Contains(said, "left out after round 1") == c.searches {
			t.Errorf("%v: over %v, searches go on %v, said %q", c.steps, over, s.searches(), said)
		}
	}
}

// A round counts beside the rounds that the run will have, not beside the plan's limit.
func TestExpectedRounds(t *testing.T) {
	p := &result.Plan{Rounds: 60, Until: 0.05, MaxTime: 240, Contenders: make([]result.Entry, 9)}
	s := &stopping{End: End{Max: 240 * time.Second, Least: SelfTestRounds}, begun: time.Now()}
	s.last = s.begun
	at := s.expect(bench.Progress{Total: 600, Text: "round 1: canal"}, p)
	if at.Text != "round 1 of about 11: canal" || at.Total != 110 {
		t.Errorf("%+v", at)
	}
	s.finished, s.longest, s.last = 2, 20*time.Second, s.begun.Add(40*time.Second)
	if n := s.rounds(p); n != 12 {
		t.Errorf("%d rounds, want 12", n)
	}
	fixed := &result.Plan{Rounds: 3}
	if at := s.expect(bench.Progress{Total: 6, Text: "round 1/3: canal"}, fixed); at.Total != 6 || at.Text != "round 1/3: canal" {
		t.Errorf("%+v", at)
	}
}

// A limit that one round cannot keep is wrong usage.
func TestTooShort(t *testing.T) {
	p := &result.Plan{Duration: 1, Warmup: 1, Steps: make([]result.Step, 2), Contenders: make([]result.Entry, 5)}
	for limit, refused := range map[time.Duration]bool{10 * time.Second: true, 20 * time.Second: false, 0: false} {
		end := End{Max: limit, MaxAsked: true}
		if err := end.tooShort(p); (err != nil) != refused {
			t.Errorf("%v: %v", limit, err)
		}
	}
}
