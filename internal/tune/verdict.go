package tune

import (
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
)

// Verdict is what a setting did to a figure.
type Verdict string

// The verdicts.
const (
	Helped  Verdict = "helped"
	Hurt    Verdict = "hurt"
	Unclear Verdict = "cannot be told apart" // the interval of the ratio has 1 in it
	TooFew  Verdict = "too few rounds"       // no interval can be had
	Nothing Verdict = "nothing to set"       // the setting changed no value here
	NoData  Verdict = "no figure to compare"
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
	Verdict Verdict            `json:"verdict"`
	Reason  string             `json:"reason,omitempty"`
}

// judged are the metrics that settings are judged by, where a step has them.
var judged = []string{"goodput", "rate", "loss", "latency_p50", "latency_p99", "cpu_per_gbit"}

// Judge compares every variant of the report's baseline with it. notes are
// those of the samples, by contender, of settings that changed nothing.
func Judge(r *analysis.Report, variants []Variant, nothing map[string]string) []Effect {
	medians := map[string]float64{} // of the baseline, by step and metric
	for _, res := range r.Results {
		if res.Contender == r.Baseline {
			medians[res.Step+" "+res.Metric] = res.Median
		}
	}
	var effects []Effect
	for _, v := range variants {
		found := map[string]bool{} // steps with a figure
		for _, res := range r.Results {
			if res.Contender != v.ID || !slices.Contains(judged, res.Metric) || !res.Ranked || res.VsBaseline == nil {
				continue
			}
			found[res.Step] = true
			e := Effect{
				Variant: v.ID, Step: res.Step, Metric: res.Metric, Unit: res.Unit, Before: medians[res.Step+" "+res.Metric], After: res.Median,
				Ratio: res.VsBaseline.Ratio, CI: res.VsBaseline.CI,
			}
			e.Verdict = verdict(e.CI, res.Better)
			if reason := nothing[v.ID]; reason != "" {
				e.Verdict, e.Reason = Nothing, reason
			}
			effects = append(effects, e)
		}
		for _, step := range r.Steps {
			if !found[step.ID] {
				effects = append(effects, Effect{Variant: v.ID, Step: step.ID, Verdict: NoData, Reason: "see the findings of the report"})
			}
		}
	}
	return effects
}

// verdict says what a ratio's interval shows of a figure of which more is
// better or worse.
func verdict(ci *analysis.Interval, better string) Verdict {
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

// NothingSetBy are the variants of which no setting changed anything, with the
// reason, from the notes of their samples.
func NothingSetBy(samples []result.Sample, variants []Variant) map[string]string {
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
