package vmtest

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// patience is for an emulated machine on a busy one.
const patience = 5 * time.Minute

// Inside runs the test again in a guest with four CPUs and those network devices, and says
// whether this is that run. The test program has to be a guest's init, too: see vm.IsInit.
func Inside(t *testing.T, nics ...string) bool {
	t.Helper()
	if os.Getenv(vm.GuestEnv) != "" {
		return true
	}
	kernel := Kernel(t)
	if os.Geteuid() != 0 {
		needs.Missing(t, "network devices of a guest need a network namespace; run it as root")
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	code, err := vm.Run(t.Context(), vm.Config{
		Kernel: kernel, CPUs: vm.SteeringCPUs, Memory: 768 << 20, NICs: nics, Timeout: patience,
		Argv: []string{os.Args[0], "-test.run=^" + t.Name() + "$", "-test.v"}, Env: os.Environ(), Dir: dir, Stdout: &out, Stderr: &out,
	})
	if err != nil || code != 0 || !strings.Contains(out.String(), "--- PASS: "+t.Name()+" ") {
		t.Errorf("exit code %d, %v\n%s", code, err, &out)
	}
	return false
}
