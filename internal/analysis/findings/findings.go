// Package findings lists what the reader of a report must know: each finding
// has a code, a severity, a sentence and a next step. Its rules read the
// evidence of one run and change nothing. Next: the table in findings.go, whose
// words are in findings.yaml; the other files hold the rules by subject.
package findings

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/strictyaml"
)

// Kind is a kind of finding, or a reason code; docs/findings.md lists all of them.
type Kind struct {
	Code     string
	Severity string
	Help     string // what causes the finding
	Next     string // what the reader should do
}

//go:embed findings.yaml
var wordFile string

// words is findings.yaml.
var words = sync.OnceValue(func() struct{ Findings, Reasons []Kind } {
	return strictyaml.Must[struct{ Findings, Reasons []Kind }]("findings.yaml", wordFile)
})

// rules are the functions that find each kind, by code. A rule sets contender, step, round
// and text. Code, severity and next step are those of the kind, unless the rule sets them.
// A new kind needs a pure function, its line here, and its words in findings.yaml.
var rules = map[string]func(e *evidence) []analysis.Finding{
	"corrupt_samples":       corruptSamples,
	"contender_failed":      contenderFailed,
	"invalid_sample":        invalidSamples,
	"spoiled_clock":         spoiledClocks,
	"uneven_exclusion":      unevenExclusion,
	"disturbed_cycles":      disturbedCycles,
	"idle_contenders_busy":  busyIdleContenders,
	"no_valid_sample":       noValidSample,
	"missing_figure":        missingFigure,
	"policy_not_enforced":   policyNotEnforced,
	"plain_on_the_wire":     plainOnTheWire,
	"mtu_too_large":         mtuTooLarge,
	"check_failed":          checkFailed,
	"incomplete_run":        incompleteRun,
	"not_measured":          notMeasured,
	"no_baseline":           noBaseline,
	"zero_baseline":         zeroBaseline,
	"clock_step":            clockStep,
	"too_few_rounds":        tooFewRounds,
	"emulated_kernel":       emulatedKernel,
	"mixed_versions":        mixedVersions,
	"above_ceiling":         aboveCeiling,
	"udp_loss":              udpLoss,
	"drift":                 drift,
	"autocorrelated_rounds": autocorrelatedRounds,
	"unstable_baseline":     unstableBaseline,
	"bimodal_rounds":        bimodalRounds,
	"scattered_rounds":      scatteredRounds,
	"warmup_not_over":       warmupNotOver,
	"steal_present":         stealPresent,
	"busy_machine":          busyMachine,
	"one_stall_tail":        oneStallTail,
	"load_generator_late":   generatorLate,
	"one_cpu_saturated":     oneCPUSaturated,
	"empty_series":          emptySeries,
	"recording_pause":       recordingPause,
	analysis.TickAliased:    tickAliased,
	"retransmit_storm":      retransmitStorm,
	"better_than_baseline":  betterThanBaseline,
	"mtu_wastes_underlay":   mtuWastes,
	"lab_form_apart":        labFormApart,
	"link_mtu_misleads":     linkMTU,
	"line_rate_limited":     lineRateLimited,
	"max_rate_limited":      maxRateLimited,
	"level_step":            levelStep,
	"bursty_series":         burstySeries,
	"coarse_resolution":     coarseResolution,
	"separate_groups":       separateGroups,
	"policy_effect":         policyEffect,
	"unknown_metric":        unknownMetric,
	"note":                  notes,
}

// Kinds lists the kinds of finding in the order of reports.
func Kinds() []Kind { return slices.Clone(words().Findings) }

// Reasons lists the known reason codes of invalid samples.
func Reasons() []Kind { return slices.Clone(words().Reasons) }

// partUnreadable is the code of the only kind without a rule.
const partUnreadable = "part_unreadable"

// PartUnreadable returns the finding that a part of the run can't be read.
func PartUnreadable(text string) analysis.Finding {
	k := kindOf(words().Findings, partUnreadable)
	return analysis.Finding{Severity: k.Severity, Code: k.Code, Text: text, Next: k.Next}
}

// setupFailed is the reason code of samples whose contender did not come up.
const setupFailed = "setup_failed"

// nextOf returns the next step for a reason code.
func nextOf(code string) string {
	return cmp.Or(kindOf(words().Reasons, code).Next, "Read the samples' files under raw/.")
}

// kindOf returns the kind of that code; the zero Kind if the list has none.
func kindOf(list []Kind, code string) Kind {
	for _, k := range list {
		if k.Code == code {
			return k
		}
	}
	return Kind{}
}

// asksForRun says whether the next step is to measure again.
func asksForRun(next string) bool {
	return strings.HasPrefix(next, "Run ") || strings.Contains(next, "run --resume")
}

// evidence is a run's evidence, with facts that several rules need.
type evidence struct {
	*analysis.Evidence
	traced []traced      // by tracedSamples
	levels []levelChange // by changesOfLevel
}

// Of returns the findings of all rules, or only of those with the codes, in the order of
// findings.yaml.
func Of(e *analysis.Evidence, codes ...string) []analysis.Finding {
	all := tracedSamples(e)
	facts := &evidence{e, all, changesOfLevel(e, all)}
	list := []analysis.Finding{}
	for _, k := range words().Findings {
		if k.Code == partUnreadable || len(codes) > 0 && !slices.Contains(codes, k.Code) {
			continue
		}
		for _, f := range rules[k.Code](facts) {
			f.Code = cmp.Or(f.Code, k.Code)
			f.Severity = cmp.Or(f.Severity, k.Severity)
			f.Next = cmp.Or(f.Next, k.Next)
			if e.Run.Arena == imported && asksForRun(f.Next) {
				f.Next = importedNext
			}
			list = append(list, f)
		}
	}
	return list
}

// imported is the arena of runs that others measured and published.
const (
	imported     = "imported"
	importedNext = "The figures are as they were published and can't be measured again here; read them with this in mind."
)
