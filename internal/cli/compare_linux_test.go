package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

const plainConf = `{"cniVersion":"1.0.0","name":"mine","plugins":[
  {"type":"bridge","bridge":"cni0","isGateway":true,"ipam":{"type":"host-local","subnet":"usePodCidr","routes":[{"dst":"0.0.0.0/0"}]}}%s]}`

// A contender that is slowed by a qdisc, which the standard bandwidth plugin
// puts on its interface, fails the gate; the run with itself passes.
func TestSlowedContenderFailsTheGate(t *testing.T) {
	needs.Slow(t, "compares two runs")
	// Of one figure four rounds are enough; a busy machine may spoil more than one.
	const enough = 4
	dirs, minimum := map[string]string{}, enough
	for name, more := range map[string]string{
		"PLAIN": "", "SLOWED": `,{"type":"bandwidth","ingressRate":1000000000,"ingressBurst":8000000,"egressRate":1000000000,"egressBurst":8000000}`,
	} {
		conf := filepath.Join(t.TempDir(), "mine.conflist")
		if err := os.WriteFile(conf, []byte(fmt.Sprintf(plainConf, more)), 0o644); err != nil {
			t.Fatal(err)
		}
		valid := 0
		for try := 0; try < 3 && valid < enough; try++ {
			r := newRun(t, "--cni-conf", conf, "--contenders", "host,custom", "--steps", "dts", "--rounds", "5", "--duration", "300ms", "--warmup", "100ms")
			valid = 0
			for _, s := range steps(r.must(t)) {
				if s.Contender == "custom" && s.Step == "dts" && s.Verdict == result.Valid {
					valid++
				}
			}
			dirs[name] = r.dir
		}
		minimum = min(minimum, valid)
	}
	if minimum < enough {
		told{"compare PLAIN SLOWED --fail-on 5% --contenders custom --metric goodput", 4, "", ""}.check(t, dirs)
		t.Logf("the machine was too busy: %d valid rounds, want %d", minimum, enough)
		return
	}
	for _, c := range []told{
		{"compare PLAIN PLAIN --fail-on 5% --contenders custom --metric goodput", 0, "gate passed", ""},
		{"compare PLAIN SLOWED --fail-on 5% --contenders custom --metric goodput", 4, "✗ FAILS  custom dts", "gate failed"},
		{"recommend PLAIN", 0, "custom", ""},
	} {
		c.check(t, dirs)
	}
}
