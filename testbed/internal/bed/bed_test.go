//go:build linux

package bed

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/testbed/internal/pki"
)

func TestAddressPlan(t *testing.T) {
	seen := map[string]bool{}
	for i := range MaxNodes {
		n := nodeNumber(i + 1)
		if !nodePrefix.Contains(n.Addr) || n.Addr == controlAddr || !podPrefix.Contains(n.PodCIDR.Addr()) || n.PodCIDR.Masked() != n.PodCIDR {
			t.Errorf("%+v is not in the plan", n)
		}
		if seen[n.Addr.String()] || seen[n.PodCIDR.String()] {
			t.Errorf("%+v is there twice", n)
		}
		seen[n.Addr.String()], seen[n.PodCIDR.String()] = true, true
	}
	if n := nodeNumber(2); n.Name != "node-2" || n.Addr.String() != "10.77.0.12" || n.PodCIDR.String() != "10.244.2.0/24" {
		t.Errorf("%+v", n)
	}
	if servicePfx.Addr().Next() != kubernetesIP {
		t.Errorf("Service kubernetes is %s", kubernetesIP)
	}
}

func TestConflist(t *testing.T) {
	var config struct {
		Name    string
		Plugins []struct{ Type string }
	}
	if err := json.Unmarshal([]byte(conflist(nodeNumber(1))), &config); err != nil {
		t.Fatal(err)
	}
	for _, p := range config.Plugins {
		if !strings.Contains(strings.Join(standardPlugins, " "), p.Type) {
			t.Errorf("plugin %s is not copied to the nodes", p.Type)
		}
	}
}

