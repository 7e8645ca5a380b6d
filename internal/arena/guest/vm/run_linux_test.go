package vm

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/frame"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// buildGuest builds the program in testdata once: statically, as an init must be.
var buildGuest = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "cnibench-vm-test-")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", dir, "./testdata/guest")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, errors.New(string(out))
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := buildGuest(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// guestCommand returns a command in a guest that can write into dir.
func guestCommand(t *testing.T, dir string, kernel Kernel, mebibytes int, argv ...string) *exec.Cmd {
	t.Helper()
	program, err := buildGuest()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{kernel.Image, kernel.Modules, strconv.Itoa(mebibytes)}, argv...)
	cmd := exec.Command(filepath.Join(program, "guest"), args...)
	cmd.Dir = dir
	return cmd
}

func testKernel(t *testing.T) Kernel {
	t.Helper()
	needs.Guest(t)
	if err := Available(); err != nil {
		needs.Missing(t, err.Error())
	}
	k, found := Lookup("")
	if !found {
		needs.Missing(t, "no kernel "+DefaultVersion+" here; fetch it with: cnibench vm -- true")
	}
	return k
}

// ended runs the command to its end and returns its exit code.
func ended(t *testing.T, cmd *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestGuest(t *testing.T) {
	k, real := testKernel(t), t.TempDir()
	// Links on the way to what the guest mounts, which its first root lacks.
	links := t.TempDir()
	dir := filepath.Join(links, "shared")
	library := filepath.Join(links, k.Release)
	for link, target := range map[string]string{dir: real, library: k.Modules} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	k.Modules = library
	thrownAway := filepath.Join(os.TempDir(), "cnibench-vm-thrown-away")
	script := `echo out; echo err >&2; cat; pwd; umask; id -u; uname -r; echo $COLOUR $CNIBENCH_VM_EMULATED
echo kept > kept; echo lost > ` + thrownAway + `; cat ` + thrownAway + `
modprobe dummy && ls /sys/module | grep -x dummy
cat /sys/class/net/lo/operstate; ls /sys/fs/cgroup/cgroup.procs; mountpoint -q /sys/fs/bpf && echo bpf
exit 7`
	cmd := guestCommand(t, dir, k, 512, "sh", "-c", script)
	cmd.Stdin = strings.NewReader("from stdin\n")
	cmd.Env = append(os.Environ(), "COLOUR=blue", "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin", "PWD="+dir)
	code, out, errs := ended(t, cmd)
	want := strings.Join([]string{
		"out", "from stdin", dir, "0022", "0", k.Release, "blue true", "lost", "dummy", "unknown", "/sys/fs/cgroup/cgroup.procs", "bpf", "",
	}, "\n")
	if diff := cmp.Diff(want, out); code != 7 || diff != "" || errs != "err\n" {
		t.Errorf("exit code %d, standard error %q, output (-want +got):\n%s", code, errs, diff)
	}
	if text, err := os.ReadFile(filepath.Join(real, "kept")); string(text) != "kept\n" {
		t.Errorf("in the shared folder: %q, %v", text, err)
	}
	if _, err := os.Stat(thrownAway); err == nil {
		t.Errorf("%s is there: the guest wrote to the host's disk", thrownAway)
	}
}

// Network devices are named in the order of their models, have drivers and
// queues, and end there: the host sees none.
func TestNICsOfGuest(t *testing.T) {
	cmd := guestCommand(t, t.TempDir(), testKernel(t), 512, "sh", "-c", `cd /sys/class/net; for n in eth*; do
basename $(readlink $n/device/driver); ls $n/queues; cat /sys/class/net/$n/address; done; echo ready; cat`)
	cmd.Env = append(os.Environ(), "CPUS=2", "NICS=e1000 virtio-net-pci")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := &watched{text: "ready\n", seen: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	before := hostInterfaces(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case <-out.seen:
	case err := <-done:
		t.Fatalf("it ended before it was ready: %v", err)
	}
	if diff := cmp.Diff(before, hostInterfaces(t)); diff != "" {
		t.Errorf("the host's interfaces: %s", diff)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	want := strings.Join([]string{
		"e1000", "rx-0", "tx-0", "52:54:00:00:00:01", "virtio_net", "rx-0", "rx-1", "tx-0", "tx-1", "52:54:00:00:00:02", "ready", "",
	}, "\n")
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// hostInterfaces returns the names of those that QEMU could have made.
func hostInterfaces(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("/sys/class/net/tap*")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// The guest's init waits for the time, so that nobody may say anything before.
func TestTimeComesFirst(t *testing.T) {
	port, guest, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	told, out := io.Pipe()
	h := &running{port: port, out: frame.NewWriter(out)}
	hello, served := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(served)
		h.serve(hello)
	}()
	if err := frame.NewWriter(guest).Send(kindHello, nil); err != nil {
		t.Fatal(err)
	}
	select {
	case <-hello:
		t.Error("input may come before the time")
	case <-time.After(50 * time.Millisecond): // nobody reads the time yet
	}
	if k, _, err := frame.Read(told); k != kindClock || err != nil {
		t.Errorf("first came %q, %v", k, err)
	}
	<-hello
	_ = guest.Close() // which ends serve
	<-served
}

// A guest that dies says how, with the last lines of its console.
func TestGuestDies(t *testing.T) {
	k := testKernel(t)
	wrong := k
	wrong.Modules = filepath.Join(t.TempDir(), k.Release)
	if err := os.MkdirAll(wrong.Modules, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(wrong.Modules, "modules.dep"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name      string
		kernel    Kernel
		mebibytes int
		limit     string
		argv      []string
		code      int
		want      []string
	}{
		{"panic", k, 512, "", []string{"sh", "-c", "echo c > /proc/sysrq-trigger"}, 98, []string{"the guest's kernel panicked", "its console ended with", "Kernel panic"}},
		{"too little memory", k, 64, "", []string{"true"}, 98, []string{"memory", "--memory"}},
		{"out of time", k, 512, "300ms", []string{"true"}, 98, []string{"timed out: the guest was ended after 300ms"}},
		{"modules that lack 9p", wrong, 512, "", []string{"true"}, 98, []string{"the kernel has no module", "--kernel " + DefaultVersion}},
		{"no such command", k, 512, "", []string{"no-such-command"}, 127, []string{"no-such-command", "not found"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cmd := guestCommand(t, t.TempDir(), tt.kernel, tt.mebibytes, tt.argv...)
			cmd.Env = append(os.Environ(), "LIMIT="+tt.limit)
			code, _, errs := ended(t, cmd)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			for _, want := range tt.want {
				if !strings.Contains(errs, want) {
					t.Errorf("standard error lacks %q:\n%s", want, errs)
				}
			}
		})
	}
}

// When the host's process is killed QEMU dies, too, and a signal to it is the
// command's, even of one that reads none of its endless input; the second one
// ends the guest.
func TestGuestTakesSignals(t *testing.T) {
	k := testKernel(t)
	for _, tt := range []struct {
		name    string
		trap    string
		signals []syscall.Signal
		want    string
		code    int
	}{
		{"terminated", "echo told; exit 0", []syscall.Signal{syscall.SIGTERM}, "ready\ntold\n", 0},
		{"terminated twice", "", []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM}, "ready\n", 128 + int(syscall.SIGTERM)},
		{"killed", "", []syscall.Signal{syscall.SIGKILL}, "ready\n", -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := guestCommand(t, t.TempDir(), k, 512, "sh", "-c", "trap '"+tt.trap+"' TERM; sleep 0.5; echo ready; while :; do sleep 0.1; done")
			out := &watched{text: "ready\n", seen: make(chan struct{})}
			endless, err := os.Open("/dev/zero")
			if err != nil {
				t.Fatal(err)
			}
			defer endless.Close()
			cmd.Stdin, cmd.Stdout, cmd.Stderr = endless, out, os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			select {
			case <-out.seen:
			case err := <-done:
				t.Fatalf("it ended before it was ready: %v", err)
			}
			children := childrenOf(t, cmd.Process.Pid)
			if len(children) != 1 {
				t.Fatalf("children %v, want QEMU", children)
			}
			for _, s := range tt.signals {
				if err := cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond) // equal ones that wait are one
			}
			select {
			case <-done:
			case <-time.After(time.Minute):
				_ = cmd.Process.Kill()
				t.Fatal("deaf to signals")
			}
			if got, code := out.String(), cmd.ProcessState.ExitCode(); got != tt.want || code != tt.code {
				t.Errorf("output %q and exit code %d, want %q and %d", got, code, tt.want, tt.code)
			}
			for deadline := time.Now().Add(time.Minute); alive(children[0]); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("QEMU outlives the process that started it")
				}
			}
		})
	}
}

