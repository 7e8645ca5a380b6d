package run

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/bench"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/suite"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
)

// maxRounds limits the rounds of a run that ends when its figures are exact enough.
const maxRounds = 60

// setEnd puts into the plan when the run ends: after the rounds that were asked for,
// or when its figures are exact enough or its time is over.
func (f *Request) setEnd(p *result.Plan, s *suite.Suite) {
	p.Until, p.MaxTime = s.Until, unit.Seconds(s.MaxTime.Seconds())
	if f.Given["rounds"] {
		p.Until, p.MaxTime = 0, 0
	}
	if f.Given["until"] {
		p.Until, _ = unit.ParsePercent(f.Until) // Check has seen it
	}
	if f.Given["max-time"] {
		p.MaxTime = unit.Seconds(f.MaxTime.Seconds())
	}
	switch {
	case f.Given["rounds"]:
		p.Rounds = f.Rounds
	case p.Until > 0 || p.MaxTime > 0:
		p.Rounds = maxRounds
	}
}

// stopping decides after each round whether the run ends.
type stopping struct {
	End
	begun   time.Time
	interim func() (*analysis.Report, error)
	say     func(string)

	last    time.Time     // end of the round before
	longest time.Duration // of a round, without its searches

	// Steps that search for a rate take at most a share of the limit, if there are others.
	others   bool
	search   time.Duration // the longest time of a round's searches
	searched time.Duration // of all rounds
	left     bool          // said that searches are left out

	finished   int  // rounds
	outOfReach bool // said that until is out of reach
}

// rounds returns how many rounds the run will have, as far as is known: the plan's, or until
// a round has ended the number that distinguishes the contenders, or the number for which
// the time suffices.
func (s *stopping) rounds(p *result.Plan) int {
	if p.Until == 0 && p.MaxTime == 0 {
		return p.Rounds
	}
	n := max(s.Least, analysis.RoundsForContenders(len(p.Contenders)))
	if one := s.longest + s.search; s.Max > 0 && s.finished > 0 && one > 0 {
		n = s.finished + int(max(0, s.Max-s.last.Sub(s.begun))/one)
	}
	return min(max(n, s.finished+1), p.Rounds)
}

// expect returns the progress for the rounds that the run will have: the plan of a run that
// ends by itself has many more. It counts rounds as "round 3 of about 11".
func (s *stopping) expect(at bench.Progress, p *result.Plan) bench.Progress {
	if (p.Until == 0 && p.MaxTime == 0) || p.Rounds == 0 {
		return at
	}
	n := s.rounds(p)
	perRound := float64(at.Total) / float64(p.Rounds)
	at.Total = max(at.Done, int(math.Ceil(perRound*float64(n))))
	if left := s.Max - time.Since(s.begun); s.Max > 0 && left > 0 && at.Remaining > left {
		at.Remaining = left
	}
	round := p.InRound(s.finished + 1)
	if rest, ok := strings.CutPrefix(at.Text, round+":"); ok {
		at.Text = fmt.Sprintf("%s of about %d:%s", round, n, rest)
	}
	return at
}

// searchPart is the part of the limited time that goes into searches for rates: each takes
// as long as dozens of other steps, whose ratios need rounds.
const searchPart = 1.0 / 3

// End is when a run ends before its last round.
type End struct {
	Until float64       // when all intervals of ratios are this narrow (a share); 0: never
	Max   time.Duration // 0 is no limit
	Least int           // rounds to take in any case, because fewer give no interval
	// MaxAsked says that the user gave Max: then one round is enough, and must fit.
	MaxAsked bool
}

// end returns when the run of the plan ends. A resumed run may be given another end than its
// plan has.
func (f *Request) end(p *result.Plan) End {
	e := End{Until: p.Until, Max: p.MaxTime.Duration(), Least: SelfTestRounds, MaxAsked: f.Given["max-time"]}
	if f.Given["until"] {
		e.Until, _ = unit.ParsePercent(f.Until) // Check has seen it
	}
	if e.MaxAsked {
		e.Max, e.Least = f.MaxTime, 1
	}
	return e
}

// RaiseLeast asks for n rounds at least, without which the run would show nothing. What the
// user gave as the run's time counts more.
func (e *End) RaiseLeast(n int) {
	if !e.MaxAsked {
		e.Least = max(e.Least, n)
	}
}

// newStopping returns the stopping rule of a run.
func newStopping(e End, p *result.Plan, interim func() (*analysis.Report, error), say func(string)) *stopping {
	s := &stopping{End: e, begun: time.Now(), interim: interim, say: say}
	s.others = slices.ContainsFunc(p.Steps, func(step result.Step) bool {
		w, err := workload.Lookup(step.Workload)
		return err == nil && w.Info().Search == 0
	})
	s.last = s.begun
	return s
}

