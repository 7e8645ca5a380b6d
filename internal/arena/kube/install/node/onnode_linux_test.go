package node

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestMain lets the test program be this program in a pod, and then on its node.
func TestMain(m *testing.M) {
	switch strings.Join(os.Args[1:], " ") {
	case "in the pod":
		if err := os.Remove(os.Getenv("FILE")); err != nil { // the image's, which the node does not have
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(Exec("on", "the", "node"))
		os.Exit(1)
	case "on the node":
		fmt.Println(mounts(), os.Getenv("FILE"), os.Getenv("HOME"))
		os.Exit(7)
	}
	os.Exit(m.Run())
}

func mounts() string {
	ns, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return err.Error()
	}
	return ns
}

// A process in another mount namespace becomes the program that it is in that
// of the process above, in an environment of its own.
func TestExec(t *testing.T) {
	if os.Geteuid() != 0 {
	}
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/program"
	if err := os.WriteFile(file, program, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(file, "in", "the", "pod")
	cmd.Env = []string{"FILE=" + file}
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if want := mounts() + "  /root\n"; string(out) != want || cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("%v: %q, want %q", err, out, want)
	}
}

func TestParent(t *testing.T) {
	if pid, err := parentOf(os.Getpid()); err != nil || pid != os.Getppid() {
		t.Errorf("parent %d, %v; want %d", pid, err, os.Getppid())
	}
	if pid, err := parentOf(-1); err == nil {
		t.Errorf("the parent of no process is %d", pid)
	}
}
