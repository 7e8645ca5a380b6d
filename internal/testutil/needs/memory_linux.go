package needs

import (
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"syscall"
	"testing"
)

// Within runs the test program with those arguments and that environment in twice as
// much address space as most, bytes. It fails the test if the program fails or has more
// memory than most at any time, and returns its output.
func Within(t *testing.T, maximum int64, env []string, args ...string) string {
	t.Helper()
	ulimit := fmt.Sprintf("ulimit -v %d; ", 2*maximum>>10)
	if build, ok := debug.ReadBuildInfo(); ok && slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		ulimit = ""  // with the race detector a process has no less than some TiB
		maximum *= 4 // and shadow memory beside what it uses
	}
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", ulimit + `exec "$0" "$@"`, os.Args[0]}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%.3000s", err, out)
	}
	peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss // KiB
	t.Logf("%d MiB", peak>>10)
	if peak<<10 > maximum {
		t.Errorf("it took %d MiB, and may take %d", peak>>10, maximum>>20)
	}
	return string(out)
}
