package vm

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/frame"
	"github.com/cnibench/cnibench/internal/host"
)

// Signal is a signal for the guest's command.
type Signal = syscall.Signal

// bootLimit is how long a guest may take from its start to its init's hello. It is long because
// an emulated guest on a busy machine takes many times the usual three seconds.
const bootLimit = 2 * time.Minute

// Run boots the guest, runs the command in it and returns the command's exit code, as a shell
// would. Nothing is left when Run returns, nor when this process is killed. It returns a
// *Misuse, *Unsupported, *GuestError or *Interrupted, ErrTimeout, or ctx's error.
func Run(ctx context.Context, c Config) (int, error) {
	if err := c.check(); err != nil {
		return 0, err
	}
	severalCPUs, err := c.settle(ctx)
	if err != nil {
		return 0, err
	}
	if c.Memory == 0 {
		c.Memory = DefaultMemory
	}
	if missing := host.CheckProgram("ip"); missing != nil && len(taps(c.NICs)) > 1 {
		return 0, &Unsupported{Reason: "several " + virtioNIC + " are joined with ip(8), which is not installed", Remedy: missing.Remedy}
	}
	release, err := c.Kernel.hold()
	if err != nil {
		return 0, err
	}
	defer release()
	turns := c.CPUs > 1 && !severalCPUs
	if turns {
		c.Log.Warn("this QEMU is too old to emulate several CPUs side by side: they take turns on one of this machine's", "needs", "8.1")
	}
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, ErrTimeout)
		defer cancel()
	}
	h, err := c.prepare(c.Accel)
	if err != nil {
		return 0, err
	}
	h.machine.turns = turns
	return h.run(ctx)
}

// Settle sets the accelerator and the number of CPUs that Run would choose, so that they are
// known before the guest boots: the guest's CPUs are 0 to CPUs-1. It may try whether KVM works.
func (c *Config) Settle(ctx context.Context) error {
	_, err := c.settle(ctx)
	return err
}

// settle is Settle. severalCPUs is false if QEMU cannot emulate several CPUs side by side.
func (c *Config) settle(ctx context.Context) (severalCPUs bool, err error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if err := have(program); err != nil {
		return false, err
	}
	if c.Accel, err = chooseAccel(ctx, c); err != nil {
		return false, err
	}
	severalCPUs = true
	if c.Accel == AccelTCG {
		out, err := exec.CommandContext(ctx, program, "--version").Output()
		if err != nil {
			return false, fmt.Errorf("%s --version: %w", program, err)
		}
		v, err := parseVersion(string(out))
		if err != nil {
			return false, err
		}
		severalCPUs = v.emulatesSeveralCPUs()
	}
	switch {
	case c.CPUs == 0 && severalCPUs:
		c.CPUs = runtime.NumCPU()
	case c.CPUs == 0:
		c.CPUs = 1
	}
	return severalCPUs, nil
}

// running is the host's side of a guest.
type running struct {
	config  Config
	machine machine
	qemu    *process
	console *console
	port    *os.File
	out     *frame.Writer
	tokens  chan struct{} // one for each frame of input that may be sent
	began   time.Time
	up      bool // init has said hello
}

// prepare makes the initramfs and the command line.
func (c *Config) prepare(accel string) (*running, error) {
	modules, err := earlyModules(c.Kernel.Modules)
	if err != nil {
		return nil, err
	}
	library, err := filepath.EvalSymlinks(c.Kernel.Modules)
	if err != nil {
		return nil, fmt.Errorf("modules of the guest: %w", err)
	}
	o := &order{
		Modules: modules, Release: c.Kernel.Release, Library: library, Emulated: accel == AccelTCG, Terminal: c.Terminal, Drivers: nicDrivers(c.NICs),
		Argv: c.Argv, Env: c.Env, Dir: c.Dir, Umask: umask(),
	}
	if o.Dir == "" {
		o.Dir = "/"
	}
	// A symbolic link on the way may lead into a folder that the guest has for itself.
	if dir, err := filepath.EvalSymlinks(o.Dir); err == nil {
		o.Dir = dir
	}
	for i, dir := range c.Writable {
		path, err := Shareable(dir)
		if err != nil {
			return nil, err
		}
		o.Shares = append(o.Shares, share{Tag: fmt.Sprintf("share%d", i), Path: path})
	}
	m := machine{accel: accel, cpus: c.CPUs, memory: c.Memory, image: c.Kernel.Image, shares: o.Shares, squash: os.Geteuid() != 0, nics: c.NICs}
	if accel == AccelTCG {
		m.tscKHz = tscKHz()
	}
	qemu := &process{}
	if err := qemu.addInitramfs(c.Init, c.Kernel.Modules, o); err != nil {
		qemu.release()
		return nil, err
	}
	h := &running{config: *c, machine: m, qemu: qemu, console: newConsole(), began: time.Now()}
	return h, nil
}

