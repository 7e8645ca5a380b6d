package terminal_test

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/terminal"
	"github.com/cnibench/cnibench/internal/testutil/analysistest"
)

// A jumbo frame that pods waste, which the check of a run has found, is the first of the causes
// that the terminal shows, before what is said of every short and noisy run.
func TestWastedMTUReachesTheTerminal(t *testing.T) {
	rec := analysistest.Noisy(3, 2, 0.4, 1, 0.3)
	rec.Run.Plan.Settings["mtu"] = "9000"
	rec.Run.Environment["check.mtu.host.pod"], rec.Run.Environment["check.mtu.flannel-vxlan.pod"] = "9000", "1440"
	rec.Run.Environment["check.mtu.flannel-vxlan.path"] = "8950"
	r := report.Analyse(rec, analysis.Options{MTU: 9000})
	var text strings.Builder
	if err := terminal.Report(&text, r, terminal.Screen{}); err != nil {
		t.Fatal(err)
	}
	said := strings.Join(strings.Fields(text.String()), " ")
	if !strings.Contains(said, "Findings warn The pods' MTU does not fit the underlay: flannel-vxlan: pods send packets of 1440 bytes at most on an underlay of 9000") {
		t.Errorf("the cause is not the first of the findings:\n%s", text.String())
	}
}
