package findings_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/analysis/findings"
	"github.com/cnibench/cnibench/internal/testutil/analysistest"
	"github.com/cnibench/cnibench/internal/testutil/pagetest"
)

// common are the codes that need no fault of a contender, but only a small machine that
// others share, with what of such a machine makes them so. docs/findings.md has them first.
var common = []struct{ code, when string }{
	{"load_generator_late", "Client, server and load share the CPUs, and one of them, or another program, held the load's CPU for a millisecond."},
	{"spoiled_clock", "The same, at a step whose other figures don't need the load to be on time."},
	{"disturbed_cycles", "A neighbour, a package update or a browser woke up between two turns."},
	{"cpu_steal", "The virtual machine's host is busy."},
	{"steal_present", "The same, to a lesser degree."},
	{"too_few_rounds", "--rounds was lowered to save time, samples were left out, or the run was interrupted."},
	{"coarse_resolution", "The rounds are few, and the machine's speed changes from one to the next."},
	{"unstable_baseline", "A neighbour took CPU or cache in some rounds, or a CPU changed its frequency."},
	{"autocorrelated_rounds", "What a neighbour does lasts longer than a round."},
	{"udp_loss", "Sender and receiver share the CPUs, and nothing slows a UDP sender down."},
}

// docs/findings.md is written from the tables here; -update writes it.
func TestFindingsAreDocumented(t *testing.T) {
	var b strings.Builder
	b.WriteString(docsHead)
	all := everyCode(t)
	b.WriteString("\n| code | severity | you meet it when | what it means | what to do |\n|---|---|---|---|---|\n")
	for _, c := range common {
		i := slices.IndexFunc(all, func(k findings.Kind) bool { return k.Code == c.code })
		if i < 0 {
			t.Fatalf("%s is no finding's code", c.code)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", c.code, all[i].Severity, c.when, all[i].Help, all[i].Next)
		all = slices.Delete(all, i, i+1)
	}
	b.WriteString("\n## All others, by code\n\n| code | severity | what it means | what to do |\n|---|---|---|---|\n")
	for _, k := range all {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Code, k.Severity, k.Help, k.Next)
	}
	b.WriteString(docsChecks)
	pagetest.CheckWhole(t, "../../../docs/findings.md", *analysistest.Update, b.String())
}

// everyCode lists kinds and reasons by code, each code once.
func everyCode(t *testing.T) []findings.Kind {
	list := findings.Kinds()
	for _, k := range findings.Reasons() {
		k.Help = "A sample is invalid: " + k.Help
		i := slices.IndexFunc(list, func(o findings.Kind) bool { return o.Code == k.Code })
		if i < 0 {
			list = append(list, k)
			continue
		}
		o := &list[i]
		o.Help, o.Next = o.Help+" "+k.Help, o.Next+" Where samples are invalid: "+k.Next
		if o.Severity != k.Severity {
			o.Severity += ", " + k.Severity
		}
	}
	slices.SortFunc(list, func(a, b findings.Kind) int { return cmp.Compare(a.Code, b.Code) })
	for _, k := range list {
		if k.Code == "" || k.Severity == "" || k.Help == "" || k.Next == "" {
			t.Errorf("%+v lacks something", k)
		}
	}
	return list
}

const docsHead = `# Findings

<!-- Written by go test ./internal/analysis/findings -update from findings.yaml. -->

For whoever reads a report and meets a warning: look its code up here. After that you know
whether the figures still hold, and what to do next.

A finding has a code, a severity, a sentence with the numbers, and a next step; ` + "`excluded`" + `
says that the samples it speaks of are not ranked. Severities:

- ` + "`error`" + `: figures are missing or left out;
- ` + "`warn`" + `: figures can mislead;
- ` + "`info`" + `: good to know.

Where the text begins with "A sample is invalid", the code is that of the sample. Such a
sample is kept and shown, never ranked; samples of one contender and step with the same
reason become one finding. Workloads may give further codes of this kind.

## Those that you meet first

They need no fault of a pod network: a small machine that others share is enough. They were
chosen by what makes each of them, beside what every first run has: client, server, load and
recorder on two to four CPUs, a hypervisor with other guests, few rounds, UDP without a
rate. Nobody counted them over many users' runs.
`

const docsChecks = `
## Results of checks

A run carries what its checks found as keys of its environment,
` + "`check.CHECK.CONTENDER.CASE`" + `, from which the findings above are made. The value
begins with a word; a colon and a sentence may follow.

| key | value |
|---|---|
| ` + "`check.policy.canal.ingress-from-pods`" + ` | ` + "`pass` or `fail`" + `: was every forbidden connection cut off, and every allowed one let through |
| ` + "`check.policy.canal.effect`, `….back`" + ` | milliseconds from asking for a policy to its effect, and from its deletion |
| ` + "`check.encryption.calico-wg.pod-tcp`" + ` | ` + "`pass` or `fail`" + `: the pods' bytes were seen plain on a network that promises to encrypt them or encrypts others; ` + "`plain`" + `: seen on one that promises nothing; ` + "`unseen`" + `: not seen, and not proven to be encrypted where that was promised |
| ` + "`check.mtu.flannel-vxlan.pod`" + ` | MTU of the pods' interface, bytes |
| ` + "`check.mtu.flannel-vxlan.path`" + ` | the largest packet that passes whole between pods of two nodes, bytes |
| ` + "`check.NAME.CONTENDER.CASE`" + ` | any other: ` + "`pass`, `fail`" + `, or ` + "`skip: why`" + ` |
| ` + "`pod.mtu.CONTENDER`, `pod.mss.CONTENDER`" + ` | MTU of the pods' interface (imported runs), and the payload of TCP's segments, bytes |
`