// What a guest says is judged, not believed.
func TestServe(t *testing.T) {
	for _, tt := range []struct{ name, frames, want string }{
		{"a second hello", "H\x00\x00\x00\x00H\x00\x00\x00\x00", "a second hello"},
		{"a large exit code", "x\x00\x00\x00\x0c{\"code\":256}", "exit code 256"},
		{"a negative exit code", "x\x00\x00\x00\x0b{\"code\":-1}", "exit code -1"},
		{"no ending", "x\x00\x00\x00\x01{", "how the command ended"},
		{"tokens that it never took", "t\x00\x00\x00\x00t\x00\x00\x00\x00f\x00\x00\x00\x04done", "done"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if _, err := w.WriteString(tt.frames); err != nil {
				t.Fatal(err)
			}
			w.Close()
			h := &running{port: r, out: frame.NewWriter(io.Discard), tokens: make(chan struct{}, 1), console: newConsole()}
			_, err = h.judge(h.serve(make(chan struct{})))
			var died *GuestError
			if !errors.As(err, &died) || !strings.Contains(died.Reason, tt.want) {
				t.Errorf("got %v, want a guest's error with %q", err, tt.want)
			}
		})
	}
}

// watched is a buffer that says when a text has come.
type watched struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	text string
	seen chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := strings.Contains(w.buf.String(), w.text)
	n, err := w.buf.Write(p)
	if !before && strings.Contains(w.buf.String(), w.text) {
		close(w.seen)
	}
	return n, err
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// childrenOf returns the processes that the process's threads have started.
func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that is gone
		}
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// alive says whether the process runs; one that waits to be reaped does not.
func alive(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	return len(fields) > 0 && fields[0] != "Z" && fields[0] != "X"
}