func TestOptions(t *testing.T) {
	good := Options{Nodes: 3, KubeProxy: "iptables", CNI: "none"}
	for _, test := range []struct {
		name   string
		change func(*Options)
		error  string
	}{
		{"good", func(*Options) {}, ""},
		{"no node", func(o *Options) { o.Nodes = 0 }, "0 nodes"},
		{"too many", func(o *Options) { o.Nodes = MaxNodes + 1 }, "from 1 to 20"},
		{"proxy", func(o *Options) { o.KubeProxy = "ipvs" }, `"ipvs"`},
		{"slow", func(o *Options) { o.Slow = -1 }, "-1 times"},
		{"network", func(o *Options) { o.CNI = "flannel" }, "none, routes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := good
			test.change(&o)
			err := o.check()
			if test.error == "" && err != nil || test.error != "" && (err == nil || !strings.Contains(err.Error(), test.error)) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Every limit of time is longer on a slow machine, by one factor.
func TestSlow(t *testing.T) {
	for slow, want := range map[int]time.Duration{0: 2 * time.Second, 1: 2 * time.Second, 10: 20 * time.Second} {
		if got := (Options{Slow: slow}).limit(2 * time.Second); got != want {
			t.Errorf("%d times slower: %v, want %v", slow, got, want)
		}
	}
	t.Setenv("CNIBENCH_VM_EMULATED", "false")
	if got := SlowHere(); got != 1 {
		t.Errorf("with KVM: %d", got)
	}
	t.Setenv("CNIBENCH_VM_EMULATED", "true")
	if got := SlowHere(); got <= 1 {
		t.Errorf("emulated: %d", got)
	}
	config := kubeletConfig(Options{Slow: 10})
	for _, line := range []string{"nodeStatusUpdateFrequency: 50s", "nodeLeaseDurationSeconds: 160", `nodefs.available: "0%"`, "cgroupRoot: /pods"} {
		if !strings.Contains(config, line+"\n") && !strings.Contains(config, line+",") {
			t.Errorf("kubelet's configuration lacks %q:\n%s", line, config)
		}
	}
}

func TestStartTime(t *testing.T) {
	start, err := startTime(os.Getpid())
	if err != nil || start == 0 {
		t.Errorf("own: %d %v", start, err)
	}
	cmd := exec.Command("sleep", "0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := state{Init: cmd.Process.Pid, Start: 1}
	if s.alive() {
		t.Error("a process with another start counts as the supervisor")
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := startTime(s.Init); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("ended: %v", err)
	}
}

func TestOpenAndDownWithout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bed")
	if _, err := Open(dir); !errors.Is(err, ErrDown) {
		t.Errorf("Open: %v", err)
	}
	if err := Down(t.Context(), dir); err != nil {
		t.Errorf("Down without a folder: %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Down(t.Context(), dir); err != nil {
		t.Errorf("Down of what an Up left that was killed at once: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	other := t.TempDir()
	file := filepath.Join(other, "mine")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Down(t.Context(), other); err == nil || !strings.Contains(err.Error(), "no state folder") {
		t.Errorf("Down of another's folder: %v", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	if _, err := stateDir("/tmp/a:b"); err == nil {
		t.Error("a folder with a colon is taken")
	}
	link := filepath.Join(t.TempDir(), "run")
	if err := os.Symlink("/run", link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/run", "/run/x/../bed", filepath.Join(link, "no-such", "bed")} {
		if _, err := stateDir(dir); err == nil || !strings.Contains(err.Error(), DefaultDir) {
			t.Errorf("%s, below /run: %v", dir, err)
		}
	}
	if _, err := stateDir("/runs/bed"); err != nil {
		t.Errorf("a folder that is not below /run: %v", err)
	}
}

func TestWatchers(t *testing.T) {
	before, err := watchers()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Skipf("no inotify instance is left on this machine: %v", err)
	}
	defer unix.Close(fd)
	// Others come and go meanwhile; ours is there.
	if after, err := watchers(); err != nil || after < 1 {
		t.Errorf("counted %d before, %d after, %v", before, after, err)
	}
	if err := checkWatchers(1 << 20); err == nil || !strings.Contains(err.Error(), "sysctl fs.inotify") {
		t.Errorf("a million nodes: %v", err)
	}
}

func TestState(t *testing.T) {
	dir := t.TempDir()
	want := state{ID: "ab", Init: 7, Start: 9, Nodes: []Node{nodeNumber(1)}, Options: Options{Nodes: 1}}
	if err := want.write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := readState(dir)
	if err != nil || got.ID != want.ID || got.Init != want.Init || got.Nodes[0] != want.Nodes[0] {
		t.Errorf("%+v %v", got, err)
	}
}

func TestClientReadsKubeconfig(t *testing.T) {
	ca, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	user, err := ca.Client("me")
	if err != nil {
		t.Fatal(err)
	}
	c, err := newClient(pki.Kubeconfig("https://10.0.0.1:1", ca.PEM, user), Options{})
	if err != nil || c.server != "https://10.0.0.1:1" {
		t.Errorf("%+v %v", c, err)
	}
	if _, err := newClient([]byte("kind: Config\n"), Options{}); err == nil {
		t.Error("an empty kubeconfig is taken")
	}
}

// A stranger's state folder names a process to kill and a program to execute.
func TestOwner(t *testing.T) {
	const stranger = 65534
	if os.Geteuid() != 0 {
		t.Skip("giving files away needs root: sudo make test")
	}
	for _, test := range []struct {
		name   string
		change func(t *testing.T, parent, dir string) error
		error  string
	}{
		{"own", func(*testing.T, string, string) error { return nil }, ""},
		{"a stranger's", func(_ *testing.T, _, dir string) error { return os.Chown(dir, stranger, 0) }, "user 65534"},
		{"writable for all", func(_ *testing.T, _, dir string) error { return os.Chmod(dir, 0o777) }, "not believed"},
		{"writable for the group", func(_ *testing.T, _, dir string) error { return os.Chmod(dir, 0o770) }, "not believed"},
		{"a stranger's parent", func(_ *testing.T, parent, _ string) error { return os.Chown(parent, stranger, 0) }, "can replace it"},
		{"a parent writable for all", func(_ *testing.T, parent, _ string) error { return os.Chmod(parent, 0o777) }, "can replace it"},
		{"a link", func(t *testing.T, _, dir string) error {
			if err := os.Rename(dir, dir+"2"); err != nil {
				return err
			}
			return os.Symlink(dir+"2", dir)
		}, "not believed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			parent := filepath.Join(t.TempDir(), "parent")
			dir := filepath.Join(parent, "bed")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			victim := exec.Command("sleep", "1000")
			if err := victim.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = victim.Process.Kill()
				_ = victim.Wait()
			}()
			start, err := startTime(victim.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			s := state{ID: "planted", Init: victim.Process.Pid, Start: start, Programs: "/bin"}
			if err := s.write(dir); err != nil {
				t.Fatal(err)
			}
			if err := test.change(t, parent, dir); err != nil {
				t.Fatal(err)
			}
			_, err = Open(dir)
			if test.error == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			for what, err := range map[string]error{"Open": err, "Down": Down(t.Context(), dir)} {
				if err == nil || !strings.Contains(err.Error(), test.error) {
					t.Errorf("%s: error %v, want %q", what, err, test.error)
				}
			}
			if _, err := startTime(victim.Process.Pid); err != nil {
				t.Errorf("the process that the folder names was killed: %v", err)
			}
		})
	}
}
