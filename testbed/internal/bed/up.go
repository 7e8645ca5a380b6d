//go:build linux

package bed

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/testbed/internal/build"
	"github.com/cnibench/cnibench/tools/image"
)

// Options of Up.
type Options struct {
	Nodes     int    // how many, 1 to MaxNodes
	KubeProxy string // iptables, nftables or none
	CNI       string // routes (the standard plugins) or none
	Slow      int    // how many times slower than usual this machine is; 0 is 1
	Keep      bool   // leave the logs of a test bed that does not come up
}

// SlowHere returns the Options.Slow of this machine: 10 in a guest of cnibench vm whose
// CPU is emulated, where Go is 10 to 16 times slower, else 1.
func SlowHere() int {
	if os.Getenv("CNIBENCH_VM_EMULATED") == "true" { // docs/microvm.md
		return 10
	}
	return 1
}

// limit returns how long something may take here that may take so long on a usual machine.
func (o Options) limit(usual time.Duration) time.Duration {
	return usual * time.Duration(max(1, o.Slow))
}

// Modes lists what Options.KubeProxy and Options.CNI may be.
func Modes() (kubeProxy, cni []string) {
	return []string{"iptables", "nftables", "none"}, []string{"none", "routes"}
}

// proxyMode is the mode in which kube-proxy is started at any time.
func (o Options) proxyMode() string {
	if o.KubeProxy == "none" {
		return "iptables"
	}
	return o.KubeProxy
}

func (o Options) check() error {
	kubeProxy, cni := Modes()
	switch {
	case o.Nodes < 1 || o.Nodes > MaxNodes:
		return fmt.Errorf("%d nodes: from 1 to %d are possible", o.Nodes, MaxNodes)
	case o.Slow < 0:
		return fmt.Errorf("%d times slower than usual: 1 or more", o.Slow)
	case !slices.Contains(kubeProxy, o.KubeProxy):
		return fmt.Errorf("kube-proxy mode %q: one of %s", o.KubeProxy, strings.Join(kubeProxy, ", "))
	case !slices.Contains(cni, o.CNI):
		return fmt.Errorf("CNI %q: one of %s; others are installed later", o.CNI, strings.Join(cni, ", "))
	}
	return nil
}

// Build builds what Up needs, if that has not been done: the folders of
// Kubernetes' programs and of the pause image's.
func Build(ctx context.Context, logf func(format string, args ...any)) (kubernetes, pause string, err error) {
	source, err := build.SourceDir("kubernetes")
	if err != nil {
		return "", "", err
	}
	kubernetes, err = build.Programs(ctx, build.Source{Dir: source, Version: KubernetesVersion, Packages: []string{"."}, Names: kubernetesNames, Flags: kubernetesFlags}, logf)
	if err != nil {
		return "", "", err
	}
	// The program of the pause image is this module's; it is tiny.
	pause, err = build.Programs(ctx, build.Source{Dir: filepath.Dir(source), Version: "pause", Packages: []string{"./pause"}}, func(string, ...any) {})
	return kubernetes, pause, err
}

// Up builds Kubernetes if that has not been done, and starts a cluster. It
// returns when pods can start, or has taken everything away again.
func Up(ctx context.Context, dir string, options Options, logf func(format string, args ...any)) (b *Bed, err error) {
	if dir, err = stateDir(dir); err != nil {
		return nil, err
	}
	if err := errors.Join(options.check(), checkMachine()); err != nil {
		return nil, err
	}
	programs, pause, err := Build(ctx, logf)
	if err != nil {
		return nil, err
	}
	unlock, err := lockDir(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if s, err := readState(dir); err == nil {
		if s.alive() {
			return nil, fmt.Errorf("a test bed is up already in %s; end it with testbed down, or name another folder with --dir", dir)
		}
		logf("removing what is left of an earlier test bed in %s", dir)
		if err := remove(dir, s); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	} else if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return nil, errors.Join(err, fmt.Errorf("state folder %s is not empty; name another with --dir", dir))
	}
	if err := checkWatchers(options.Nodes); err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	id := make([]byte, 4)
	if _, err := rand.Read(id); err != nil {
		return nil, err
	}
	s := state{ID: hex.EncodeToString(id), Programs: programs, Options: options}
	for n := range options.Nodes {
		s.Nodes = append(s.Nodes, nodeNumber(n+1))
	}
	if err := s.write(dir); err != nil { // first of all: Down goes by it
		return nil, err
	}
	if err := start(ctx, dir, &s, filepath.Join(pause, "pause"), logf); err != nil {
		if options.Keep {
			return nil, fmt.Errorf("%w\nlogs and all else are left in %s; remove them with testbed down", err, dir)
		}
		return nil, errors.Join(err, end(dir, s))
	}
	return &Bed{Dir: dir, state: s}, nil
}