// tooShort refuses a --max-time in which not even the load of one round fits.
func (e *End) tooShort(p *result.Plan) error {
	load := (p.Duration.Duration() + p.Warmup.Duration()) * time.Duration(len(p.Steps)*len(p.Contenders))
	if !e.MaxAsked || e.Max == 0 || e.Max >= load {
		return nil
	}
	return exit.Usage("--max-time %v: one round of %d contenders takes %v of load alone; give more time, or fewer --contenders or --steps", e.Max, len(p.Contenders), load.Round(time.Second))
}

// searches reports whether the round that begins takes the steps that search for a rate.
func (s *stopping) searches() bool {
	return s.Max == 0 || !s.others || s.searched+s.search <= time.Duration(searchPart*float64(s.Max))
}

// enough reports whether the run ends after that round, of which searches took a part.
func (s *stopping) enough(round int, searched time.Duration) bool {
	now := time.Now()
	s.finished = round
	s.longest, s.last = max(s.longest, now.Sub(s.last)-searched), now
	s.search, s.searched = max(s.search, searched), s.searched+searched
	next := s.longest
	if s.searches() {
		next += s.search
	} else if !s.left {
		s.left = true
		s.say(fmt.Sprintf("the highest rates were searched for %v, a third of the time or more: left out after round %d", s.searched.Round(time.Second), round))
	}
	if s.Until > 0 {
		r, err := s.interim()
		if err != nil {
			return false // the report at the end has the error
		}
		widest, known := widestRatio(r)
		switch {
		case known && widest.half <= s.Until && round < s.Least:
		case known && widest.half <= s.Until:
			s.say(fmt.Sprintf("all ratios are known to ±%s: enough after round %d", unit.FormatPercent(s.Until), round))
			return true
		case known:
			// The width of an interval falls with the square root of the rounds.
			need := int(math.Ceil(float64(round) * (math.Pow(widest.half/s.Until, 2) - 1)))
			forecast := fmt.Sprintf("would take some %d more rounds, %s", need, (time.Duration(need) * next).Round(time.Second))
			if need > maxRounds {
				if s.outOfReach {
					break
				}
				s.outOfReach = true
				forecast = "is out of reach on this machine"
				if fit := round + int(max(0, s.Max-now.Sub(s.begun))/max(1, next)); s.Max > 0 && fit > round {
					forecast += fmt.Sprintf("; the %d rounds that fit into the time would give about ±%s", fit, unit.FormatPercent(widest.half*math.Sqrt(float64(round)/float64(fit))))
				}
			}
			s.say(fmt.Sprintf("round %d: the widest interval of a ratio is ±%s (%s); ±%s %s",
				round, unit.FormatPercent(widest.half), widest.what, unit.FormatPercent(s.Until), forecast))
		}
	}
	if s.Max > 0 && round >= s.Least && now.Sub(s.begun)+next > s.Max {
		s.say(fmt.Sprintf("the time is over after round %d; more with --resume", round))
		return true
	}
	return false
}

// ratioWidth is half the width of a ratio's interval as a share of the ratio.
type ratioWidth struct {
	half float64
	what string // contender, metric and step
}

// widestRatio returns the widest interval among the ratios to the baseline of each step's
// main metrics of traffic and of typical latency. known is false while one of these
// ratios has no interval.
func widestRatio(r *analysis.Report) (widest ratioWidth, known bool) {
	known = true
	some := false
	has := func(step, metric string) bool {
		return slices.ContainsFunc(r.Results, func(x analysis.Result) bool { return x.Step == step && x.Metric == metric && x.VsBaseline != nil })
	}
	isMain := func(step, metric string) bool {
		m, _ := result.LookupMetric(metric)
		if !m.Has(result.Headline) || m.Aspect != result.Traffic && m.Aspect != result.Typical {
			return false
		}
		return metric == result.MainMetricOf(m.Aspect, func(name string) bool { return has(step, name) })
	}
	for _, x := range r.Results {
		if x.VsBaseline == nil || !isMain(x.Step, x.Metric) {
			continue
		}
		some = true
		if x.VsBaseline.CI == nil {
			known = false
			continue
		}
		if half := x.VsBaseline.HalfWidth(); half > widest.half {
			widest = ratioWidth{half, fmt.Sprintf("%s of %s at %s", x.Metric, x.Contender, x.Step)}
		}
	}
	return widest, known && some
}