// run boots the guest and serves it to its end.
func (h *running) run(ctx context.Context) (int, error) {
	defer h.qemu.release()
	port, err := h.qemu.addSocket(&h.machine.port)
	if err != nil {
		return 0, err
	}
	consoleEnd, err := h.qemu.addSocket(&h.machine.console)
	if err != nil {
		port.Close()
		return 0, err
	}
	h.port, h.out, h.tokens = port, frame.NewWriter(port), make(chan struct{}, inputFrames)
	for range inputFrames {
		h.tokens <- struct{}{}
	}
	defer port.Close()
	h.machine.initramfs = h.qemu.initramfs
	if err := h.qemu.start(h.machine); err != nil {
		consoleEnd.Close()
		return 0, err
	}
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(h.console, consoleEnd) })
	defer waitFor(&reading, time.Second) // a caller that no longer reads may delay it
	defer consoleEnd.Close()

	hello := make(chan struct{})
	result := make(chan outcome, 1)
	reading.Go(func() { result <- h.serve(hello) })
	defer h.qemu.kill()

	boot := time.NewTimer(bootLimit)
	defer boot.Stop()
	stop := make(chan struct{})
	defer close(stop)
	// This goroutine takes signals and writes nothing: a write to a guest that hangs would block.
	signal, told := make(chan Signal, 1), false
	for {
		select {
		case <-hello:
			hello, h.up = nil, true
			boot.Stop()
			h.config.Log.Debug("the guest is up", "kernel", h.config.Kernel.Release, "after", time.Since(h.began).Round(time.Millisecond))
			h.feed(signal, stop)
		case r := <-result:
			return h.judge(r)
		case s := <-h.config.Signals:
			if told || !h.up { // the user insists, or there is no command yet
				return 0, &Interrupted{s}
			}
			told = true
			signal <- s
		case <-boot.C:
			remedy := "run it on a less busy machine"
			if h.machine.accel == AccelKVM {
				remedy = "boot it with --accel tcg"
			}
			return 0, h.failure("the guest did not come up within "+bootLimit.String(), remedy)
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), ErrTimeout) {
				err := h.failure(fmt.Sprintf("the guest was ended after %v", h.config.Timeout), "give it longer with --timeout")
				return 0, fmt.Errorf("%w: %w", ErrTimeout, err)
			}
			return 0, ctx.Err()
		}
	}
}

// outcome is how the stream of frames ended.
type outcome struct {
	ending *ending
	failed string // init's reason
	err    error
}

// serve reads the guest's frames until the last one.
func (h *running) serve(hello chan<- struct{}) outcome {
	greeted := false
	for {
		k, payload, err := frame.Read(h.port)
		if err != nil {
			return outcome{err: err}
		}
		switch k {
		case kindHello:
			if greeted {
				return outcome{err: fmt.Errorf("%w: a second hello", frame.ErrDamaged)}
			}
			greeted = true
			// Send the time first: after hello, input may come before it.
			now := binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano()))
			err = h.out.Send(kindClock, now)
			close(hello)
		case kindStdout:
			err = writeTo(h.config.Stdout, payload)
		case kindStderr:
			err = writeTo(h.config.Stderr, payload)
		case kindExit:
			e := &ending{}
			if err := json.Unmarshal(payload, e); err != nil {
				return outcome{err: fmt.Errorf("%w: how the command ended: %w", frame.ErrDamaged, err)}
			}
			if e.Code < 0 || e.Code > 255 {
				return outcome{err: fmt.Errorf("%w: exit code %d", frame.ErrDamaged, e.Code)}
			}
			return outcome{ending: e}
		case kindFailed:
			return outcome{failed: string(payload)}
		case kindTaken:
			select {
			case h.tokens <- struct{}{}:
			default: // the guest sent more tokens than frames
			}
		}
		if err != nil {
			return outcome{err: err}
		}
	}
}

