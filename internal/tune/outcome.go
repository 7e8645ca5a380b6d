package tune

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// Outcome says what a setting did to a figure.
type Outcome string

// The outcomes.
const (
	Helped  Outcome = "helped"
	Hurt    Outcome = "hurt"
	Unclear Outcome = "cannot be told apart" // the ratio's interval contains 1, or the difference may be chance
	TooFew  Outcome = "too few rounds"       // too few for an interval, or for so many comparisons
	Nothing Outcome = "nothing to set"       // the setting changed no value here
	NoData  Outcome = "no figure to compare"
)

// Difference compares one figure of a variant with the untuned contender.
type Difference struct {
	Variant string             `json:"variant"` // its id, which names the settings
	Step    string             `json:"step"`
	Metric  string             `json:"metric"`
	Unit    string             `json:"unit"`
	Before  float64            `json:"before"` // median of the rounds without the settings
	After   float64            `json:"after"`  // median of the rounds with them
	Ratio   float64            `json:"ratio"`  // median of the ratios within rounds
	CI      *analysis.Interval `json:"ci"`
	P       *float64           `json:"p"`      // p value of no difference, paired within rounds
	PHolm   *float64           `json:"p_holm"` // p after Holm's correction for all comparisons of the run
	Verdict Outcome            `json:"verdict"`
	Reason  string             `json:"reason,omitempty"`

	pairs int // rounds behind the ratio; 0: unknown
}

// Judgement is the result of a run that compares settings.
type Judgement struct {
	Differences []Difference `json:"effects"`
	// Comparisons is the number of comparisons that Holm's correction is for: those with a
	// p value, of settings that changed something.
	Comparisons int `json:"comparisons"`
	// MinRounds is the number of rounds that so many comparisons need: with fewer, none of
	// them can show a difference.
	MinRounds int `json:"least_rounds"`
}

// alpha bounds the chance that any "helped" or "hurt" of a run is wrong.
const alpha = 0.05

// Judge compares every variant with the report's baseline. The notes and reasons of the
// run's samples say why there is nothing to compare.
func Judge(r *analysis.Report, samples []result.Sample, variants []Variant) Judgement {
	medians := map[string]float64{} // of the baseline, by step and metric
	for _, res := range r.Results {
		if res.Contender == r.Baseline {
			medians[res.Step+" "+res.Metric] = res.Median
		}
	}
	tuned := result.WithRole(result.Tuned)
	nothing := findIneffective(samples, variants)
	var j Judgement
	for _, v := range variants {
		found := map[string]bool{} // steps with a figure
		for _, res := range r.Results {
			if res.Contender != v.ID || !slices.Contains(tuned, res.Metric) || !res.Ranked || res.VsBaseline == nil {
				continue
			}
			found[res.Step] = true
			e := Difference{
				Variant: v.ID, Step: res.Step, Metric: res.Metric, Unit: res.Unit, Before: medians[res.Step+" "+res.Metric], After: res.Median,
				Ratio: res.VsBaseline.Ratio, CI: res.VsBaseline.CI, P: res.VsBaseline.P,
				pairs: res.VsBaseline.Pairs,
			}
			e.Verdict = outcome(e.CI, res.Better)
			if reason := nothing[v.ID]; reason != "" {
				e.Verdict, e.Reason = Nothing, reason
			}
			j.Differences = append(j.Differences, e)
		}
		for _, step := range r.Steps {
			if !found[step.ID] {
				j.Differences = append(j.Differences, Difference{Variant: v.ID, Step: step.ID, Verdict: NoData, Reason: whyNot(samples, v.ID, step.ID)})
			}
		}
	}
	j.correct()
	return j
}

// correct applies Holm's correction and removes verdicts that are no longer significant.
func (j *Judgement) correct() {
	var compared []*Difference
	var p []float64
	for i := range j.Differences {
		if e := &j.Differences[i]; e.P != nil && e.Verdict != Nothing {
			compared, p = append(compared, e), append(p, *e.P)
		}
	}
	j.Comparisons, j.MinRounds = len(p), MinRounds(len(p))
	for i, adjusted := range stat.Holm(p) {
		e := compared[i]
		e.PHolm = &adjusted
		if e.Verdict != Helped && e.Verdict != Hurt || adjusted <= alpha {
			continue
		}
		e.Verdict, e.Reason = Unclear, "among so many comparisons one looks like this by chance"
		if e.pairs > 0 && e.pairs < j.MinRounds {
			e.Verdict, e.Reason = TooFew, fmt.Sprintf("%d rounds have both figures; so many comparisons need %d", e.pairs, j.MinRounds)
		}
	}
}

// FiguresOfStep is how many figures are compared for most steps: traffic and its cost, or
// two of latency.
const FiguresOfStep = 2

// MinRounds returns the number of rounds with which one of so many comparisons can be
// significant if all its rounds agree; 0 without comparisons.
func MinRounds(comparisons int) int {
	if comparisons == 0 {
		return 0
	}
	rounds := 1
	for stat.MinSignedRank(rounds)*float64(comparisons) > alpha {
		rounds++
	}
	return rounds
}

// whyNot returns why the contender has no figure for the step.
func whyNot(samples []result.Sample, contender, step string) string {
	for _, s := range samples {
		if s.Contender == contender && s.Step == step && len(s.Reasons) > 0 {
			return s.Reasons[0].Text
		}
		if s.Contender == contender && s.Step == step && len(s.DroppedClocks) > 0 {
			return s.DroppedClocks[0].Reasons[0].Text
		}
	}
	return "see the findings of the report"
}

// outcome returns what a ratio's interval shows. better is "higher" or "lower".
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

// findIneffective returns the variants whose settings all changed nothing, with the reason
// from the notes of their samples.
func findIneffective(samples []result.Sample, variants []Variant) map[string]string {
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
