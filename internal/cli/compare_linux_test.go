package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

const plainConf = `{"cniVersion":"1.0.0","name":"mine","plugins":[
  {"type":"bridge","bridge":"cni0","isGateway":true,"ipam":{"type":"host-local","subnet":"usePodCidr","routes":[{"dst":"0.0.0.0/0"}]}}%s]}`

// A contender that is slowed by a qdisc, which the standard bandwidth plugin
// puts on its interface, fails the gate; the run with itself passes.
func TestSlowedContenderFailsTheGate(t *testing.T) {
	dirs := map[string]string{}
	for name, more := range map[string]string{
		"PLAIN": "", "SLOWED": `,{"type":"bandwidth","ingressRate":1000000000,"ingressBurst":8000000,"egressRate":1000000000,"egressBurst":8000000}`,
	} {
		conf := filepath.Join(t.TempDir(), "mine.conflist")
		if err := os.WriteFile(conf, []byte(fmt.Sprintf(plainConf, more)), 0o644); err != nil {
			t.Fatal(err)
		}
		r := newRun(t, "--cni-conf", conf, "--contenders", "host,custom", "--rounds", "5", "--duration", "300ms", "--warmup", "100ms")
		r.must(t)
		dirs[name] = r.dir
	}
	for _, c := range []told{
		{"compare PLAIN PLAIN --fail-on 5% --contenders custom --metric goodput", 0, "gate passed", ""}, // of one figure four rounds are enough; a busy machine may spoil one
		{"compare PLAIN SLOWED --fail-on 5% --contenders custom --metric goodput", 4, "✗ FAILS  custom dts", "gate failed"},
		{"recommend PLAIN", 0, "custom", ""},
	} {
		c.check(t, dirs)
	}
}
