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
	"github.com/cnibench/cnibench/internal/host"
)

// containedEnv is set in the environment of a program that Contain has started.
const containedEnv = "CNIBENCH_CONTAINED"

// lifelineFD is the inner program's end of a pipe that the outer program holds
// open: end of file means that the outer program has ended.
const lifelineFD = 3

// Contained reports whether this process is the init of the lab's namespaces.
func Contained() bool { return os.Getpid() == 1 && os.Getenv(containedEnv) == "1" }

// Contain is ContainProgram with this process's own input and output.
func Contain(ctx context.Context, args []string) (int, error) {
	return ContainProgram(ctx, Program{Args: args, Stdin: os.Stdin, Stdout: os.Stdout})
}

// ContainProgram starts this program again as the init of PID, mount, network, IPC and
// UTS namespaces of its own, and without root in a user namespace too. It returns the
// exit code of the inner program; the kernel has then removed everything inside. It
// passes the first signal on, so that the inner program can end in order; a signal more
// than SameRequest later kills the inner program, as does the end of this process. The
// error is a *Killed if a signal ended the inner program.
func ContainProgram(ctx context.Context, p Program) (int, error) {
	newNet := uintptr(syscall.CLONE_NEWNET)
	if p.HostNetwork {
		newNet = 0
	}
	// The parent death signal is tied to the thread that starts the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	lifeline, ourEnd, err := os.Pipe()
	if err != nil {
		return 1, err
	}
	defer ourEnd.Close()
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	cmd := exec.Command(self, p.Args...)
	cmd.Env = append(os.Environ(), containedEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Stdin, p.Stdout, os.Stderr
	cmd.ExtraFiles = append([]*os.File{lifeline}, p.Files...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS | newNet,
		Pdeathsig:  syscall.SIGKILL,
		Setpgid:    true, // else a terminal sends Ctrl-C to both, and the inner program gets two
	}
	rootless := os.Geteuid() != 0
	if rootless {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, host.EndSignals()...)
	defer signal.Stop(signals)
	err = cmd.Start()
	lifeline.Close()
	if err != nil {
		return 1, containError(err, rootless)
	}
	done := make(chan struct{})
	var askedTwice atomic.Bool
	go func() {
		var asked time.Time
		for {
			select {
			case s := <-signals:
				switch {
				case asked.IsZero():
					asked = time.Now()
					_ = cmd.Process.Signal(s)
				case time.Since(asked) > SameRequest:
					askedTwice.Store(true)
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
			return 1, &Killed{Signal: unix.SignalName(ws.Signal()), AskedTwice: askedTwice.Load()}
		}
		return exit.ExitCode(), nil
	}
	return 1, err
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

// Inherited returns the first n of Program.Files in the inner program.
func Inherited(n int) (files []*os.File) {
	for i := range n {
		fd := lifelineFD + 1 + i
		unix.CloseOnExec(fd)
		files = append(files, os.NewFile(uintptr(fd), "inherited"))
	}
	return files
}

// Enter prepares the inner program's namespaces for a lab: private mounts, an own
// /proc, empty file systems on ownDirs. From then on the end of the outer program
// kills every process inside. The error is an *arena.Unsupported if a mount fails.
func Enter() error {
	if !Contained() {
		return errors.New("lab: this process is not the init of a lab's namespaces")
	}
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

// HidesPath reports whether the path lies where the lab has a file system of its
// own. A file that is written there is lost with the lab.
func HidesPath(path string) bool {
	for _, dir := range append([]string{"/proc", "/var/run"}, ownDirs...) {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}
