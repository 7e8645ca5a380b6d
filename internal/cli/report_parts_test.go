package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/run"
)

// frozenParts is a run that left flannel-vxlan to its part, where its goodput
// is multiplied by slow. Both kernels have the same release.
func frozenParts(t *testing.T, name string, seed uint64, slow float64) string {
	t.Helper()
	whole := frozen(t, name, seed, 1, func(r *result.Run) {
		r.Plan.Contenders, r.Contenders = r.Plan.Contenders[:3], r.Contenders[:3]
		r.Unsupported = []result.Unsupported{{Contender: "flannel-vxlan", Reason: "kernel lacks vxlan", OtherKernel: true}}
	})
	part := frozen(t, run.PartDir, seed+100, slow, func(r *result.Run) {
		r.Arena, r.Environment[result.EmulatedKey] = run.MicroVM, "true"
		r.Plan.Contenders = []result.Entry{r.Plan.Contenders[0], r.Plan.Contenders[3]}
		r.Contenders = []result.ContenderInfo{r.Contenders[0], r.Contenders[3]}
	})
	if err := os.Rename(part, filepath.Join(whole, run.PartDir)); err != nil {
		t.Fatal(err)
	}
	return whole
}

// TestPartsOfRuns: what a guest measured is neither passed over nor mixed up
// with the rest.
func TestPartsOfRuns(t *testing.T) {
	dirs := map[string]string{
		"OLD": frozenParts(t, "old", 1, 1), "AGAIN": frozenParts(t, "again", 2, 1), "SLOW": frozenParts(t, "slow", 3, 0.5),
		"PLAIN": frozenParts(t, "plain", 4, 1), "BROKEN": frozen(t, "broken", 5, 1, nil),
	}
	if err := os.RemoveAll(filepath.Join(dirs["PLAIN"], run.PartDir)); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dirs["BROKEN"], run.PartDir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dirs["BROKEN"], run.PartDir, "run.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []told{
		{"compare OLD AGAIN --fail-on 30%", 0, "with microvm on an emulated CPU", ""},
		{"compare OLD SLOW --fail-on 30%", 4, "flannel-vxlan in microvm dts", "gate failed: 2 of 10 figures"},
		{"compare OLD SLOW --fail-on 30% --contenders macvlan,calico-noencap", 0, "gate passed", ""},
		{"compare OLD PLAIN --fail-on 30%", 4, "✗ the new run: has nothing in microvm", "the new run is broken in 1 place"},
		{"compare PLAIN OLD --fail-on 30%", 0, "the old run: has nothing in microvm", ""},
		{"compare OLD BROKEN", 1, "", "microvm/run.json"},
		{"recommend OLD", 0, "microvm, kernel 6.18 on an emulated CPU, underlay switch", ""},
		{"recommend OLD --format json", 0, `"part": "microvm"`, ""},
		{"report OLD --format csv", 0, `"microvm","quick","host","flannel-vxlan"`, ""},
		{"report OLD --format openmetrics", 0, `cnibench_sample_goodput_bits_per_second{run="old",contender="flannel-vxlan",step="dts",path="pod",kernel="6.18",underlay="switch",round="1",verdict="valid",part="microvm",emulated="true"}`, ""},
	} {
		c.check(t, dirs)
	}
	if _, out, _ := command(t, "recommend", dirs["OLD"]); strings.Contains(out, "kernel lacks vxlan") {
		t.Errorf("what the part measured is called unknown:\n%s", out)
	}
}
