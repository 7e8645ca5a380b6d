package analysis

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// Options are what the analysis can't learn from the run, and its levels. The
// zero value takes everything from the run.
type Options struct {
	Confidence float64      // of intervals; 0 is 0.95
	Alpha      float64      // the chance of any false tier of a metric; 0 is 0.05
	LineRate   unit.BitRate // of the underlay; 0 takes the setting "line-rate" of the plan
	MTU        int          // of the underlay, bytes; 0 takes the setting "mtu", else 1500

	// Catalogue is what the contenders promise, to judge their checks by.
	Catalogue    []Capability
	Traces       []Trace    // of the run's samples, as far as there are recordings
	WattsPerCore float64    // of a busy core, to estimate energy where none was measured; 0: no estimate
	Fleet        *FleetSize // to carry costs over to; nil: no fleet
	Prices       *Prices    // of the fleet; nil: none
}

func (o Options) complete(settings map[string]string) Options {
	o.Confidence = cmp.Or(o.Confidence, 0.95)
	o.Alpha = cmp.Or(o.Alpha, 0.05)
	if rate, err := unit.ParseBitRate(settings["line-rate"]); err == nil {
		o.LineRate = cmp.Or(o.LineRate, rate)
	}
	if mtu, err := strconv.Atoi(settings["mtu"]); err == nil {
		o.MTU = cmp.Or(o.MTU, mtu)
	}
	o.MTU = cmp.Or(o.MTU, 1500)
	return o
}

// Assemble makes the report of a run. Only valid samples count for figures;
// the others and everything else that a reader must know are its findings.
func Assemble(rec *result.Record, opt Options) *Report {
	e := collect(rec, opt.complete(rec.Run.Plan.Settings))
	run := &rec.Run
	efficiency := e.efficiencies()
	return &Report{
		Schema: ReportSchema,
		Run: RunInfo{
			ID: run.ID, Arena: run.Arena, Started: run.Started,
			Rounds: run.Plan.Rounds, Suite: run.Plan.Suite, Environment: run.Environment, Unpaired: run.Plan.Unpaired,
		},
		Baseline:    run.Baseline,
		Results:     e.results,
		Findings:    findings(e),
		Unsupported: append([]result.Unsupported{}, run.Unsupported...),
		Contenders:  run.Contenders,
		Steps:       run.Plan.Steps,
		Curves:      curves(e.pools),
		Plan:        run.Plan,
		Tool:        run.Tool,
		Traces:      e.opt.Traces,
		Measured:    e.measured,
		Efficiency:  efficiency,
		Fleet:       e.fleet(efficiency),
	}
}

// group is where contenders may be compared with each other.
type group struct{ Kernel, Underlay string }

// place is where figures are compared: one metric of one step in a group.
type place struct {
	group
	Step, Metric string
}

// series is a contender's values at a place, by round.
type series map[int]float64

func (s series) rounds() []int { return slices.Sorted(maps.Keys(s)) }

func (s series) values() []float64 {
	values := make([]float64, 0, len(s))
	for _, round := range s.rounds() {
		values = append(values, s[round])
	}
	return values
}

// evidence is a run arranged for analysis: what findings are made from.
type evidence struct {
	run     *result.Run
	faults  []result.Fault
	opt     Options
	samples []result.Sample  // all, as sealed
	valid   []*result.Sample // those that count
	figures map[place]map[string]series
	pools   []pool
	// percentiles of the pools, by contender; every place is in figures too.
	percentiles map[place]map[string]percentile

	paths   map[string]string // by step
	results []Result
	unknown []string // metrics that the catalogue lacks
	groups  []group  // that samples were taken in, by name
	places  []place  // keys of figures, ordered
	ranks   stat.RankTest
	splits  stat.SplitTest
	changes stat.ChangeTest
	byKey   map[result.Key]*result.Sample // the valid ones

	measured map[result.Key]bool // samples of any verdict, all rounds as 0

	levelsFound []levelChange // see levels
	levelsDone  bool
}

func collect(rec *result.Record, opt Options) *evidence {
	e := &evidence{
		run: &rec.Run, faults: rec.Faults, opt: opt, samples: rec.Samples,
		figures: map[place]map[string]series{}, percentiles: map[place]map[string]percentile{}, paths: map[string]string{},
		byKey: map[result.Key]*result.Sample{}, measured: map[result.Key]bool{},
	}
	known := map[string]bool{}
	for _, m := range result.Metrics() {
		known[m.Name] = true
	}
	for i := range rec.Samples {
		s := &rec.Samples[i]
		e.measured[result.Key{Contender: s.Contender, Underlay: s.Underlay, Step: s.Step}] = true
		if s.Verdict != result.Valid {
			continue
		}
		e.valid = append(e.valid, s)
		e.byKey[s.Key()] = s
		e.paths[s.Step] = s.Path
		for name, v := range s.Metrics {
			switch {
			case !known[name] && !slices.Contains(e.unknown, name):
				e.unknown = append(e.unknown, name)
			case known[name] && name != "memory_overhead":
				e.add(s, name, v)
			}
		}
	}
	e.addMemoryOverhead()
	e.pools = pools(e.valid)
	e.addPercentiles()
	e.groups, e.places = groups(rec.Samples), e.orderedPlaces()
	e.results = e.figureResults()
	return e
}

