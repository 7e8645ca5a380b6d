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

// Options are facts that the run does not hold, and the levels of the statistics. The
// zero value takes everything from the run.
type Options struct {
	Confidence float64      // of intervals; 0 is 0.95
	Alpha      float64      // the chance that letters tell any two contenders of a figure apart wrongly; 0 is 0.05
	LineRate   unit.BitRate // of the underlay; 0 takes the setting "line-rate" of the plan
	MTU        int          // of the underlay, bytes; 0 takes the setting "mtu", else 1500

	// Catalogue is what the contenders claim; checks are judged against it.
	Catalogue []Capability
	Traces    []Trace // of the run's samples, as far as there are recordings
}

// Complete fills in missing options: from the plan, then from the defaults.
func (o Options) Complete(p *result.Plan) Options {
	if p.Until > 0 { // the run may end by its own intervals, which are too narrow then
		o.Confidence = cmp.Or(o.Confidence, stat.StoppedConfidence)
	}
	o.Confidence = cmp.Or(o.Confidence, 0.95)
	o.Alpha = cmp.Or(o.Alpha, 0.05)
	settings := p.Settings
	if rate, err := unit.ParseBitRate(settings["line-rate"]); err == nil {
		o.LineRate = cmp.Or(o.LineRate, rate)
	}
	if mtu, err := strconv.Atoi(settings["mtu"]); err == nil {
		o.MTU = cmp.Or(o.MTU, mtu)
	}
	o.MTU = cmp.Or(o.MTU, 1500)
	return o
}

// ComparableSet is a kernel with an underlay: only contenders of one set are compared.
type ComparableSet struct{ Kernel, Underlay string }

// FigureKey is a metric of a step in a comparable set: the figures of its contenders are compared.
type FigureKey struct {
	ComparableSet
	Step, Metric string
}

// With returns the key of another metric at the same step.
func (at FigureKey) With(metric string) FigureKey {
	return FigureKey{at.ComparableSet, at.Step, metric}
}

// Series is a contender's values of a figure, by round.
type Series map[int]float64

// Rounds returns the rounds that have a value, in order.
func (s Series) Rounds() []int { return slices.Sorted(maps.Keys(s)) }

// Values returns the values in the order of rounds.
func (s Series) Values() []float64 {
	values := make([]float64, 0, len(s))
	for _, round := range s.Rounds() {
		values = append(values, s[round])
	}
	return values
}

// Evidence is a run arranged for analysis; findings are made from it.
type Evidence struct {
	Facts
	Faults  []result.Fault
	Samples []result.Sample                 // all, as sealed
	Valid   []*result.Sample                // the valid ones
	Figures map[FigureKey]map[string]Series // by contender
	Pools   []pool                          // the requests of all rounds together; Percentiles are theirs
	// Percentiles of the pools, by contender; every key is in Figures, too.
	Percentiles map[FigureKey]map[string]percentile

	Paths           map[string]string // by step: pod, host, …
	Results         []Result
	Unknown         []string                      // metrics that the catalogue lacks
	Sets            []ComparableSet               // in which samples were taken, by name
	Keys            []FigureKey                   // of Figures, ordered
	Autocorrelation map[ComparableSet]stat.Serial // whether contenders' own noise lasts from round to round; no entry: it is independent in each round
	RankTests       stat.RankTest                 // remembers distributions, as Splits does
	Splits          stat.SplitTest
	byKey           map[result.Key]*result.Sample // valid samples

	Measured map[result.Key]bool        // keys of all samples, valid or not; Round is 0
	taken    map[takenStep]map[int]bool // rounds with a sample, valid or not
}

