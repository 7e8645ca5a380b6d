package host

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Local runs commands on this machine, in the caller's own namespaces.
type Local struct{}

// Start implements Runner.
func (Local) Start(ctx context.Context, c Command) (Process, error) {
	return StartWith(ctx, c, nil, func(cmd *exec.Cmd) error { return cmd.Start() })
}

// Foreground starts c on this machine in the caller's own process group, so
// that the terminal is the command's.
func Foreground(ctx context.Context, c Command) (Process, error) {
	return StartWith(ctx, c, func(cmd *exec.Cmd) {
		cmd.SysProcAttr.Setpgid = false
		cmd.Cancel = func() error { return cmd.Process.Kill() }
	}, func(cmd *exec.Cmd) error { return cmd.Start() })
}

// StartDetached starts c on this machine in a session of its own: neither a signal to the caller's
// group or terminal nor the end of the caller ends it.
func StartDetached(c Command) (Process, error) {
	return StartWith(context.Background(), c, func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}, func(cmd *exec.Cmd) error { return cmd.Start() })
}

// StartWith starts c after prepare has changed the exec.Cmd (nil leaves it as
// it is) and through start, which may first enter namespaces or set an
// affinity on its locked thread. Every arena that runs local processes starts
// them here, so that process groups, errors and clean-up are the same.
func StartWith(ctx context.Context, c Command, prepare func(*exec.Cmd), start func(*exec.Cmd) error) (Process, error) {
	path, err := find(c.Argv[0])
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, c.Argv[1:]...)
	cmd.Args[0] = c.Argv[0]
	if len(c.Env) > 0 {
		cmd.Env = append(os.Environ(), c.Env...)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	// A process group of its own: a terminal's Ctrl-C reaches cnibench only,
	// and ending the group takes the program's own children too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	p := &process{cmd: cmd, line: c.String()}
	if cmd.Stderr == nil {
		p.tail = &tail{}
		cmd.Stderr = p.tail
	}
	if prepare != nil {
		prepare(cmd)
	}
	if err := start(cmd); err != nil {
		return nil, err
	}
	return p, nil
}

// LocalProcess is a Process that also has a process ID and its CPU time. Those of Local
// and Foreground are LocalProcesses.
type LocalProcess interface {
	Process
	// PID is the process ID, and that of its process group unless Foreground started it.
	PID() int
	// CPU is, after Wait, the CPU time of the process and of all its
	// descendants that were waited for (wait4's rusage).
	CPU() (user, system time.Duration)
}

func (p *process) PID() int { return p.cmd.Process.Pid }

func (p *process) CPU() (user, system time.Duration) {
	if p.cmd.ProcessState == nil {
		return 0, 0
	}
	return p.cmd.ProcessState.UserTime(), p.cmd.ProcessState.SystemTime()
}

type process struct {
	cmd  *exec.Cmd
	line string
	tail *tail
}

func (p *process) Wait() error {
	err := p.cmd.Wait()
	if err == nil {
		return nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	code := exit.ExitCode()
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		code = 128 + int(ws.Signal())
	}
	e := &ExitError{Command: p.line, Code: code}
	if p.tail != nil {
		e.Stderr = p.tail.String()
	}
	return e
}

func (p *process) Signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// tail keeps the last 4 KiB written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if over := len(t.b) - tailSize; over > 0 {
		t.b = t.b[over:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}

// sbin is where servers and network tools are; an ordinary user's PATH often
// leaves it out.
var sbin = []string{"/usr/local/sbin", "/usr/sbin", "/sbin"}

// ownFolder returns the folder of this very program, where `make` puts others that no
// package has.
func ownFolder() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{filepath.Dir(self)}
}

// find returns the program's path. Errors: *ProgramError.
func find(program string) (string, error) {
	path, err := exec.LookPath(program)
	for _, dir := range append(ownFolder(), sbin...) {
		if err == nil {
			return path, nil
		}
		if filepath.Base(program) == program {
			path, err = exec.LookPath(filepath.Join(dir, program))
		}
	}
	if err != nil {
		return "", checkProgram(program)
	}
	return path, nil
}
