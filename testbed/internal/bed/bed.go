//go:build linux

// Package bed is a Kubernetes cluster on one machine: a control plane and
// nodes, each with namespaces of its own, all inside the PID, mount, network,
// IPC and UTS namespaces of one supervisor. Whatever happens, the death of the
// supervisor takes every process, link and mount of the cluster with it; only
// the state folder and empty cgroups remain for Down. It may not touch the
// machine outside of these three. Linux only. Next: up.go, supervisor.go,
// node.go.
package bed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The cluster's addresses. They are seen inside only, so they can be fixed.
var (
	controlAddr  = netip.MustParseAddr("10.77.0.1")
	nodePrefix   = netip.MustParsePrefix("10.77.0.0/24")
	podPrefix    = netip.MustParsePrefix("10.244.0.0/16") // a /24 of it is a node's
	servicePfx   = netip.MustParsePrefix("10.96.0.0/16")
	kubernetesIP = netip.MustParseAddr("10.96.0.1") // of Service kubernetes: servicePfx's first
)

const apiPort = 6443

// MaxNodes is what the address plan has room for.
const MaxNodes = 20

// Node is one node of the cluster.
type Node struct {
	Name    string       `json:"name"`
	Addr    netip.Addr   `json:"addr"`    // on the nodes' bridge
	PodCIDR netip.Prefix `json:"podCIDR"` // of its pods, as in its Node object
}

// nodeNumber is the node with that number, from 1.
func nodeNumber(n int) Node {
	pods := podPrefix.Addr().As4()
	pods[2] = byte(n)
	addr := nodePrefix.Addr().As4()
	addr[3] = byte(10 + n)
	return Node{
		Name:    fmt.Sprintf("node-%d", n),
		Addr:    netip.AddrFrom4(addr),
		PodCIDR: netip.PrefixFrom(netip.AddrFrom4(pods), 24),
	}
}

// state is what the state folder's file says about a test bed.
type state struct {
	ID       string  `json:"id"`       // names its cgroups
	Init     int     `json:"init"`     // the supervisor; 0 before it was started
	Start    uint64  `json:"start"`    // when that started, in clock ticks: no other process has both
	Programs string  `json:"programs"` // folder of Kubernetes' programs
	API      string  `json:"api"`      // the API server's URL on this machine
	Nodes    []Node  `json:"nodes"`    //
	Options  Options `json:"options"`  // of Up
}

// Bed is a test bed that is up.
type Bed struct {
	Dir string
	state
}

// ErrDown says that there is no test bed.
var ErrDown = errors.New("no test bed is up; start one with testbed up")

// DefaultDir is the state folder unless another is named. Only root writes to
// its parent. It is not below /run, which may be a small file system in memory
// and which the supervisor hides from the cluster: images need gigabytes.
const DefaultDir = "/var/lib/cnibench-testbed"

// Open finds the test bed of a state folder, else ErrDown.
func Open(dir string) (*Bed, error) {
	dir, err := stateDir(dir)
	if err != nil {
		return nil, err
	}
	s, err := readState(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrDown
	}
	if err != nil {
		return nil, err
	}
	if !s.alive() {
		return nil, ErrDown
	}
	return &Bed{Dir: dir, state: s}, nil
}

func stateDir(dir string) (string, error) {
	if dir == "" {
		dir = DefaultDir
	}
	if strings.ContainsAny(dir, ":,\\") {
		return "", fmt.Errorf("state folder %s: overlay mounts take no folder with a colon, comma or backslash in its name", dir)
	}
	dir, err := filepath.Abs(dir)
	if real := realPath(dir); err == nil && (real == "/run" || strings.HasPrefix(real, "/run/")) {
		return "", fmt.Errorf("state folder %s: below /run a test bed has a file system of its own, which hides the folder; give a folder elsewhere, such as %s", dir, DefaultDir)
	}
	return dir, err
}

// realPath follows the symbolic links of a path, such as /var/run, as far as it exists.
func realPath(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil && path != "/" && path != "." {
		return filepath.Join(realPath(filepath.Dir(path)), filepath.Base(path))
	}
	return real
}

func stateFile(dir string) string { return filepath.Join(dir, "state.json") }

func readState(dir string) (state, error) {
	var s state
	if err := checkOwner(dir); err != nil {
		return s, err
	}
	content, err := os.ReadFile(stateFile(dir))
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(content, &s); err != nil {
		return s, fmt.Errorf("%s: %w", stateFile(dir), err)
	}
	return s, nil
}

