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
	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/testutil/vmtest"
)

// guestPatience is for all contenders together on an emulated CPU: ten minutes on two
// idle CPUs, and more than twice as long beside the tests of clusters; each has a limit of
// its own. go test's limit for them (make test-guest) is longer.
const guestPatience = 50 * time.Minute

// TestConformanceInGuest runs TestConformance in a guest for the contenders
// that need another kernel than the running one.
func TestConformanceInGuest(t *testing.T) {
	if os.Getenv(vm.GuestEnv) != "" {
		return // this is the guest
	}
	kernel := vmtest.Kernel(t)
	wanted := needGuest(t)
	if len(wanted) == 0 {
		t.Skip("the running kernel has everything")
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	// Open vSwitch 3.1 that is started within seconds of the boot of an emulated
	// 6.12 kernel loses what the kernel asks it (dpctl/show: lost), for a reason
	// that is not known: its contenders come after the others.
	script, sep := "", ""
	for _, late := range []bool{false, true} {
		var names []string
		for _, x := range wanted {
			if slices.Contains(x.Requires.Kernel, "openvswitch") == late {
				names = append(names, regexp.QuoteMeta(x.ID))
			}
		}
		only := "^TestConformance$/^nodes=2,mtu=1500$/^(" + strings.Join(names, "|") + ")$"
		script += sep + fmt.Sprintf("%s -test.run '%s' -test.v -test.timeout %v", os.Args[0], only, guestPatience)
		sep = " && "
	}
	var out bytes.Buffer
	code, err := vm.Run(t.Context(), vm.Config{
		Kernel: kernel, Memory: 3 << 30, Argv: []string{"sh", "-c", script},
		Env: os.Environ(), Dir: dir, Stdout: &out, Stderr: &out, Timeout: guestPatience,
	})
	if err != nil || code != 0 {
		t.Errorf("exit code %d, %v\n%s", code, err, &out)
	}
	for _, x := range wanted {
		if !strings.Contains(out.String(), "--- PASS: TestConformance/nodes=2,mtu=1500/"+x.ID+" ") {
			t.Errorf("%s did not pass in kernel %s; its tests said:\n%s", x.ID, kernel.Release, linesAbout(out.String(), x.ID))
		}
	}
}

// linesAbout returns the lines that name the contender: the reason why the
// guest refused it is one of them.
func linesAbout(out, id string) string {
	name := regexp.MustCompile(`(^|[^a-z0-9-])` + regexp.QuoteMeta(id) + `([^a-z0-9-]|$)`)
	var about strings.Builder
	for line := range strings.Lines(out) {
		if name.MatchString(line) {
			about.WriteString(line)
		}
	}
	return about.String()
}

// needGuest are the contenders that only another kernel can run.
func needGuest(t *testing.T) []*contender.Contender {
	t.Helper()
	a, err := New(options(2, 1500))
	if err != nil {
		t.Fatal(err)
	}
	var list []*contender.Contender
	for _, c := range catalogue(t) {
		if u := arena.AsUnsupported(a.Supports(t.Context(), c)); u != nil && u.OtherKernel {
			list = append(list, c)
		}
	}
	return list
}
