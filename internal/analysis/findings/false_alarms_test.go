package findings_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/analysistest"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// alarmRuns is how many runs without any difference are analysed: in CI thirty times the
// ten repeats of an A/A comparison that the project promises to survive.
var alarmRuns = needs.Trials(300, 60)

// A run whose contenders are all the same network must not be told apart, nor
// found drifting or bimodal, more often than docs/dev/simulations.md says.
func TestFalseAlarms(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	contenders := []string{"host", "a", "b", "c", "d"}
	const rounds, rules = 8, 0.05
	alarms := map[string]int{}
	results, better := 0, 0
	for range alarmRuns {
		rec := &result.Record{Run: result.Run{Baseline: "host", Plan: result.Plan{Rounds: rounds}}}
		var traces []analysis.Trace
		for round := 1; round <= rounds; round++ {
			shared := math.Exp(0.05 * r.NormFloat64()) // what a round does to all
			for _, c := range contenders {
				v := shared * math.Exp(0.03*r.NormFloat64())
				rec.Samples = append(rec.Samples, analysistest.ValidSample(c, round, map[string]float64{"goodput": 20e9 * v}))
				rates := make([]float64, 10)
				for i := range rates {
					rates[i] = 20e9 * v * math.Exp(0.10*r.NormFloat64())
				}
				traces = append(traces, analysistest.Seconds(c, round, rates...))
			}
		}
		rep := report.Analyse(rec, analysis.Options{Traces: traces})
		once := map[string]bool{}
		for _, res := range rep.Results {
			if res.Tier > 1 {
				once["tier"] = true
			}
			if res.Contender != "host" {
				results++
			}
		}
		for _, f := range each(rec, analysis.Options{Traces: traces}) {
			once[f.Code] = true
			if f.Code == "better_than_baseline" {
				better++
			}
		}
		for code := range once {
			alarms[code]++
		}
	}
	few := func(name string, count, of int, rate float64) {
		if share, margin := float64(count)/float64(of), 3*math.Sqrt(rate*(1-rate)/float64(of)); share > rate+margin {
			t.Errorf("%s: %d of %d, stated are %.3f", name, count, of, rate)
		}
	}
	few("a false tier", alarms["tier"], alarmRuns, rules)
	few("noise that lasts", alarms["lasting_noise"], alarmRuns, rules)
	few("drift or bimodal rounds", alarms["unsteady_rounds"], alarmRuns, 2*rules)
	few("better than the baseline, by contender", better, results, rules/2)
	if testing.Verbose() {
		fmt.Println(alarms, better, results)
	}
}
