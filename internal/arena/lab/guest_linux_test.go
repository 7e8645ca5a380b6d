package lab

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/vm"
)

// guestPatience is for all contenders together on an emulated CPU.
const guestPatience = 20 * time.Minute

// TestConformanceInGuest runs TestConformance in a guest for the contenders
// that need another kernel than the running one.
func TestConformanceInGuest(t *testing.T) {
	if os.Getenv(vm.GuestEnv) != "" {
		return // this is the guest
	}
	if testing.Short() {
		t.Skip("emulates a machine; to run it: go test ./internal/arena/lab")
	}
	wanted := needGuest(t)
	kernel, found := vm.Lookup("")
	err := vm.Available()
	switch {
	case len(wanted) == 0:
		t.Skip("the running kernel has everything")
	case os.Getuid() != 0:
		t.Skip("the guest's kernel is in root's cache; run it as root")
	case err == nil && !found:
		err = fmt.Errorf("no kernel %s here; fetch it with: cnibench vm -- true", vm.DefaultVersion)
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(wanted))
	for i, id := range wanted {
		names[i] = regexp.QuoteMeta(id)
	}
	only := "^TestConformance$/^nodes=2,mtu=1500$/^(" + strings.Join(names, "|") + ")$"
	var out bytes.Buffer
	code, err := vm.Run(t.Context(), vm.Config{
		Kernel: kernel, Memory: 3 << 30,
		Argv: []string{os.Args[0], "-test.run", only, "-test.v", "-test.timeout", guestPatience.String()},
		Env:  os.Environ(), Dir: dir, Stdout: &out, Stderr: &out, Timeout: guestPatience,
	})
	if err != nil || code != 0 {
		t.Errorf("exit code %d, %v\n%s", code, err, &out)
	}
	for _, id := range wanted {
		if !strings.Contains(out.String(), "--- PASS: TestConformance/nodes=2,mtu=1500/"+id+" ") {
			t.Errorf("%s did not pass in kernel %s", id, kernel.Release)
		}
	}
}

// needGuest are the contenders that only another kernel can run.
func needGuest(t *testing.T) []string {
	t.Helper()
	a, err := New(options(2, 1500))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range catalogue(t) {
		if u := arena.AsUnsupported(a.Supports(t.Context(), c)); u != nil && u.OtherKernel {
			ids = append(ids, c.ID)
		}
	}
	slices.Sort(ids)
	return ids
}