func writeTo(w io.Writer, p []byte) error {
	if w == nil {
		return nil
	}
	if _, err := w.Write(p); err != nil {
		return &outputError{err}
	}
	return nil
}

// outputError is an error of the caller's own writer.
type outputError struct{ err error }

func (e *outputError) Error() string { return "output of the guest's command: " + e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// feed sends input, signals and the terminal's size to the guest until stop is closed.
func (h *running) feed(signal <-chan Signal, stop <-chan struct{}) {
	go func() {
		if h.config.Stdin != nil {
			_, _ = io.Copy(h.out.Stream(kindStdin), permitted{h.config.Stdin, h.tokens, stop})
		}
		_ = h.out.Send(kindStdin, nil)
	}()
	go func() {
		for {
			select {
			case s := <-signal:
				_ = h.out.Send(kindSignal, []byte{byte(s)})
			case size := <-h.config.Resized:
				_ = h.out.Send(kindSize, binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, size.Rows), size.Columns))
			case <-stop:
				return
			}
		}
	}()
}

// judge returns the exit code or error that the end of the frames means.
func (h *running) judge(r outcome) (int, error) {
	var output *outputError
	switch {
	case r.ending != nil:
		if r.ending.OOMKills > 0 {
			h.config.Log.Warn("the guest ran out of memory and ended processes", "ended", r.ending.OOMKills, "memory", fmt.Sprintf("%d MiB", h.config.Memory>>20), "next", moreMemory)
		}
		return r.ending.Code, nil
	case r.failed != "":
		return 0, &GuestError{Reason: "the guest can't run the command: " + r.failed, Console: h.console.lines(consoleLines)}
	case errors.As(r.err, &output):
		return 0, r.err
	case errors.Is(r.err, frame.ErrDamaged):
		return 0, h.failure("the guest's init can't be understood: "+r.err.Error(), "")
	}
	h.qemu.wait(time.Second) // QEMU closes the socket when it ends
	if words := h.qemu.words(); words != "" {
		return 0, h.qemuFailure(words)
	}
	time.Sleep(20 * time.Millisecond) // wait for the console's last lines
	reason, remedy := h.console.verdict()
	if remedy == "" && !h.up && h.config.Memory < littleMemory {
		reason, remedy = fmt.Sprintf("the guest ended while it booted in %d MiB of memory", h.config.Memory>>20), moreMemory
	}
	return 0, h.failure(reason, remedy)
}

// littleMemory is so small, in bytes, that a kernel may die of it before it can print anything.
const littleMemory = 256 << 20

// consoleLines is how many lines of the console an error shows.
const consoleLines = 15

func (h *running) failure(reason, remedy string) error {
	return &GuestError{Reason: reason, Remedy: remedy, Started: h.up, Console: h.console.lines(consoleLines)}
}

// qemuFailure returns an error with QEMU's own message, if there is one.
func (h *running) qemuFailure(words string) error {
	switch {
	case lacksMemory(words):
		return &Unsupported{Reason: fmt.Sprintf("the host has no %d MiB for the guest", h.config.Memory>>20), Remedy: "give it less with --memory"}
	case strings.Contains(words, notJoined):
		return &Unsupported{Reason: words, Remedy: "load the modules bridge and tun, and let this user open /dev/net/tun"}
	case strings.Contains(words, "/dev/net/tun"):
		return &Unsupported{Reason: "the guest can't have " + virtioNIC + ": " + words, Remedy: "load the module tun, or let this user open /dev/net/tun"}
	case h.machine.accel == AccelKVM && !h.up:
		return &Unsupported{Reason: "KVM boots no guest here: " + words, Remedy: "run it with --accel tcg"}
	}
	return fmt.Errorf("%s: %s", program, words)
}

// lacksMemory reports whether QEMU's message says that the host lacks memory.
func lacksMemory(words string) bool {
	return strings.Contains(words, "cannot set up guest memory") || strings.Contains(words, "Cannot allocate memory")
}

// umask returns this process' umask. The only way to read it is to set it.
func umask() int {
	mask := unix.Umask(0o022)
	unix.Umask(mask)
	return mask
}
