package vm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/host"
)

// process is a QEMU with the files and sockets that it inherits. They are in memory, so that
// none has a name on disk.
type process struct {
	inherited []*os.File
	initramfs int // the archive's descriptor in QEMU
	stderr    bytes.Buffer
	cmd       *exec.Cmd
	ended     chan struct{} // closed when QEMU has ended
}

// have returns an *Unsupported if the program is not installed.
func have(program string) error {
	if missing := host.CheckProgram(program); missing != nil {
		return &Unsupported{Reason: "QEMU is not installed (" + program + ")", Remedy: missing.Remedy}
	}
	return nil
}

// inherit makes QEMU inherit the file and returns its descriptor there.
func (p *process) inherit(f *os.File) int {
	p.inherited = append(p.inherited, f)
	return 2 + len(p.inherited)
}

// addInitramfs writes the archive to a file in memory.
func (p *process) addInitramfs(init, library string, o *order) error {
	if init == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		init = self
	}
	if err := standsAlone(init); err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("cnibench-initramfs", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("initramfs: %w", err)
	}
	f := os.NewFile(uintptr(fd), "initramfs")
	p.initramfs = p.inherit(f)
	return writeInitramfs(f, init, library, o)
}

// addSocket makes a pair of sockets. It sets *number to the descriptor of QEMU's end and
// returns the other end.
func (p *process) addSocket(number *int) (*os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	*number = p.inherit(os.NewFile(uintptr(pair[1]), "guest"))
	if err := unix.SetNonblock(pair[0], true); err != nil { // then Close interrupts a Read
		_ = unix.Close(pair[0])
		return nil, err
	}
	return os.NewFile(uintptr(pair[0]), "host"), nil
}

// start starts QEMU. QEMU ends with this process, however this process ends.
func (p *process) start(m machine) error {
	argv := buildCommand(m.nics, append([]string{program}, m.args()...))
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.ExtraFiles = p.inherited
	p.cmd.Stdout, p.cmd.Stderr = &p.stderr, &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL,
		Setpgid:   true, // Ctrl-C is for the command, not for QEMU
	}
	if len(taps(m.nics)) > 0 {
		ownNetwork(p.cmd.SysProcAttr)
	}
	p.ended = make(chan struct{})
	started := make(chan error)
	go func() {
		// The kernel sends the parent death signal when the thread that started the child ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
			close(p.ended)
		}
	}()
	err := <-started
	if errors.Is(err, unix.EPERM) && p.cmd.SysProcAttr.Cloneflags != 0 {
		return &Unsupported{Reason: virtioNIC + " needs a network namespace for QEMU, which this user can't make", Remedy: "run it as root, or leave it out"}
	}
	if err != nil {
		return fmt.Errorf("start QEMU: %w", err)
	}
	p.release()
	return nil
}

// release closes this side's copies of what QEMU inherited.
func (p *process) release() {
	for _, f := range p.inherited {
		_ = f.Close()
	}
	p.inherited = nil
}

// kill ends QEMU and waits for it.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// wait waits for the end of QEMU, at most the given time.
func (p *process) wait(limit time.Duration) {
	select {
	case <-p.ended:
	case <-time.After(limit):
	}
}

// words returns what QEMU printed, after it has ended.
func (p *process) words() string {
	select {
	case <-p.ended:
		return strings.TrimSpace(p.stderr.String())
	default:
		return ""
	}
}