// Collect arranges a recorded run for analysis.
func Collect(rec *result.Record, opt Options) *Evidence {
	e := &Evidence{
		Facts: Facts{&rec.Run, opt}, Faults: rec.Faults, Samples: rec.Samples,
		Figures: map[FigureKey]map[string]Series{}, Percentiles: map[FigureKey]map[string]percentile{}, Paths: map[string]string{},
		byKey: map[result.Key]*result.Sample{}, Measured: map[result.Key]bool{}, taken: map[takenStep]map[int]bool{},
	}
	e.Run = WithRoundsTaken(e.Run, rec.Samples)
	for i := range rec.Samples {
		s := &rec.Samples[i]
		e.Measured[result.Key{Contender: s.Contender, Underlay: s.Underlay, Step: s.Step}] = true
		at := takenStep{SetOf(s), s.Contender, s.Step}
		if e.taken[at] == nil {
			e.taken[at] = map[int]bool{}
		}
		e.taken[at][s.Round] = true
		if s.Verdict != result.Valid {
			continue
		}
		e.Valid = append(e.Valid, s)
		e.byKey[s.Key()] = s
		e.Paths[s.Step] = s.Path
		for name, v := range s.Metrics {
			switch m, known := result.LookupMetric(name); {
			case !known && !slices.Contains(e.Unknown, name):
				e.Unknown = append(e.Unknown, name)
			case known && !m.Has(result.Derived):
				e.add(s, name, v)
			}
		}
		e.addRetransmits(s)
	}
	// From here on each call reads what those above it have made.
	e.levelCycles()
	e.addMemoryOverhead()
	e.Pools = pools(e.Valid)
	e.addPercentiles()
	e.Sets, e.Keys = comparableSets(rec.Samples), e.sortKeys()
	e.Autocorrelation = e.autocorrelation()
	e.Results = e.figureResults()
	return e
}

// WithRoundsTaken returns the run with the number of rounds that it took, if its plan let it end
// before all rounds.
func WithRoundsTaken(run *result.Run, samples []result.Sample) *result.Run {
	if run.Plan.Until <= 0 && run.Plan.MaxTime <= 0 {
		return run
	}
	short := *run
	short.Plan.Rounds = 0
	for i := range samples {
		short.Plan.Rounds = max(short.Plan.Rounds, samples[i].Round)
	}
	return &short
}

// ValidSample returns the valid sample of a key, or nil.
func (e *Evidence) ValidSample(key result.Key) *result.Sample { return e.byKey[key] }

// SetOf returns the comparable set of a sample.
func SetOf(s *result.Sample) ComparableSet { return ComparableSet{s.Kernel, s.Underlay} }

// add adds a value. If a round has several values, the first counts.
func (e *Evidence) add(s *result.Sample, metric string, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) || metric == result.Goodput && v <= 0 {
		return // cnibench's own samples with such a value are invalid, but those of an imported file may be valid
	}
	at := FigureKey{SetOf(s), s.Step, metric}
	if e.Figures[at] == nil {
		e.Figures[at] = map[string]Series{}
	}
	if e.Figures[at][s.Contender] == nil {
		e.Figures[at][s.Contender] = Series{}
	}
	if _, exists := e.Figures[at][s.Contender][s.Round]; !exists {
		e.Figures[at][s.Contender][s.Round] = v
	}
}

// CountRounds is the number of rounds in which a contender took the step, whether its
// sample is valid or not.
func (e *Evidence) CountRounds(set ComparableSet, contender, step string) int {
	return len(e.taken[takenStep{set, contender, step}])
}

// takenStep is a contender at a step in a comparable set.
type takenStep struct {
	ComparableSet
	contender, step string
}

// Idle is the workload that loads nothing.
const Idle = "idle"

// addMemoryOverhead derives how much more memory a contender's nodes use than the
// baseline's nodes in the same round, both of them idle.
func (e *Evidence) addMemoryOverhead() {
	for _, s := range e.Valid {
		used, measured := s.Metrics[result.MemoryUsed]
		base, hasBase := e.BaseOfRound(e.Figures[FigureKey{SetOf(s), s.Step, result.MemoryUsed}][e.Run.Baseline], s.Round)
		if s.Workload == Idle && s.Contender != e.Run.Baseline && measured && hasBase {
			e.add(s, result.MemoryOverhead, used-base)
		}
	}
}

// addRetransmits derives the retransmits per received GiB, which contenders of different
// goodput can be compared by: twice the traffic gives twice the occasions to retransmit.
func (e *Evidence) addRetransmits(s *result.Sample) {
	segments, counted := s.Metrics[result.Retransmits]
	seconds := cmp.Or(float64(s.Elapsed), float64(e.Run.Plan.Duration)) // an imported sample may not say how long it took
	if gib := s.Metrics[result.Goodput] / 8 * seconds / (1 << 30); counted && gib > 0 {
		e.add(s, result.RetransmitsPerGiB, segments/gib)
	}
}