// start fills the state folder and starts the supervisor.
func start(ctx context.Context, dir string, s *state, pause string, logf func(format string, args ...any)) error {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	s.API = "https://" + listener.Addr().String()
	if err := writePKI(dir, s.Nodes, s.API); err != nil {
		return err
	}
	self, err := writeShare(dir, pause)
	if err != nil {
		return err
	}
	if err := makeGroup(groupName(s.ID)); err != nil {
		return err
	}
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	defer socket.Close()
	lifeline, hold, err := os.Pipe()
	if err != nil {
		return err
	}
	defer lifeline.Close()
	defer hold.Close()
	reports, tell, err := os.Pipe()
	if err != nil {
		return err
	}
	defer reports.Close()
	defer tell.Close()
	log, err := os.Create(filepath.Join(dir, "logs", "supervisor.log"))
	if err != nil {
		return err
	}
	defer log.Close()

	cmd := exec.Command(self, "internal-supervisor", dir)
	cmd.Env = nodeEnv()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{socket, lifeline, tell}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		Setsid:     true,
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("the supervisor's namespaces: %w; in a container start that with --privileged", err)
	}
	go func() { _ = cmd.Wait() }() // no zombie of it, should we live on
	s.Init = cmd.Process.Pid
	if s.Start, err = startTime(s.Init); err != nil {
		return errors.Join(err, cmd.Process.Kill())
	}
	if err := errors.Join(s.write(dir), lifeline.Close(), tell.Close()); err != nil {
		return err
	}
	// Interrupted, we stop reading; our caller ends the supervisor.
	stop := context.AfterFunc(ctx, func() { reports.Close() })
	defer stop()
	if err := follow(reports, logf); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w\n%s", err, tail(log.Name()))
	}
	if _, err := hold.Write([]byte{1}); err != nil {
		return fmt.Errorf("the supervisor ended: %w\n%s", err, tail(log.Name()))
	}
	return nil
}

// follow reads the supervisor's reports up to its being ready.
func follow(reports io.Reader, logf func(format string, args ...any)) error {
	lines := bufio.NewScanner(reports)
	for lines.Scan() {
		var r report
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return err
		}
		switch {
		case r.Error != "":
			return errors.New(r.Error)
		case r.Ready:
			return nil
		}
		logf("%s", r.Step)
	}
	return errors.New("the supervisor ended while it started the cluster")
}

// tail is the end of a log, for an error's text.
func tail(name string) string {
	content, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-20):], []byte("\n")))
}

// writeShare makes the folders and what every node sees of them: this
// program, so that a new build of it changes no cluster, and the pause image.
func writeShare(dir, pause string) (self string, err error) {
	share := filepath.Join(dir, "share")
	for _, folder := range []string{"logs", "memory", "nodes", "share", "share/bin"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			return "", err
		}
	}
	content, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return "", err
	}
	self = filepath.Join(share, "testbed")
	if err := os.WriteFile(self, content, 0o755); err != nil {
		return "", err
	}
	tarball, err := os.Create(filepath.Join(share, "pause.tar"))
	if err != nil {
		return "", err
	}
	program := image.NewTree()
	program.AddProgram("/pause", pause)
	err = image.Write(tarball, pauseImage, image.Image{Config: v1.Config{Entrypoint: []string{"/pause"}}, Layers: []*image.Tree{program}})
	return self, errors.Join(err, tarball.Close())
}

// checkMachine says what is missing here, all at once.
func checkMachine() error {
	if os.Geteuid() != 0 {
		return errors.New("the test bed needs root: containers are started by containerd and runc")
	}
	var missing []string
	for _, p := range machinePrograms {
		if _, err := exec.LookPath(p); err != nil {
			missing = append(missing, p)
		}
	}
	if missing != nil {
		return fmt.Errorf("%s: program not found; scripts/setup test-kube installs what is needed", strings.Join(missing, ", "))
	}
	return nil
}