// sampleOf is the valid sample of a key, or nil.
func (e *evidence) sampleOf(key result.Key) *result.Sample { return e.byKey[key] }

func groupOf(s *result.Sample) group { return group{s.Kernel, s.Underlay} }

// add notes a value; of several for one round the first counts.
func (e *evidence) add(s *result.Sample, metric string, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) || metric == "goodput" && v <= 0 {
		return // the verdict refuses such values; a file may hold them all the same
	}
	p := place{groupOf(s), s.Step, metric}
	if e.figures[p] == nil {
		e.figures[p] = map[string]series{}
	}
	if e.figures[p][s.Contender] == nil {
		e.figures[p][s.Contender] = series{}
	}
	if _, again := e.figures[p][s.Contender][s.Round]; !again {
		e.figures[p][s.Contender][s.Round] = v
	}
}

// idle is the workload that loads nothing.
const idle = "idle"

// addMemoryOverhead derives what a contender's nodes use more than the
// baseline's in the same round when both are idle.
func (e *evidence) addMemoryOverhead() {
	for _, s := range e.valid {
		used, measured := s.Metrics["memory_used"]
		base, beside := e.baseOfRound(e.figures[place{groupOf(s), s.Step, "memory_used"}][e.run.Baseline], s.Round)
		if s.Workload == idle && s.Contender != e.run.Baseline && measured && beside {
			e.add(s, "memory_overhead", used-base)
		}
	}
}

// figureResults makes one result of each contender at each place, in the
// order group, step, metric, contender.
func (e *evidence) figureResults() []Result {
	results := []Result{}
	for _, p := range e.places {
		metric, _ := result.LookupMetric(p.Metric)
		contenders := e.figures[p]
		ranked := e.ranked(p, contenders)
		tiers := e.tiers(ranked, metric.Better)
		for _, contender := range e.inOrder(contenders) {
			s := contenders[contender]
			r := Result{
				Contender: contender, Kernel: p.Kernel, Underlay: p.Underlay,
				Step: p.Step, Path: e.paths[p.Step],
				Metric: p.Metric, Unit: metric.Unit, Better: metric.Better,
				N: len(s), Median: e.headline(p, contender), CI: interval(s.values(), e.opt.Confidence),
				Confidence: e.opt.Confidence, Values: s.values(), Ranked: ranked[contender] != nil, Tier: tiers[contender],
			}
			if p.Metric == "memory_overhead" && e.unpaired() {
				r.CI = nil // it would leave the baseline's own noise out
			}
			if pooled, ok := e.percentiles[p][contender]; ok {
				r.N, r.Count = max(r.N, pooled.rounds), pooled.count
			}
			if contender != e.run.Baseline {
				r.VsBaseline = e.compare(p, contender)
			}
			r.MDD, r.RoundsFor5 = e.resolution(p, contender)
			results = append(results, r)
		}
	}
	return results
}

// interval is that of the median, nil with too few values.
func interval(values []float64, confidence float64) *Interval {
	in, err := stat.MedianInterval(values, confidence)
	if err != nil {
		return nil
	}
	return &Interval{in.Low, in.High}
}

// orderedPlaces are the places of all figures: groups by name, steps as planned and others
// after them, metrics as in the catalogue.
func (e *evidence) orderedPlaces() []place {
	metrics := map[string]int{}
	for i, m := range result.Metrics() {
		metrics[m.Name] = i
	}
	return slices.SortedFunc(maps.Keys(e.figures), func(a, b place) int {
		return cmp.Or(
			cmp.Compare(a.Kernel, b.Kernel), cmp.Compare(a.Underlay, b.Underlay),
			e.compareSteps(a.Step, b.Step), cmp.Compare(metrics[a.Metric], metrics[b.Metric]))
	})
}

func (e *evidence) compareSteps(a, b string) int {
	position := func(id string) int {
		i := slices.IndexFunc(e.run.Plan.Steps, func(s result.Step) bool { return s.ID == id })
		return orLast(i)
	}
	return cmp.Or(cmp.Compare(position(a), position(b)), cmp.Compare(a, b))
}

// inOrder are the contenders of a map as the plan has them, others after.
func (e *evidence) inOrder(contenders map[string]series) []string {
	return slices.SortedFunc(maps.Keys(contenders), e.compareContenders)
}

func (e *evidence) compareContenders(a, b string) int {
	position := func(id string) int {
		i := slices.IndexFunc(e.run.Plan.Contenders, func(c result.Entry) bool { return c.ID == id })
		return orLast(i)
	}
	return cmp.Or(cmp.Compare(position(a), position(b)), cmp.Compare(a, b))
}

// orLast puts what was not found behind everything else.
func orLast(index int) int {
	if index < 0 {
		return math.MaxInt
	}
	return index
}