// figureResults makes a result for each contender and figure, ordered by comparable set,
// step, metric and contender.
func (e *Evidence) figureResults() []Result {
	results := []Result{}
	for _, at := range e.Keys {
		metric, _ := result.LookupMetric(at.Metric)
		contenders := e.Figures[at]
		rankable := e.SelectRankable(at, contenders)
		// The baseline has no letters. It is compared by the intervals of ratios alone, with
		// which letters could disagree.
		lettered := maps.Clone(rankable)
		delete(lettered, e.Run.Baseline)
		ranks := map[string]Rank{}
		if len(lettered) > 1 {
			ranks = e.Ranks(at, lettered, metric.Better)
		}
		closest := e.closest(at, rankable, ranks)
		for _, contender := range e.OrderContenders(contenders) {
			series := contenders[contender]
			r := Result{
				Contender: contender, Kernel: at.Kernel, Underlay: at.Underlay,
				Step: at.Step, Path: e.Paths[at.Step],
				Metric: at.Metric, Unit: metric.Unit, Better: metric.Better,
				N: len(series), Of: e.CountRounds(at.ComparableSet, contender, at.Step), Median: e.Headline(at, contender), CI: intervalOf(e, at, contender, e.Opt.Confidence),
				Confidence: e.Opt.Confidence, Values: series.Values(), Ranked: rankable[contender] != nil, Letters: append([]string{}, ranks[contender].Letters...), Tier: ranks[contender].Tier,
			}
			if pooled, ok := e.Percentiles[at][contender]; ok { // the figure is of the requests of all rounds together
				r.N, r.Count = max(r.N, pooled.rounds), pooled.count
				r.RoundsBeyond = stat.RoundsBeyond(slices.Collect(maps.Values(pooled.byRound)), pooled.level)
			}
			if contender != e.Run.Baseline {
				r.VsBaseline = e.Compare(at, contender)
			}
			r.MDD, r.RoundsFor5 = detectable(e.noise(at, contender))
			r.Closest, r.Errors = closest[contender], budget{e, at, contender, r.Median}.parts()
			results = append(results, r)
		}
	}
	return results
}

// intervalOf returns the interval of a contender's figure; nil with too few
// rounds.
func intervalOf(e *Evidence, at FigureKey, contender string, confidence float64) *Interval {
	if pooled, ok := e.Percentiles[at][contender]; ok {
		return pooled.interval(confidence)
	}
	if at.Metric == result.MemoryOverhead && e.Unpaired() {
		return nil // the interval would not contain the baseline's noise
	}
	return MedianInterval(e.Figures[at][contender].Values(), confidence)
}

// MedianInterval returns the interval of the median; nil with too few values.
func MedianInterval(values []float64, confidence float64) *Interval {
	in, err := stat.MedianInterval(values, confidence)
	if err != nil {
		return nil
	}
	return &Interval{in.Low, in.High}
}

// sortKeys returns the keys of all figures: comparable sets by name, steps in the plan's
// order and others after them, metrics in the catalogue's order.
func (e *Evidence) sortKeys() []FigureKey {
	metrics := map[string]int{}
	for i, m := range result.Metrics() {
		metrics[m.Name] = i
	}
	return slices.SortedFunc(maps.Keys(e.Figures), func(a, b FigureKey) int {
		return cmp.Or(
			cmp.Compare(a.Kernel, b.Kernel), cmp.Compare(a.Underlay, b.Underlay),
			e.CompareSteps(a.Step, b.Step), cmp.Compare(metrics[a.Metric], metrics[b.Metric]))
	})
}

// CompareSteps compares two steps by their order in the plan; others come after those.
func (f *Facts) CompareSteps(a, b string) int {
	position := func(id string) int {
		i := slices.IndexFunc(f.Run.Plan.Steps, func(s result.Step) bool { return s.ID == id })
		return orLast(i)
	}
	return cmp.Or(cmp.Compare(position(a), position(b)), cmp.Compare(a, b))
}

// OrderContenders returns the contenders of a map in the plan's order; others come after those.
func (f *Facts) OrderContenders(contenders map[string]Series) []string {
	return slices.SortedFunc(maps.Keys(contenders), f.CompareContenders)
}

// CompareContenders compares two contenders by their order in the plan; others come after those.
func (f *Facts) CompareContenders(a, b string) int {
	position := func(id string) int {
		i := slices.IndexFunc(f.Run.Plan.Contenders, func(c result.Entry) bool { return c.ID == id })
		return orLast(i)
	}
	return cmp.Or(cmp.Compare(position(a), position(b)), cmp.Compare(a, b))
}

// orLast turns a negative index (not found) into the largest one.
func orLast(index int) int {
	if index < 0 {
		return math.MaxInt
	}
	return index
}
