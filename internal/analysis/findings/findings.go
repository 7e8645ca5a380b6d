// Package findings lists what the reader of a report must know: each finding
// has a code, a severity, a sentence and a next step. Its rules read the
// evidence of one run and change nothing. Next: the table in findings.go, whose
// words are in findings.yaml, then gather.go; the other files hold the rules by subject.
package findings

import (
	"cmp"
	_ "embed"
	"slices"
	"sync"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/strictyaml"
)

// Kind is a kind of finding, or a reason of invalid samples; docs/findings.md lists all of
// them.
type Kind struct {
	Code     string
	Severity string
	Title    string   // what happened, for a finding of several places
	Help     string   // what causes the finding
	Next     string   // what the reader should do
	Was      []string // codes of earlier versions, and reasons of samples, that it stands for
}

//go:embed findings.yaml
var wordFile string

// words is findings.yaml.
var words = sync.OnceValue(func() struct{ Findings, Reasons []Kind } {
	return strictyaml.Must[struct{ Findings, Reasons []Kind }]("findings.yaml", wordFile)
})

// rules are the functions that find each kind, by code. A rule sets contender, step, round
// and text, one finding for each place. Code, severity and next step are those of the kind,
// unless the rule sets them. A new kind needs a pure function, its line here, and its words
// in findings.yaml.
var rules = []struct {
	code string
	find func(e *evidence) []analysis.Finding
}{
	{"unreadable_file", corruptSamples},
	{"contender_failed", contenderFailed},
	{"step_collapsed", collapsedSteps},
	{"conntrack_full", fullConntrack},
	{"pods_slow", slowPods},
	{"result_missing", invalidSamples}, // sets the kind of the sample's reason
	{"client_late", spoiledClocks},
	{"client_late", generatorLate},
	{"uneven_exclusion", unevenExclusion},
	{"machine_busy", disturbedCycles},
	{"machine_busy", stealPresent},
	{"machine_busy", busyMachine},
	{"idle_contenders_busy", busyIdleContenders},
	{"result_missing", noValidSample},
	{"result_missing", missingFigure},
	{"policy_not_enforced", policyNotEnforced},
	{"plain_on_the_wire", plainOnTheWire},
	{"mtu_wrong", mtuTooLarge},
	{"mtu_wrong", mtuWastes},
	{"mtu_wrong", linkMTU},
	{"check_failed", checkFailed},
	{"incomplete_run", incompleteRun},
	{"incomplete_run", notMeasured},
	{"no_baseline", noBaseline},
	{"no_baseline", zeroBaseline},
	{"clock_step", clockStep},
	{"too_few_rounds", tooFewRounds},
	{"too_few_rounds", coarseResolution},
	{"emulated_kernel", emulatedKernel},
	{"other_version", mixedVersions},
	{"other_version", unknownMetric},
	{"above_ceiling", aboveCeiling},
	{"udp_loss", udpLoss},
	{"unsteady_rounds", unstableBaseline},
	{"unsteady_rounds", bimodalRounds},
	{"unsteady_rounds", scatteredRounds},
	{"unsteady_rounds", drift},
	{"lasting_noise", autocorrelatedRounds},
	{"recording_gap", emptySeries},
	{"recording_gap", recordingPause},
	{"one_stall_tail", oneStallTail},
	{"one_cpu_saturated", oneCPUSaturated},
	{analysis.TickAliased, tickAliased},
	{"retransmit_storm", retransmitStorm},
	{"better_than_baseline", betterThanBaseline},
	{"lab_form", labForm},
	{"rate_limited", maxRateLimited},
	{"rate_limited", lineRateLimited},
	{"rate_limited", cpuLimited},
	{"separate_groups", separateGroups},
	{"policy_effect", policyEffect},
	{"note", notes}, // sets the note's own code
}

// Kinds lists the kinds of finding, the gravest first.
func Kinds() []Kind { return slices.Clone(words().Findings) }

// Reasons lists the known reason codes of invalid samples. They have no title and no next
// step: KindOf has those.
func Reasons() []Kind { return slices.Clone(words().Reasons) }

// resultMissing is the code of a kind that is looked for.
const resultMissing = "result_missing"

// KindOf returns the kind that a code names today: the code of a kind, a code of an earlier
// version of cnibench, or the reason of an invalid sample. ok is false for any other code.
func KindOf(code string) (kind Kind, ok bool) {
	i := slices.IndexFunc(words().Findings, func(k Kind) bool { return k.Code == code || slices.Contains(k.Was, code) })
	if i < 0 {
		return Kind{}, false
	}
	return words().Findings[i], true
}

// setupFailed is the reason code of samples whose contender did not come up.
const setupFailed = "setup_failed"

// evidence is a run's evidence, with facts that several rules need.
type evidence struct {
	*analysis.Evidence
	traced []traced // by tracedSamples
}

// Each returns what all rules found, or only those of kinds with the codes: a finding for
// each place, in the order of the rules.
func Each(e *analysis.Evidence, codes ...string) []analysis.Finding {
	facts := &evidence{e, tracedSamples(e)}
	list := []analysis.Finding{}
	for _, r := range rules {
		for _, f := range r.find(facts) {
			if f.Code = cmp.Or(f.Code, r.code); len(codes) > 0 && !slices.Contains(codes, f.Code) {
				continue
			}
			kind, known := KindOf(f.Code)
			if !known {
				kind, _ = KindOf(r.code) // a note has its own code
			}
			f.Severity = cmp.Or(f.Severity, kind.Severity)
			f.Title, f.Count = kind.Title, 1
			f.Next = nextStep(e, cmp.Or(f.Next, kind.Next), f)
			list = append(list, f)
		}
	}
	return list
}

// Of returns the findings of a run, one for each kind and the ones of most weight first.
func Of(e *analysis.Evidence) []analysis.Finding { return gather(e, Each(e)) }