// write replaces the file at once, so that no reader sees half of it.
func (s state) write(dir string) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(stateFile(dir)+".new", append(content, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(stateFile(dir)+".new", stateFile(dir))
}

// alive says that the supervisor runs.
func (s state) alive() bool {
	start, err := startTime(s.Init)
	return s.Init != 0 && err == nil && start == s.Start
}

// Nodes lists the nodes in order of their names.
func (b *Bed) Nodes() []Node { return b.state.Nodes }

// Node is the node of that name, which may also be its number.
func (b *Bed) Node(name string) (Node, error) {
	var names []string
	for _, n := range b.state.Nodes {
		if n.Name == name || n.Name == "node-"+name {
			return n, nil
		}
		names = append(names, n.Name)
	}
	return Node{}, fmt.Errorf("no node %q; there are %s", name, strings.Join(names, ", "))
}

// Kubeconfig is the file with which any program on this machine reaches the
// cluster as its administrator.
func (b *Bed) Kubeconfig() string { return filepath.Join(b.Dir, "kubeconfig") }

// Programs is the folder of Kubernetes' programs, kubectl among them.
func (b *Bed) Programs() string { return b.state.Programs }

// ControlPlane is where the API server listens inside; pods and nodes reach it
// without kube-proxy.
func (b *Bed) ControlPlane() netip.AddrPort { return netip.AddrPortFrom(controlAddr, apiPort) }

// PodCIDR holds the addresses of all pods, ServiceCIDR those of Services.
func (b *Bed) PodCIDR() netip.Prefix     { return podPrefix }
func (b *Bed) ServiceCIDR() netip.Prefix { return servicePfx }

// Limit returns how long something may take on this test bed that may take so long on a
// usual machine.
func (b *Bed) Limit(usual time.Duration) time.Duration { return b.Options.limit(usual) }

// API is the API server's URL on this machine.
func (b *Bed) API() string { return b.state.API }

// Logs is the folder of what the programs of the cluster wrote.
func (b *Bed) Logs() string { return filepath.Join(b.Dir, "logs") }

// Kubectl runs kubectl and returns what it printed.
func (b *Bed) Kubectl(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(b.state.Programs, "kubectl"), append([]string{"--kubeconfig", b.Kubeconfig()}, args...)...)
	cmd.Stdin = stdin
	return output(cmd)
}

// NodeCommand is a command that runs in a node: in its namespaces, as root.
func (b *Bed) NodeCommand(ctx context.Context, node string, argv ...string) (*exec.Cmd, error) {
	n, err := b.Node(node)
	if err != nil {
		return nil, err
	}
	status, err := b.Status(ctx)
	if err != nil {
		return nil, err
	}
	pid := status.NodePIDs[n.Name]
	if pid == 0 {
		return nil, fmt.Errorf("node %s is stopped; start it with testbed start-node %s", n.Name, n.Name)
	}
	// The node's number of processes is that of the supervisor's namespace,
	// whose /proc shows it.
	args := append([]string{
		"--target", fmt.Sprint(b.state.Init), "--mount", "--pid", "--",
		"nsenter", "--target", fmt.Sprint(pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--",
	}, argv...)
	cmd := exec.CommandContext(ctx, "nsenter", args...)
	cmd.Env = nodeEnv()
	return cmd, nil
}

// Command is a command in the control plane's network, with everything else
// as it is here and KUBECONFIG set.
func (b *Bed) Command(ctx context.Context, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--target", fmt.Sprint(b.state.Init), "--net", "--"}, argv...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(b.Dir, "kubeconfig-inside"))
	return cmd
}

// Import imports an image's tarball (docker-archive or OCI) on the nodes, on
// all if none is named. Pods that use it want imagePullPolicy Never or
// IfNotPresent.
func (b *Bed) Import(ctx context.Context, tarball string, nodes ...string) error {
	if len(nodes) == 0 {
		for _, n := range b.state.Nodes {
			nodes = append(nodes, n.Name)
		}
	}
	done := make(chan error)
	for _, node := range nodes {
		go func() { done <- b.importOn(ctx, tarball, node) }()
	}
	var errs []error
	for range nodes {
		errs = append(errs, <-done)
	}
	return errors.Join(errs...)
}

func (b *Bed) importOn(ctx context.Context, tarball, node string) error {
	file, err := os.Open(tarball)
	if err != nil {
		return err
	}
	defer file.Close()
	cmd, err := b.NodeCommand(ctx, node, importCommand("-")...)
	if err != nil {
		return err
	}
	cmd.Stdin = file
	if _, err := output(cmd); err != nil {
		return fmt.Errorf("import %s on %s: %w", tarball, node, err)
	}
	return nil
}

func importCommand(tarball string) []string {
	return []string{"ctr", "--namespace", "k8s.io", "images", "import", "--all-platforms", tarball}
}

// output is what the command printed; its errors are part of the error.
func output(cmd *exec.Cmd) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		return stdout.Bytes(), fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path)+" "+strings.Join(cmd.Args[1:], " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.Bytes(), nil
}
