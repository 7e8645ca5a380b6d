package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena"
)

// containedEnv tells the program that it was started again inside.
const containedEnv = "CNIBENCH_CONTAINED"

// lifelineFD is the pipe from the outer program: its end is the outer's end.
const lifelineFD = 3

// Contained says that this process is the init of the lab's namespaces.
func Contained() bool { return os.Getpid() == 1 && os.Getenv(containedEnv) == "1" }

// Contain starts this program again, with the arguments args, as the init of
// PID, mount, network, IPC and UTS namespaces of its own, and without root in
// a user namespace too. It returns the exit code when the inner program has
// ended; the kernel then has taken back everything inside. Signals are passed
// on; one that comes when the inner program had time to end in order kills it. If
// this process dies, by whatever death, the inner one is killed. The error is a
// *Killed if a signal ended the inner program.
func Contain(ctx context.Context, args []string) (int, error) {
	// The parent death signal is tied to the thread that starts the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	lifeline, hold, err := os.Pipe()
	if err != nil {
		return 1, err
	}
	defer hold.Close()
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), containedEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{lifeline}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL,
		Setpgid:    true, // a terminal's Ctrl-C comes through us, once
	}
	rootless := os.Geteuid() != 0
	if rootless {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, EndSignals()...)
	defer signal.Stop(signals)
	err = cmd.Start()
	lifeline.Close()
	if err != nil {
		return 1, containError(err, rootless)
	}
	done := make(chan struct{})
	var impatient atomic.Bool
	go func() {
		var asked time.Time
		for {
			select {
			case s := <-signals:
				switch {
				case asked.IsZero():
					asked = time.Now()
					_ = cmd.Process.Signal(s)
				case time.Since(asked) > SameRequest: // the user can't wait
					impatient.Store(true)
					_ = cmd.Process.Kill()
				}
			case <-ctx.Done():
				_ = cmd.Process.Kill()
				return
			case <-done:
				return
			}
		}
	}()
	err = cmd.Wait()
	close(done)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit):
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return 1, &Killed{Signal: unix.SignalName(ws.Signal()), Asked: impatient.Load()}
		}
		return exit.ExitCode(), nil
	}
	return 1, err
}

// EndSignals are the signals that end a run in order. What this process was
// started to ignore, as nohup does, stays ignored.
func EndSignals() []os.Signal {
	var signals []os.Signal
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	return signals
}

func containError(err error, rootless bool) error {
	if rootless {
		return &arena.Unsupported{
			Reason: fmt.Sprintf("the lab needs root or user namespaces, and this kernel refuses the latter (%v)", err),
			Remedy: "run it as root, or allow them: sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000, and on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0",
		}
	}
	return &arena.Unsupported{
		Reason: fmt.Sprintf("the lab needs PID, mount and network namespaces (%v)", err),
		Remedy: "run it as root with CAP_SYS_ADMIN; in a container start that with --privileged",
	}
}

// Enter finishes the container from inside: private mounts, its own /proc, an
// empty /run and CNI state. It returns when the lab can be built.
func Enter() error {
	unix.CloseOnExec(lifelineFD)
	go func() {
		// No data ever comes: the read ends when the outer process does.
		_, _ = io.Copy(io.Discard, os.NewFile(lifelineFD, "lifeline"))
		_ = unix.Kill(-1, unix.SIGKILL)
		os.Exit(1)
	}()
	if err := os.Unsetenv(containedEnv); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return containMount("/", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return containMount("/proc", err)
	}
	for _, dir := range ownDirs {
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) && dir != RunDir {
			continue
		}
		if err := unix.Mount("cnibench", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
			return containMount(dir, err)
		}
	}
	// The lab's own names and nothing of the host's.
	return unix.Sethostname([]byte("cnibench"))
}

// ownDirs are hidden behind empty file systems: programs in the lab write
// there (xtables.lock, pid files, CNI's address books) and must neither see
// nor change what the host has.
var ownDirs = []string{RunDir, "/var/lib/cni"}

func containMount(dir string, err error) error {
	return &arena.Unsupported{
		Reason: fmt.Sprintf("the lab can't mount its own %s (%v)", dir, err),
		Remedy: "in a container start that with --privileged, or run outside of it",
	}
}

// HidesPath says that the path lies where the lab has a file system of its
// own, so that what is written there would be lost.
func HidesPath(path string) bool {
	for _, dir := range append([]string{"/proc", "/var/run"}, ownDirs...) {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}
