package vm

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/frame"
)

// bootMark is the first text that init writes to the console. It shows that the kernel has
// booted.
const bootMark = "cnibench: the guest's init runs"

// IsInit reports whether this process is the init of a guest. A program that Run starts must
// check this first, and call Init if it is true.
func IsInit() bool { return os.Getpid() == 1 && os.Getenv(initMark) == "1" }

// Init is the guest's init. It makes the host's root visible, runs the command, reports how the
// command ended, and ends the guest. It does not return.
func Init() {
	runtime.LockOSThread() // this is PID 1's own thread; the kernel's helpers use its root
	fmt.Println(bootMark)
	g := &guest{}
	if err := g.run(); err != nil {
		fmt.Println("cnibench: init:", err)
		if g.out != nil {
			_ = g.out.Send(kindFailed, []byte(err.Error()))
		}
	}
	// The host ends QEMU when it has read the last frame. This ends the guest if the host is
	// gone.
	time.Sleep(10 * time.Second)
	end()
}

// end ends the guest from inside.
func end() {
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
	select {}
}

type guest struct {
	order order
	port  *os.File
	out   *frame.Writer
}

func (g *guest) run() error {
	for _, m := range []mount{
		{"proc", "/proc", "proc", 0, ""}, {"sysfs", "/sys", "sysfs", 0, ""}, {"devtmpfs", "/dev", "devtmpfs", 0, "mode=755"},
	} {
		if err := m.mount(); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(orderPath)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &g.order); err != nil {
		return fmt.Errorf("%s: %w", orderPath, err)
	}
	if err := g.loadModules(); err != nil {
		return err
	}
	if err := g.connect(); err != nil {
		return err
	}
	if err := g.mountRoot(); err != nil {
		return err
	}
	return g.command()
}

// loadModules loads the order's modules. A kernel refuses modules of another release;
// loadModules returns an error that says so.
func (g *guest) loadModules() error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	if running := unix.ByteSliceToString(u.Release[:]); running != g.order.Release {
		return fmt.Errorf("the kernel that runs is %s, not %s", running, g.order.Release)
	}
	for _, module := range g.order.Modules {
		if err := loadModule(filepath.Join(modulesDir, filepath.Base(module))); err != nil {
			return fmt.Errorf("module %s: %w; are the modules those of kernel %s?", filepath.Base(module), err, g.order.Release)
		}
	}
	return nil
}

// loadModule loads one module; the kernel decompresses it.
func loadModule(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	flags := 0
	if !strings.HasSuffix(file, ".ko") {
		flags = unix.MODULE_INIT_COMPRESSED_FILE
	}
	err = unix.FinitModule(int(f.Fd()), "", flags)
	if errors.Is(err, unix.EEXIST) { // it is loaded already
		return nil
	}
	return err
}

// connect opens the port to the host and sets the clock from the host's first frame.
func (g *guest) connect() error {
	name, err := findPort(10 * time.Second)
	if err != nil {
		return err
	}
	if g.port, err = os.OpenFile(name, os.O_RDWR, 0); err != nil {
		return err
	}
	g.out = frame.NewWriter(g.port)
	if err := g.out.Send(kindHello, nil); err != nil {
		return err
	}
	k, payload, err := frame.Read(untilConnected{g.port})
	if err != nil || k != kindClock || len(payload) != 8 {
		return fmt.Errorf("the host sent frame %q (%d bytes, %v) instead of the time; host and guest run different builds of cnibench", k, len(payload), err)
	}
	tv := unix.NsecToTimeval(int64(binary.BigEndian.Uint64(payload)))
	return unix.Settimeofday(&tv)
}

// findPort waits for the only virtio serial port.
func findPort(limit time.Duration) (string, error) {
	for deadline := time.Now().Add(limit); ; time.Sleep(2 * time.Millisecond) {
		ports, err := filepath.Glob("/dev/vport*")
		if err != nil {
			return "", err
		}
		if len(ports) > 0 {
			return ports[0], nil
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("no virtio serial port within %v", limit)
		}
	}
}

// untilConnected reads from a port whose host side may not be connected yet. Until then a read
// returns an end of file.
type untilConnected struct{ r io.Reader }

func (u untilConnected) Read(p []byte) (int, error) {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		n, err := u.r.Read(p)
		if n > 0 || !errors.Is(err, io.EOF) || time.Now().After(deadline) {
			return n, err
		}
	}
}
