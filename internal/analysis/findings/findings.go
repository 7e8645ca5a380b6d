// Package findings lists what the reader of a report must know: each finding
// has a code, a severity, a sentence and a next step. Its rules read the
// evidence of one run and change nothing. Next: the table in findings.go; the
// other files hold the rules by subject.
package findings

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
)

// Kind is a code with what it means: docs/findings.md lists them all.
type Kind struct {
	Code     string
	Severity string
	Help     string // what makes it so
	Next     string // what the reader does then
}

// rule finds one kind of finding. It fills in where and what; code, severity
// and next step are the kind's, except where a finding says its own.
type rule struct {
	Kind
	find func(e *evidence) []analysis.Finding
}

// rules are in the order in which a report lists findings: what is missing,
// what was left out, what the figures can't say, what to know when reading
// them. One more is one pure function and its line here.
var rules = []rule{
	{Kind{"corrupt_samples", analysis.Error,
		"A file of the run directory can't be read, in part or at all, or contradicts itself. Faults of the files that an imported run was read from carry the code import_fault.",
		"Look at the named file; everything else counts."},
		corruptSamples},
	{Kind{"contender_failed", analysis.Error,
		"A contender did not come up in some rounds, so it has no samples there.",
		"Read the setup step's files under raw/; `cnibench probe` says what the contender needs."},
		contenderFailed},
	{Kind{"invalid_sample", analysis.Error,
		"Samples were found impossible or spoiled when they were sealed. The finding carries the reason's own code.",
		"Read the samples' files under raw/."},
		invalidSamples},
	{Kind{"spoiled_clock", analysis.Warn,
		"The load generator was late or busy all the time, so that the clocks that hold its own delay (latency, service_time, connect_time) are left out of samples whose other figures hold. The finding carries the reason's own code.",
		"Read network_time, which leaves the load generator's delay out; for the latency that an application feels stop other work on the machine or give the client CPUs of its own (--cpus)."},
		spoiledClocks},
	{Kind{"uneven_exclusion", analysis.Warn,
		"At a step the samples of some contenders, or their figures of a clock, were left out more often than those of others, which chance would hardly do (exact test, Holm over the steps and clocks of the run that have samples enough).",
		"Don't compare the contenders at this step: what disturbs one only may be its own doing. Mend what made the samples invalid and run again."},
		unevenExclusion},
	{Kind{"disturbed_cycles", analysis.Info,
		"The hypervisor or processes that are not the run's took more than a tenth of the CPUs during some cycles, or memory was short in a tenth of their time, or tasks waited for a CPU in the pause before, or a CPU was away for 25 ms. These were left out for all contenders and repeated, or, where too few others were left, used all the same.",
		"Stop other work on the machine, or give the run more time (--duration)."},
		disturbedCycles},
	{Kind{"idle_contenders_busy", analysis.Warn,
		"While others had their slices, the processes of all contenders that stood idle used more than a tenth of a CPU together (cpu_standing, medians of the rounds): their daemons, waiting loads and recorders took it from the contender that was measured.",
		"Run with fewer contenders, or without the one that the finding names; `--slice 0` measures one contender after the other."},
		busyIdleContenders},
	{Kind{"no_valid_sample", analysis.Error,
		"A contender has no valid sample at a step, so it has no figures there.",
		"Mend what made its samples invalid and run again."},
		noValidSample},
	{Kind{"missing_figure", analysis.Error,
		"A contender has valid samples at a step but lacks a figure there that more than half of the contenders have.",
		"Read the tool's output in the samples' folders under raw/: a result may be absent or null."},
		missingFigure},
	{Kind{"policy_not_enforced", analysis.Error,
		"A check of NetworkPolicy failed: a forbidden connection got through, or an allowed one did not. Severity info for a contender whose catalogue entry promises none, warn for one that the catalogue lacks.",
		"Don't rely on NetworkPolicy with this contender; where its product promises it, look at the policy engine's log and run `cnibench check policy`."},
		policyNotEnforced},
	{Kind{"plain_on_the_wire", analysis.Error,
		"A check of encryption failed: the pods' bytes were readable between the nodes of a network that promises to encrypt them.",
		"Don't send secrets over it; see whether encryption is switched on on every node, and run `cnibench check encryption`."},
		plainOnTheWire},
	{Kind{"mtu_too_large", analysis.Error,
		"The pods' MTU is larger than what crosses to another node whole: packets are split, or vanish. Severity warn where nobody measured that size and it is the underlay's MTU less the catalogue's encapsulation.",
		"Lower the contender's MTU to the size that passes; `cnibench check mtu` finds it."},
		mtuTooLarge},
	{Kind{"check_failed", analysis.Error,
		"Another check of a contender failed.",
		"Run `cnibench check` alone for this contender; it says more."},
		checkFailed},
	{Kind{"incomplete_run", analysis.Warn,
		"Planned samples were never taken, because the run was interrupted; of a run of others, rounds are missing.",
		"Go on with `cnibench run --resume DIR`."},
		incompleteRun},
	{Kind{"not_measured", analysis.Info,
		"In a run of others, a contender has no sample of steps that other contenders have. Where the baseline lacks a path, as hosts without Services do, its figures of the same load from pod to pod take their place.",
		"Compare ratios to a stand-in with care: the baseline had less to do there."},
		notMeasured},
	{Kind{"no_baseline", analysis.Warn,
		"There is no valid sample of the baseline beside some contenders, so that there is nothing to give their ratios to.",
		"If its samples were dropped, the other findings say why; else run with the baseline among the contenders, on the same underlay and kernel."},
		noBaseline},
	{Kind{"zero_baseline", analysis.Info,
		"A figure of the baseline is zero in some round, so that no ratio to it can be formed; leaving the round out would bend the rest.",
		"Compare the figures themselves."},
		zeroBaseline},
	{Kind{"clock_step", analysis.Warn,
		"A sample began before the one before it had ended: the machine's clock was set back during the run.",
		"Figures hold, because recorders and loads go by a clock that is never set; keep time synchronisation from stepping before comparing with logs of other machines."},
		clockStep},
	{Kind{"too_few_rounds", analysis.Warn,
		"There are fewer rounds than an interval at the report's confidence or a group needs: differences may be luck.",
		"Run again with the --rounds that the finding names."},
		tooFewRounds},
	{Kind{"emulated_kernel", analysis.Warn,
		"The kernel ran on an emulated CPU (QEMU without KVM).",
		"Read ratios to the baseline only; for absolute figures run on a machine with KVM or on real nodes."},
		emulatedKernel},
	{Kind{"mixed_versions", analysis.Warn,
		"The run was resumed with another version of cnibench, so that its samples are of several.",
		"Begin a new run with one version; until then compare contenders within rounds of one version only."},
		mixedVersions},
	{Kind{"above_ceiling", analysis.Warn,
		"The goodput of a valid sample is more than 2 % above what the line rate leaves to the payload, with the protocol's headers and the contender's encapsulation.",
		"See whether the traffic crossed the underlay, and whether the line rate, the MTU and the overhead in the contender's file are right."},
		aboveCeiling},
	{Kind{"udp_loss", analysis.Warn,
		"More than 10 % of the datagrams were lost (median of the rounds): the sender outran the path. Goodput and CPU per Gbit/s are shown, not ranked.",
		"Don't compare this goodput; lower the sending rate until the loss is small, or compare TCP."},
		udpLoss},
	{Kind{"drift", analysis.Warn,
		"A step's headline figure, relative to each contender's own median and pooled over contenders, moved in one direction over the rounds by 2 % or more (Mann–Kendall, Holm over all steps).",
		"Ratios are paired within rounds and hold; for absolute figures find what warms up or fills up (temperature, page cache, other load) and run again."},
		drift},
	{Kind{"autocorrelated_rounds", analysis.Warn,
		"What was peculiar to a contender in a round tended to be there in the next one, too (correlation of neighbouring rounds, of all usual figures together; rounds put into random order). Groups and the intervals of ratios are corrected for it (docs/statistics.md).",
		"Run again several times and compare with `cnibench compare OLD... -- NEW...`, where each run counts once: more rounds of one run help little."},
		autocorrelatedRounds},
	{Kind{"unstable_baseline", analysis.Warn,
		"A step's headline figure of the baseline (goodput or median latency) was in one round more than 1.3 times that of another (1.1 times with too few rounds for an interval): the machine or its neighbours disturbed the run, or bulk TCP met both of its speeds (docs/lab.md).",
		"Run again when the machine is quiet, with more rounds; until then prefer the intervals to the single figures."},
		unstableBaseline},
	{Kind{"bimodal_rounds", analysis.Warn,
		"The rounds of a goodput or median latency lie in two groups, 1.1 times or more apart, that one normal distribution would hardly give (simulated; Holm over all such figures of the run): placement on NUMA nodes or CPUs, hash collisions of flows, or bulk TCP's two speeds.",
		"Don't read the median as the usual case. Pin client and server to the NIC's NUMA node, use several streams, and look at what differs between the groups' raw files."},
		bimodalRounds},
	{Kind{"scattered_rounds", analysis.Warn,
		"With fewer than six rounds, which is too few to tell groups from noise, a contender's goodput or median latency was in one round more than 1.3 times that of another: often placement on NUMA nodes or CPUs, the more so with one stream.",
		"Run again with --rounds 6 or more; until then read neither the best nor the median as the usual case."},
		scatteredRounds},
	{Kind{"warmup_not_over", analysis.Warn,
		"The received rate went to another level early in the measured window: by 10 % or more in single samples (Pettitt's test on the seconds, Holm over the samples of a step), or by 5 % or more in the middle of all samples of a step together (samples run backwards, Holm over the steps).",
		"Run again with a longer --warmup."},
		warmupNotOver},
	{Kind{"steal_present", analysis.Warn,
		"In valid samples the hypervisor took 2 % or more of the busy CPU time.",
		"Prefer ratios over absolute figures, or run on a machine of your own."},
		stealPresent},
	{Kind{"busy_machine", analysis.Warn,
		"The baseline's nodes were busy with a quarter of a CPU or more in the idle step: something else ran beside the measurement.",
		"Stop other work on the machine and run again."},
		busyMachine},
	{Kind{"one_stall_tail", analysis.Warn,
		"Of three or more rounds one has nearly all requests beyond a p99: a single stall made them, and the hundreds of slow requests of one stall are worth no more than one observation.",
		"Don't rank by this percentile: run more rounds, or longer ones, and see whether the stall comes again."},
		oneStallTail},
	{Kind{"load_generator_late", analysis.Warn,
		"The requests of a step were sent so late that at the same percentile (p50, p99 or p99.9, of all rounds' requests together) the lag is half or more of the latency.",
		"Read service_time and network_time, which leave the lag out, or give the client more CPUs."},
		generatorLate},
	{Kind{"one_cpu_saturated", analysis.Warn,
		"On a node with several CPUs one was 95 % busy or more and the others 50 % or less (medians of the seconds): one thread or one interrupt queue was the limit and not the network.",
		"Use a tool or version with more threads (iperf3 from 3.16), more streams, or spread interrupts (RSS, RPS); compare CPU per Gbit/s instead of goodput."},
		oneCPUSaturated},
	{Kind{"empty_series", analysis.Warn,
		"A node's recording holds nothing of the measured window, or no received byte where there is goodput: CPU and memory figures of the sample may be of another time or machine.",
		"Look at metrics.om.zst in the samples' folders under raw/."},
		emptySeries},
	{Kind{"recording_pause", analysis.Warn,
		"A node's recorder, which takes a snapshot every second, took none for 2.5 s or more: the node was starved of CPU, or its clock was set.",
		"Keep a CPU free for the recorder (--cpus), and time synchronisation from stepping."},
		recordingPause},
	{Kind{analysis.TickAliased, analysis.Warn,
		"The kernel accounts CPU time by its tick, and a step's rate is an exact multiple of the tick's (HZ): every tick finds the load at the same phase. CPU figures of the step are shown, not ranked.",
		"Run with a rate that is no multiple of HZ, or on a kernel with VIRT_CPU_ACCOUNTING_GEN or IRQ_TIME_ACCOUNTING."},
		tickAliased},
	{Kind{"retransmit_storm", analysis.Warn,
		"More than 1 % of the TCP segments were sent again (median of the rounds).",
		"Look for drops in the node metrics under raw/; check MTU, queue lengths and congestion control."},
		retransmitStorm},
	{Kind{"better_than_baseline", analysis.Warn,
		"A contender is better than the baseline by 2 % or more and the interval of the ratio agrees (without an interval: by 5 % or more in each of three or more rounds, severity info). Bare metal is no upper bound, but look twice.",
		"Known causes: the pod's path skips netfilter rules or qdiscs that the host's packets cross, other offloads or packet sizes, better CPUs by luck. Compare these before believing it."},
		betterThanBaseline},
	{Kind{"mtu_wastes_underlay", analysis.Warn,
		"The pods' MTU and the encapsulation together leave more than 2 % of the underlay's MTU unused: every packet carries less than it could.",
		"Set the contender's MTU to the size that the finding names; most don't find jumbo frames by themselves."},
		mtuWastes},
	{Kind{"link_mtu_misleads", analysis.Info,
		"The MTU of the pods' interface is larger than what TCP's segments show: the route or the peer allows less.",
		"Compare segments (MSS) and not the interfaces' MTU between contenders."},
		linkMTU},
	{Kind{"line_rate_limited", analysis.Info,
		"Two or more contenders reach 95 % or more of what the line rate leaves to the payload: the link was the limit.",
		"Compare CPU per Gbit/s instead of goodput, or raise the line rate."},
		lineRateLimited},
	{Kind{"max_rate_limited", analysis.Warn,
		"Contenders reach 90 % or more of what the plan lets a bulk step of TCP send (parameter bandwidth, --max-rate, or 80 % of --line-rate in a cluster): the figure is that limit, and ratios to a contender at the limit say too much.",
		"Compare CPU per Gbit/s at this rate; for goodput repeat with a higher --max-rate, or 0, in a quiet hour."},
		maxRateLimited},
	{Kind{"level_step", analysis.Info,
		"The received rate went to another level within the measured window, but not early: in single samples, in all samples of a step together, or, of windows of 8 s or more, by 10 % or more in the rounds of a contender together, at another place in each (blocks of seconds permuted, Holm over the contenders).",
		"Look at the step's traces: TCP windows, CPU frequency, a neighbour's load."},
		levelStep},
	{Kind{"bursty_series", analysis.Info,
		"In single seconds of the measured window the received rate was under half or over twice its median.",
		"Look at the step's traces for retransmits or a busy CPU at that moment."},
		burstySeries},
	{Kind{"coarse_resolution", analysis.Info,
		"The noise of the rounds hides differences to the baseline of 10 % or more (a typical contender's mdd, docs/statistics.md), or the rounds are too few to show any.",
		"Before saying that two contenders are equal, run the number of rounds that the finding names."},
		coarseResolution},
	{Kind{"separate_groups", analysis.Info,
		"Contenders ran on different kernels or underlays; each is compared only within its own group.",
		"Compare ratios to the baseline, not figures, across groups."},
		separateGroups},
	{Kind{"policy_effect", analysis.Info,
		"How long NetworkPolicies take from the request to the API server until connections are cut off, and pass again after the deletion: the check's medians.",
		"Don't count on a policy before that time: start pods that need protection after it."},
		policyEffect},
	{Kind{"unknown_metric", analysis.Info,
		"Samples carry a metric that this version does not know; it is not shown.",
		"Read the run with the version that made it, or a newer one."},
		unknownMetric},
	{Kind{"note", analysis.Info,
		"The workload says how it measured. The finding carries the note's own code, e.g. multi_stream_processes; each is shown once.",
		"Nothing; it explains the figures."},
		notes},
}

