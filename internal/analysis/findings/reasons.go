package findings

import "github.com/cnibench/cnibench/internal/analysis"

// Reasons lists the known reason codes of invalid samples, in no order that
// means anything. Verdict gives the first ones, the run and the workloads the
// others; a code that is not here is shown just as well, with a general next
// step.
func Reasons() []Kind { return append([]Kind{}, reasons...) }

var reasons = []Kind{
	{"missing_result", analysis.Error,
		"A metric that the workload always gives is absent, not a number, infinite, negative, or zero where zero is impossible.",
		"Read the tool's output in the samples' folders under raw/."},
	{"above_line_rate", analysis.Error,
		"The goodput is more than 2 % above what headers leave of the line rate.",
		"Check that the traffic crossed the underlay and that the line rate is the one configured."},
	{"rate_short", analysis.Error,
		"Fewer than 99 % of the requests planned in the window were answered, a while after its end included, so that the latencies are those of a smaller load.",
		"Ask for a lower rate, or give client and server more CPUs."},
	{"cpu_steal", analysis.Error,
		"The hypervisor took more than 10 % of the CPU time of client and server.",
		"Run on a machine of your own, or when its neighbours are quiet."},
	{"short_window", analysis.Error,
		"The measured window is shorter than half of the planned duration.",
		"Read the tool's output in the samples' folders under raw/: the load ended early."},
	{"not_a_number", analysis.Error,
		"A metric came out as no finite number and was left out.",
		"Read the tool's output in the samples' folders under raw/."},
	{setupFailed, analysis.Error,
		"The contender was not up; shown as contender_failed.",
		"See contender_failed."},
	{"network_failed", analysis.Error,
		"A daemon of the contender ended while the network was up.",
		"Read the reason of the sample; if the daemon crashed by itself, look for its core and report it to its product."},
	{"workload_failed", analysis.Error,
		"The workload ended with an error.",
		"Read the commands and their output in the samples' folders under raw/."},
	{"workload_timeout", analysis.Error,
		"The workload did not end in time.",
		"Read the output in the samples' folders under raw/ for where it hung."},
	{"load_generator_late", analysis.Error,
		"More than 1 % of the requests were sent more than 1 ms late by the load generator itself, so that the latencies are partly its own.",
		"Stop other work on the machine, give the client CPUs of its own (--cpus), or ask for a lower rate."},
	{"load_generator_saturated", analysis.Error,
		"The load generator used up its CPU, so that it and not the network was the limit.",
		"Give the client more or faster CPUs (--cpus), or ask for a lower rate."},
	{"request_errors", analysis.Error,
		"More than 1 % of the requests failed.",
		"Read the kinds of error in client.json in the samples' folders under raw/, and the server's output beside it."},
	{"wrong_test", analysis.Error,
		"An imported file holds another test than its name says: another direction, protocol or number of streams.",
		"Read the file that the finding names in the imported folder."},
	{"inconsistent_result", analysis.Error,
		"An imported file contradicts itself: bytes over seconds are not the rate that it gives.",
		"Read the file that the finding names in the imported folder."},
	{"duplicate_sample", analysis.Error,
		"The same measurement lies in the imported folder twice, under two names.",
		"Find out which of the two is the copy; neither counts as a second round."},
	{"recorder_failed", analysis.Error,
		"The nodes could not be recorded during the step.",
		"Run again; if it stays, report it with the run directory."},
	{"disk_full", analysis.Error,
		"The disk was full when the sample was sealed.",
		"Free some space and go on with `cnibench run --resume DIR`."},
}

// setupFailed is the reason of every sample of a visit whose contender did not
// come up.
const setupFailed = "setup_failed"

// nextOf is the next step after a reason.
func nextOf(code string) string {
	for _, k := range reasons {
		if k.Code == code {
			return k.Next
		}
	}
	return "Read the samples' files under raw/."
}
