package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/selftest"
)

// The results of the self-test come first, a line each, whatever was planted; what is left
// out has its reason.
func TestSelfTestResultsComeFirst(t *testing.T) {
	long := strings.Repeat("another process that keeps half of the CPUs busy; ", 4)
	trials := []selftest.Trial{
		{Name: "twins: network_time_p50", Planted: long, Wanted: long, Found: "1.002 times host (0.987 to 1.018)", Passed: true},
		{Name: "rate", Planted: "a link of 100 Mbit/s", Wanted: long, Found: "71 Mbit/s"},
		{Name: "loss", Planted: long, Wanted: long, LeftOut: "the pods may not change their network"},
	}
	var out bytes.Buffer
	if err := printSelfTest(&out, selftest.Result{Trials: trials}, false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range [][]string{
		{"found", "twins: network_time_p50", "1.002 times host (0.987 to 1.018)"},
		{"NOT FOUND", "rate", "71 Mbit/s"},
		{"left out", "loss", "the pods may not change their network"},
	} {
		line := lines[1+i]
		if !strings.HasPrefix(strings.TrimSpace(line), want[0]) || !strings.Contains(line, want[1]) || !strings.HasSuffix(line, want[2]) {
			t.Errorf("line %d is %q, want %q", i, line, want)
		}
	}
	for _, line := range lines {
		if len(line) > 100 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}
