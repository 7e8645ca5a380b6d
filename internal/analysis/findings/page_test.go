package findings_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/analysis/findings"
	"github.com/cnibench/cnibench/internal/testutil/analysistest"
	"github.com/cnibench/cnibench/internal/testutil/pagetest"
)

// docs/findings.md is written from the tables here; -update writes it.
func TestFindingsAreDocumented(t *testing.T) {
	var b strings.Builder
	b.WriteString(docsHead)
	b.WriteString("\n| code | severity | what it means | what to do |\n|---|---|---|---|\n")
	for _, k := range findings.Kinds() {
		fmt.Fprintf(&b, "| `%s` | %s | %s: %s | `%s` |\n", k.Code, k.Severity, k.Title, k.Help, k.Next)
	}
	b.WriteString(docsReasons)
	for _, k := range findings.Reasons() {
		kind, _ := findings.KindOf(k.Code)
		fmt.Fprintf(&b, "| `%s` | %s | `%s` |\n", k.Code, k.Help, kind.Code)
	}
	b.WriteString(docsChecks)
	pagetest.CheckWhole(t, "../../../docs/findings.md", *analysistest.Update, b.String())
}

const docsHead = `# Findings

<!-- Written by go test ./internal/analysis/findings -update from findings.yaml. -->

    cnibench list findings                # all codes
    cnibench list findings udp_loss       # one: what it means, what to do, its codes of earlier versions

A report has one finding a kind: a code, a severity, a title, a sentence with the numbers of
at most three places, how many places there are, and a command. ` + "`excluded`" + ` says that samples
are not ranked. Severities:

- ` + "`error`" + `: figures are missing, left out or those of a fault;
- ` + "`warn`" + `: figures can mislead;
- ` + "`info`" + `: good to know.

Findings are ordered by severity, then by the size of the difference that they explain: what
makes a contender slow by the contender's distance from the baseline, what makes figures
uncertain by the width of their intervals.

In the commands below ` + "`{again}`" + ` stands for the command that repeats the run, ` + "`{run}`" + ` for the
run directory, ` + "`{rounds}`" + ` for the number of rounds that would help. Reports have the names in
place. Reports of earlier versions had a code for each cause: ` + "`cnibench list findings CODE`" + ` names them.
`

const docsReasons = `
## Reasons of invalid samples

A sample that is invalid keeps its reason in the run directory. It is shown, never ranked.

| reason | what it means | finding |
|---|---|---|
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