// PartUnreadable is the kind of the finding that the part of a run under another
// kernel can't be read. Who reads the run directory finds it: a rule sees one part.
var PartUnreadable = Kind{"part_unreadable", analysis.Error,
	"The part of the run that a guest measured, in the folder microvm of the run directory, can't be read. The report is that of the native part alone.",
	"Look at the folder's run.json and samples.jsonl; `cnibench report` on the folder says more."}

// Finding is a finding of the kind with that text.
func (k Kind) Finding(text string) analysis.Finding {
	return analysis.Finding{Severity: k.Severity, Code: k.Code, Text: text, Next: k.Next}
}

// Kinds lists the kinds of finding in the order of reports.
func Kinds() []Kind {
	kinds := make([]Kind, len(rules), len(rules)+1)
	for i, r := range rules {
		kinds[i] = r.Kind
	}
	return append(kinds, PartUnreadable)
}

// asksForRun says that a next step is to measure again.
func asksForRun(next string) bool {
	return strings.HasPrefix(next, "Run ") || strings.Contains(next, "run --resume")
}

// evidence is that of a run, with what several rules ask of it.
type evidence struct {
	*analysis.Evidence
	traced []traced      // see tracedSamples
	levels []levelChange // of the traced samples
}

// Of returns what the rules find, in their order. With codes, only the rules
// of these codes are applied.
func Of(e *analysis.Evidence, codes ...string) []analysis.Finding {
	all := tracedSamples(e)
	facts := &evidence{e, all, changesOfLevel(e, all)}
	list := []analysis.Finding{}
	for _, r := range rules {
		if len(codes) > 0 && !slices.Contains(codes, r.Code) {
			continue
		}
		for _, f := range r.find(facts) {
			f.Code = cmp.Or(f.Code, r.Code)
			f.Severity = cmp.Or(f.Severity, r.Severity)
			f.Next = cmp.Or(f.Next, r.Next)
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
