package tune

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// Outcome is what a setting did to a figure.
type Outcome string

// The outcomes.
const (
	Helped  Outcome = "helped"
	Hurt    Outcome = "hurt"
	Unclear Outcome = "cannot be told apart" // the ratio's interval has 1 in it, or chance would do
	TooFew  Outcome = "too few rounds"       // no interval can be had, or none that holds for so many comparisons
	Nothing Outcome = "nothing to set"       // the setting changed no value here
	NoData  Outcome = "no figure to compare"
)

// Effect is one figure of one variant beside the untuned contender.
type Effect struct {
	Variant string             `json:"variant"` // the settings
	Step    string             `json:"step"`
	Metric  string             `json:"metric"`
	Unit    string             `json:"unit"`
	Before  float64            `json:"before"` // median of the rounds without
	After   float64            `json:"after"`  // and with
	Ratio   float64            `json:"ratio"`  // median of the ratios within rounds
	CI      *analysis.Interval `json:"ci"`
	P       *float64           `json:"p"`      // of no difference, paired within rounds
	PHolm   *float64           `json:"p_holm"` // the same, corrected for all comparisons of the run
	Verdict Outcome            `json:"verdict"`
	Reason  string             `json:"reason,omitempty"`

	pairs int // rounds behind the ratio; 0: not known
}

// Judgement is what a run says of settings.
type Judgement struct {
	Effects []Effect `json:"effects"`
	// Comparisons are those that Holm's correction is for: of figures that have
	// a p, of settings that changed something.
	Comparisons int `json:"comparisons"`
	// LeastRounds is the number of rounds below which none of so many
	// comparisons can show a difference.
	LeastRounds int `json:"least_rounds"`
}

// alpha is the chance that any of a run's helped and hurt is so by chance.
const alpha = 0.05

// Judge compares every variant of the report's baseline with it. samples are
// the run's, whose notes and reasons say why there is nothing to compare.
func Judge(r *analysis.Report, samples []result.Sample, variants []Variant) Judgement {
	medians := map[string]float64{} // of the baseline, by step and metric
	for _, res := range r.Results {
		if res.Contender == r.Baseline {
			medians[res.Step+" "+res.Metric] = res.Median
		}
	}
	tuned := result.WithRole(result.Tuned)
	nothing := nothingSetBy(samples, variants)
	var j Judgement
	for _, v := range variants {
		found := map[string]bool{} // steps with a figure
		for _, res := range r.Results {
			if res.Contender != v.ID || !slices.Contains(tuned, res.Metric) || !res.Ranked || res.VsBaseline == nil {
				continue
			}
			found[res.Step] = true
			e := Effect{
				Variant: v.ID, Step: res.Step, Metric: res.Metric, Unit: res.Unit, Before: medians[res.Step+" "+res.Metric], After: res.Median,
				Ratio: res.VsBaseline.Ratio, CI: res.VsBaseline.CI, P: res.VsBaseline.P,
				pairs: res.VsBaseline.Pairs,
			}
			e.Verdict = outcome(e.CI, res.Better)
			if reason := nothing[v.ID]; reason != "" {
				e.Verdict, e.Reason = Nothing, reason
			}
			j.Effects = append(j.Effects, e)
		}
		for _, step := range r.Steps {
			if !found[step.ID] {
				j.Effects = append(j.Effects, Effect{Variant: v.ID, Step: step.ID, Verdict: NoData, Reason: whyNot(samples, v.ID, step.ID)})
			}
		}
	}
	j.correct()
	return j
}

// correct takes verdicts back that so many comparisons give by chance.
func (j *Judgement) correct() {
	var compared []*Effect
	var p []float64
	for i := range j.Effects {
		if e := &j.Effects[i]; e.P != nil && e.Verdict != Nothing {
			compared, p = append(compared, e), append(p, *e.P)
		}
	}
	j.Comparisons, j.LeastRounds = len(p), LeastRounds(len(p))
	for i, adjusted := range stat.Holm(p) {
		e := compared[i]
		e.PHolm = &adjusted
		if e.Verdict != Helped && e.Verdict != Hurt || adjusted <= alpha {
			continue
		}
		e.Verdict, e.Reason = Unclear, "of so many comparisons one looks like this by chance"
		if e.pairs > 0 && e.pairs < j.LeastRounds {
			e.Verdict, e.Reason = TooFew, fmt.Sprintf("%d rounds have both figures, and so many comparisons take %d", e.pairs, j.LeastRounds)
		}
	}
}

// FiguresOfStep is how many figures of a step are compared, mostly: two of traffic and its
// cost, or two of latency.
const FiguresOfStep = 2

// LeastRounds is the number of rounds that one of so many comparisons needs to
// hold, when all its rounds agree; 0 without comparisons.
func LeastRounds(comparisons int) int {
	if comparisons == 0 {
		return 0
	}
	rounds := 1
	for stat.LeastSignedRank(rounds)*float64(comparisons) > alpha {
		rounds++
	}
	return rounds
}

// whyNot is why the contender has no figure at the step.
func whyNot(samples []result.Sample, contender, step string) string {
	for _, s := range samples {
		if s.Contender == contender && s.Step == step && len(s.Reasons) > 0 {
			return s.Reasons[0].Text
		}
		if s.Contender == contender && s.Step == step && len(s.Spoiled) > 0 {
			return s.Spoiled[0].Reasons[0].Text
		}
	}
	return "see the findings of the report"
}

// outcome says what a ratio's interval shows of a figure of which more is
// better or worse.
func outcome(ci *analysis.Interval, better string) Outcome {
	switch {
	case ci == nil:
		return TooFew
	case ci[0] <= 1 && 1 <= ci[1]:
		return Unclear
	case (ci[0] > 1) == (better == "higher"):
		return Helped
	}
	return Hurt
}

// nothingSetBy are the variants of which no setting changed anything, with the
// reason, from the notes of their samples.
func nothingSetBy(samples []result.Sample, variants []Variant) map[string]string {
	settings := map[string]int{}
	for _, v := range variants {
		settings[v.ID] = len(v.Names())
	}
	nothing := map[string]string{}
	for _, s := range samples {
		count, reason := 0, ""
		for _, note := range s.Notes {
			if note.Code == NothingSet {
				count, reason = count+1, note.Text
			}
		}
		if count > 0 && count == settings[s.Contender] {
			nothing[s.Contender] = reason
		}
	}
	return nothing
}
