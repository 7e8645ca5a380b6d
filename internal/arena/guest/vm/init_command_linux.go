package vm

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/frame"
)

// command runs the order's command and reports how it ended.
func (g *guest) command() error {
	if err := prepare(g.order.Drivers); err != nil {
		return err
	}
	oomBefore := oomKills()
	streams, err := g.streams()
	if err != nil {
		return err
	}
	argv0, err := g.lookPath()
	if err != nil {
		return g.finish(ending{Code: 127}, err)
	}
	unix.Umask(g.order.Umask)
	facts, err := json.Marshal(Facts{g.order.Emulated})
	if err == nil {
		err = os.WriteFile(factsFile, facts, 0o644)
	}
	if err != nil {
		return err
	}
	env := append(g.order.Env, GuestEnv+"="+g.order.Release, EmulatedEnv+"="+strconv.FormatBool(g.order.Emulated))
	pid, err := syscall.ForkExec(argv0, g.order.Argv, &syscall.ProcAttr{
		Dir: g.order.Dir, Env: env, Files: streams.child,
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: g.order.Terminal},
	})
	if err != nil {
		return g.finish(ending{Code: 126}, fmt.Errorf("%s: %w", argv0, err))
	}
	streams.closeCopies()
	var output sync.WaitGroup
	for k, r := range streams.output {
		output.Go(func() { _, _ = io.Copy(g.out.Stream(k), r) })
	}
	go g.obey(pid, streams)
	code := reap(pid)
	waitFor(&output, time.Second) // a child that the command left may keep it open
	unix.Sync()
	return g.finish(ending{Code: code, OOMKills: oomKills() - oomBefore}, nil)
}

// finish sends how the command ended. why is text for its standard error.
func (g *guest) finish(e ending, why error) error {
	if why != nil {
		if err := g.out.Send(kindStderr, fmt.Appendf(nil, "cnibench vm: %v\n", why)); err != nil {
			return err
		}
	}
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return g.out.Send(kindExit, text)
}

// prepare sets up what a booted machine usually has.
func prepare(drivers []string) error {
	if err := unix.Sethostname([]byte("cnibench-vm")); err != nil {
		return err
	}
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	for _, module := range append(drivers, nodeModule) {
		modprobe(module)
	}
	limit := &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, limit); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	unlimited := &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	return unix.Setrlimit(unix.RLIMIT_MEMLOCK, unlimited)
}

// nodeModule is a module that every node of a cluster has loaded and that no program loads by
// using it: netfilter on bridges (kubernetes.io, "Container runtimes").
const nodeModule = "br_netfilter"

// modprobe loads a module from the host's root. It ignores a missing module.
func modprobe(module string) {
	helper, err := os.ReadFile("/proc/sys/kernel/modprobe") // the kernel's default
	if err != nil {
		return
	}
	cmd := exec.Command(strings.TrimSpace(string(helper)), "-q", module)
	if err := cmd.Run(); err != nil {
		fmt.Printf("cnibench: init: %s: %v\n", module, err)
	}
}

func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(s, unix.SIOCGIFFLAGS, lo); err != nil {
		return err
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo)
}

// lookPath finds the command's file as a shell in its working directory would.
func (g *guest) lookPath() (string, error) {
	for _, v := range g.order.Env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			if err := os.Setenv("PATH", path); err != nil {
				return "", err
			}
		}
	}
	if err := os.Chdir(g.order.Dir); err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	path, err := exec.LookPath(g.order.Argv[0])
	if errors.Is(err, exec.ErrDot) {
		err = nil
	}
	return path, err
}

// streams holds the command's standard input, output and error.
type streams struct {
	child    []uintptr          // the command's descriptors 0, 1 and 2
	close    []*os.File         // this side's copies of them
	output   map[byte]io.Reader // what the command writes
	input    *os.File           // what the command reads
	terminal bool
}

func (g *guest) streams() (*streams, error) {
	s := &streams{output: map[byte]io.Reader{}, terminal: g.order.Terminal}
	if g.order.Terminal {
		return s, s.openTerminal()
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.input, s.close = inW, []*os.File{inR}
	for _, k := range []byte{kindStdout, kindStderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		s.output[k], s.close = r, append(s.close, w)
	}
	for _, f := range s.close {
		s.child = append(s.child, f.Fd())
	}
	return s, nil
}

// openTerminal makes a pseudo-terminal. All of its output is standard output.
func (s *streams) openTerminal() error {
	main, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	raw, err := main.SyscallConn()
	if err != nil {
		return err
	}
	var number int
	var ioctlErr error
	err = raw.Control(func(fd uintptr) {
		if ioctlErr = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); ioctlErr == nil {
			number, ioctlErr = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err = errors.Join(err, ioctlErr); err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	side, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	s.input, s.output[kindStdout], s.close = main, main, []*os.File{side}
	s.child = []uintptr{side.Fd(), side.Fd(), side.Fd()}
	return nil
}

// closeCopies closes init's copies of the command's descriptors.
func (s *streams) closeCopies() {
	for _, f := range s.close {
		_ = f.Close()
	}
}

// feed writes input to the command, and tells the host when the command has read a frame.
func (g *guest) feed(s *streams, input <-chan []byte) {
	for payload := range input {
		if len(payload) > 0 {
			_, _ = s.input.Write(payload) // if the command has closed its input, the rest is lost, as with a pipe
		} else if !s.terminal {
			_ = s.input.Close()
		}
		_ = g.out.Send(kindTaken, nil)
	}
}

// obey carries out the host's frames until the host is gone, and then ends the guest. It never
// blocks, so signals reach the command even if the command does not read its input.
func (g *guest) obey(pid int, s *streams) {
	input := make(chan []byte, inputFrames+1) // the frames that the host sends without a token, and the end
	go g.feed(s, input)
	for {
		k, payload, err := frame.Read(g.port)
		if err != nil {
			end()
		}
		switch {
		case k == kindStdin:
			input <- payload
		case k == kindSignal && len(payload) == 1:
			_ = unix.Kill(-pid, syscall.Signal(payload[0]))
		case k == kindSize && len(payload) == 4 && s.terminal:
			size := &unix.Winsize{Row: binary.BigEndian.Uint16(payload), Col: binary.BigEndian.Uint16(payload[2:])}
			if raw, err := s.input.SyscallConn(); err == nil {
				_ = raw.Control(func(fd uintptr) { _ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size) })
			}
		}
	}
}

// reap waits for every child, also adopted ones, until the command has ended.
func reap(command int) int {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 1 // cannot happen: the command is a child
		case pid == command && status.Exited():
			return status.ExitStatus()
		case pid == command && status.Signaled():
			return 128 + int(status.Signal())
		}
	}
}

func waitFor(w *sync.WaitGroup, limit time.Duration) {
	done := make(chan struct{})
	go func() { w.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// oomKills returns how many processes this kernel has killed because memory ran out.
func oomKills() int64 {
	text, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n
		}
	}
	return 0
}
