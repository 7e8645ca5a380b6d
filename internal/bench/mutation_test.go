package bench

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/selftest"
	"github.com/cnibench/cnibench/internal/selftest/plant"
	"github.com/cnibench/cnibench/internal/testutil/needs"
	"github.com/cnibench/cnibench/internal/workload"
)

// simulated is a machine in numbers: its time is counted in slices, its speed goes from
// one level to another, and a neighbour comes and goes. Contenders on it are the
// self-test's.
type simulated struct {
	*fakeArena
	now   int     // slices taken by anybody
	clock float64 // what the instrument's second is in seconds; 1 where it is right
	noise *rand.Rand
	seen  int  // slices that the detector has seen
	blind bool // the detector sees no neighbour
}

func (*simulated) MaxUp() int { return 9 }

func (m *simulated) Up(ctx context.Context, c *contender.Contender, variant string) (arena.Network, error) {
	net, err := m.fakeArena.Up(ctx, c, variant)
	return simNet{net, c.ID}, err
}

type simNet struct {
	arena.Network
	id string
}

func (n simNet) Pair(ctx context.Context, path string) (arena.Pair, error) {
	p, err := n.Network.Pair(ctx, path)
	p.Client = simEnd{p.Client, n.id}
	return p, err
}

type simEnd struct {
	arena.Endpoint
	id string
}

// mood is the machine's speed at a time: each level lasts 23 slices.
func mood(now int) float64 { return 0.3 + rand.New(rand.NewPCG(3, uint64(now/23))).Float64() }

// busy says whether the neighbour is there: for 20 slices of 60.
func busy60(now int) bool { return now%60 < 20 }

func (m *simulated) begin() { m.seen = m.now }

func (m *simulated) end() (string, cpuUsage) {
	for t := m.seen; t < m.now; t++ {
		if busy60(t) && !m.blind {
			return "the neighbour was there", cpuUsage{}
		}
	}
	return "", cpuUsage{}
}

func (*simulated) close() {}

// simLoad is a step on the simulated machine.
type simLoad struct {
	m    *simulated
	name string
}

func (l simLoad) Info() workload.Info {
	w, err := workload.Lookup(l.name)
	if err != nil {
		panic(err)
	}
	return workload.Info{Name: l.name, Params: w.Info().Params}
}

func (simLoad) Drive(context.Context, *workload.Session) (workload.Outcome, error) {
	panic("not in slices")
}

func (l simLoad) Open(_ context.Context, s *workload.Session) (workload.Slicer, error) {
	return &simSlicer{simLoad: l, contender: s.Client.(simEnd).id}, nil
}

type simSlicer struct {
	simLoad
	contender string
	taken     []map[string]float64
}

func (s *simSlicer) Slice(_ context.Context, _, length time.Duration, begin, end func()) (workload.Slice, error) {
	begin()
	speed := mood(s.m.now) * (1 + 0.02*s.m.noise.NormFloat64())
	if busy60(s.m.now) {
		speed *= 0.2 + 0.8*s.m.noise.Float64()
	}
	s.m.now++
	end()
	figures := map[string]float64{}
	switch s.name {
	case "tcp_bulk":
		figures[result.Goodput] = 20e9 * speed
		if s.contender == string(plant.Capped) {
			figures[result.Goodput] = 957e6
		}
		figures[result.Goodput] /= s.m.clock
	case "udp_bulk":
		figures[result.Goodput], figures[result.Loss] = 196e6, 0
		if s.contender == string(plant.Lossy) {
			figures[result.Loss] = plant.Loss
		}
	case "tcp_rr":
		figures[result.NetworkTimeP50] = 30e-6 / speed * s.m.clock
		switch s.contender {
		case string(plant.Slow):
			figures[result.NetworkTimeP50] *= 1.5
		case string(plant.Delayed):
			figures[result.NetworkTimeP50] += plant.Delay().Seconds() * s.m.clock
		}
	case "http_rate":
		figures["latency_p95"] = 7.5e-3 * s.m.clock
	}
	s.taken = append(s.taken, figures)
	return workload.Slice{Elapsed: length, Metrics: figures}, nil
}

func (s *simSlicer) Close(counts func(int) bool) (workload.Outcome, error) {
	mean, n := map[string]float64{}, 0.0
	for i, figures := range s.taken {
		if !counts(i) {
			continue
		}
		n++
		for name, v := range figures {
			mean[name] += (v - mean[name]) / n
		}
	}
	return workload.Outcome{Metrics: mean}, nil
}

// selfTest makes the self-test's run on the machine and judges it: by trial, whether
// what was planted was found.
func (m *simulated) selfTest(t *testing.T, change func(*result.Plan)) map[string]bool {
	t.Helper()
	bed := selftest.Conditions{Baseline: "host", MTU: 1500}
	p := &result.Plan{Rounds: 7, Seed: 7, Steps: bed.Steps(), Gaps: bed.Gaps(), Duration: 0.01, Slice: 0.001, Together: 9}
	p.Contenders = []result.Entry{{ID: "host"}}
	for _, c := range bed.Contenders(&contender.Contender{}) {
		p.Contenders = append(p.Contenders, result.Entry{ID: c.ID})
	}
	change(p)
	m.fakeArena, m.noise = &fakeArena{}, rand.New(rand.NewPCG(1, 2))
	r := runner(t, m, p)
	r.detector = m
	r.lookup = func(name string) (workload.Workload, error) { return simLoad{m, name}, nil }
	if err := r.Run(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	rec, err := result.Load(r.Store.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for i := range rec.Samples {
		s := &rec.Samples[i]
		forgetSteal(s) // it is not the simulated machine's
		if len(s.Reasons) > 0 {
			t.Fatalf("%s of %s: %v", s.Step, s.Contender, s.Reasons)
		}
	}
	rec.Run.Baseline = bed.Baseline
	rec.Run.Environment = result.Environment{"check.mtu.narrow.path": "1400", "check.mtu.twin.path": "1500"}
	found := map[string]bool{}
	for _, trial := range bed.Judge(rec, report.Analyse(rec, analysis.Options{})).Trials {
		found[trial.Name] = trial.Passed
		t.Logf("%v %s: %s", trial.Passed, trial.Name, trial.Found)
	}
	return found
}

// The self-test passes on a moody machine with a neighbour, and fails where the
// instrument is broken on purpose: a detector that sees nothing, contenders whose slices are
// not taken beside each other, a clock that is 5 % too fast.
func TestSelfTestFindsABrokenInstrument(t *testing.T) {
	as := func(*result.Plan) {}
	alone := func(p *result.Plan) { p.Together = 1 }
	for name, c := range map[string]struct {
		machine *simulated
		change  func(*result.Plan)
		missed  []string // at least
		whole   bool     // in CI only
	}{
		"right":         {&simulated{clock: 1}, as, nil, false},
		"no detector":   {&simulated{clock: 1, blind: true}, as, []string{"busy neighbour"}, true},
		"no pairing":    {&simulated{clock: 1}, alone, []string{"twins: goodput", "twins: network_time_p50"}, true},
		"a wrong clock": {&simulated{clock: 1.05}, as, []string{"rate"}, false},
	} {
		if c.whole && !needs.Whole() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var missed []string
			for trial, found := range c.machine.selfTest(t, c.change) {
				if !found {
					missed = append(missed, trial)
				}
			}
			if c.missed == nil && missed != nil {
				t.Errorf("a sound instrument did not find %v", missed)
			}
			for _, trial := range c.missed {
				if !slices.Contains(missed, trial) {
					t.Errorf("the broken instrument passed %s", trial)
				}
			}
		})
	}
}
