//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/testbed/internal/bed"
	"github.com/cnibench/cnibench/tools/image"
)

// TestMain is also the program of the tests' pods, which need an image of one
// file: a server, or a client of it; and what looks at the wire.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "get" {
		if err := get(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 2 && os.Args[1] == "sniff" {
		if err := sniff(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 2 && os.Args[1] == "wireguard" {
		if err := wireGuard(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		name, err := os.Hostname()
		if err == nil {
			err = http.ListenAndServe(":8080", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) }))
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func get(url string) error {
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(os.Stdout, response.Body)
	return err
}

// program is the testbed that is tested, beside the state folder of the test.
type program struct {
	t      *testing.T
	path   string
	dir    string
	groups map[string]bool // names of the cgroups of its test beds so far
}

// newProgram skips the test unless make test-kube runs it.
func newProgram(t *testing.T) program {
	t.Helper()
	path := os.Getenv("CNIBENCH_TESTBED")
	if path == "" {
		t.Skip("starts real clusters: make test-kube runs it, or CNIBENCH_TESTBED=/path/of/bin/testbed go test . in testbed/")
	}
	p := program{t, path, filepath.Join(t.TempDir(), "bed"), map[string]bool{}}
	before := leftovers(t)
	t.Cleanup(func() {
		p.noteGroup()
		p.run("down")
		for name := range p.groups {
			for _, hierarchies := range []string{"", "*/"} { // of version 2, of version 1
				if left, err := filepath.Glob("/sys/fs/cgroup/" + hierarchies + name); err != nil || left != nil {
					t.Errorf("cgroups are left: %v %v", left, err)
				}
			}
		}
		if diff := missing(before, leftovers(t)); diff != "" {
			t.Errorf("left behind:\n%s", diff)
		}
		if diff := missing(leftovers(t), before); diff != "" {
			t.Errorf("taken away:\n%s", diff)
		}
	})
	return p
}

func (p program) command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.path, append([]string{"--dir", p.dir}, args...)...)
	cmd.Dir = "." // within the checkout
	return cmd
}

// try runs the program and returns what it printed.
func (p program) try(args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := p.command(args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("testbed %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return stdout.String(), nil
}

// run is try that must succeed.
func (p program) run(args ...string) string {
	p.t.Helper()
	started := time.Now()
	out, err := p.try(args...)
	if err != nil {
		p.t.Fatal(err)
	}
	line, _, _ := strings.Cut(strings.Join(args, " "), "\n")
	p.t.Logf("%3.0f s: testbed %s", time.Since(started).Seconds(), line)
	return out
}

// patience is long on any machine that is not emulated.
func patience() time.Duration { return 2 * time.Minute * time.Duration(bed.SlowHere()) }

// eventually tries for as long as patience lasts.
func (p program) eventually(what string, try func() error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience())
	defer cancel()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			p.t.Fatalf("%s: %v", what, err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// state is what the state folder says of the test bed, if there is one.
func (p program) state() (state struct {
	ID   string
	Init int
}) {
	p.t.Helper()
	content, err := os.ReadFile(filepath.Join(p.dir, "state.json"))
	if err == nil {
		err = json.Unmarshal(content, &state)
	}
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	return state
}

func (p program) noteGroup() {
	if id := p.state().ID; id != "" {
		p.groups["cnibench-testbed-"+id] = true
	}
}

// leftovers lists what a test bed could leave on the machine, or change.
func leftovers(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"/sys/class/net/*", "/run/netns/*"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, paths...)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		all = append(all, "mount "+fields[4])
	}
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward", "net/netfilter/nf_conntrack_max"} {
		content, err := os.ReadFile("/proc/sys/" + name)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		all = append(all, "sysctl "+name+" "+strings.TrimSpace(string(content)))
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range processes {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // gone meanwhile
		}
		line := strings.ReplaceAll(string(content), "\x00", " ")
		if strings.Contains(line, t.Name()) { // the state folder's path has the test's name
			all = append(all, "process "+line)
		}
	}
	sort.Strings(all)
	return all
}

// missing lists what b has beyond a.
func missing(a, b []string) string {
	have := map[string]int{}
	for _, s := range a {
		have[s]++
	}
	var diff []string
	for _, s := range b {
		if have[s]--; have[s] < 0 {
			diff = append(diff, s)
		}
	}
	return strings.Join(diff, "\n")
}

const testImage = "localhost/testbed-test:1"

// podYAML is a server on a node.
func podYAML(name, node string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: {app: %[1]s}}
spec:
  nodeName: %[2]s
  terminationGracePeriodSeconds: 1 # with 0 the pod is gone before its network is
  containers: [{name: x, image: %[3]s, imagePullPolicy: Never, args: [serve], ports: [{containerPort: 8080}]}]
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: {selector: {app: %[1]s}, ports: [{port: 80, targetPort: 8080}]}
---
`, name, node, testImage)
}

// importTestImage imports this test's program as an image.
func (p program) importTestImage() {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	tarball, err := os.Create(filepath.Join(p.t.TempDir(), "test.tar"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer tarball.Close()
	program := image.NewTree()
	program.AddProgram("/test", self)
	img := image.Image{Config: v1.Config{Entrypoint: []string{"/test"}}, Layers: []*image.Tree{program}}
	if err := image.Write(tarball, testImage, img); err != nil {
		p.t.Fatal(err)
	}
	p.run("image", "import", tarball.Name())
}

func (p program) apply(manifests string) {
	p.t.Helper()
	cmd := p.command("kubectl", "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(manifests)
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("apply: %v\n%s", err, out)
	}
}

// A cluster with the standard plugins: pods reach each other across nodes and
// through a Service, a node and the API server go and come back.
func TestCluster(t *testing.T) {
	p := newProgram(t)
	p.run("up", "--nodes", "2", "--cni", "routes", "--kube-proxy", "nftables")
	if _, err := p.try("up"); err == nil || !strings.Contains(err.Error(), "up already") {
		t.Errorf("a second up: %v", err)
	}
	p.importTestImage()
	p.apply(podYAML("one", "node-1") + podYAML("two", "node-2"))
	p.run("kubectl", "wait", "--for=condition=Ready", "--timeout="+patience().String(), "pod/one", "pod/two")

	ip := strings.TrimSpace(p.run("kubectl", "get", "pod", "two", "-o", "jsonpath={.status.podIP}"))
	if !strings.HasPrefix(ip, "10.244.2.") {
		t.Errorf("pod two has address %s", ip)
	}
	service := p.run("kubectl", "get", "service", "two", "-o", "jsonpath={.spec.clusterIP}")
	for what, url := range map[string]string{"pod": "http://" + ip + ":8080", "Service": "http://" + service} {
		p.eventually(what, func() error {
			out, err := p.try("kubectl", "exec", "one", "--", "/test", "get", url)
			if err == nil && out != "two" {
				err = fmt.Errorf("answer %q", out)
			}
			return err
		})
	}
	if out := p.run("node-exec", "1", "--", "hostname"); out != "node-1\n" {
		t.Errorf("host name of node 1: %q", out)
	}

	p.run("stop-node", "node-2")
	if _, err := p.try("node-exec", "node-2", "--", "true"); err == nil || !strings.Contains(err.Error(), "start-node") {
		t.Errorf("a command in a stopped node: %v", err)
	}
	ready := func(want string) func() error {
		return func() error {
			out, err := p.try("kubectl", "get", "node", "node-2", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
			if err == nil && out != want {
				err = fmt.Errorf("Ready is %s, not %s", out, want)
			}
			return err
		}
	}
	p.eventually("node-2 stopped", ready("Unknown"))
	p.run("start-node", "node-2")
	p.eventually("node-2 started", ready("True"))
	p.eventually("pod two after its node came back", func() error {
		_, err := p.try("kubectl", "exec", "two", "--", "/test", "get", "http://"+service)
		return err
	})

	for _, how := range [][]string{{"pause-api", "10s"}, {"pause-api", "10s", "--kill"}} {
		p.run(how...)
		if _, err := p.try("kubectl", "get", "nodes", "--request-timeout=1s"); err == nil {
			t.Errorf("%q: the API server answers", how)
		}
		p.eventually(strings.Join(how, " "), func() error {
			_, err := p.try("kubectl", "get", "nodes", "--request-timeout=5s")
			return err
		})
	}

	p.run("kubectl", "delete", "pod,service", "one", "two")
	p.run("uninstall", "routes")
	p.eventually("without routes", ready("False"))
}

// Whatever is killed, down removes all and up works again.
func TestKilled(t *testing.T) {
	p := newProgram(t)
	p.run("up", "--nodes", "1", "--kube-proxy", "none")
	p.noteGroup()
	if err := unix.Kill(p.state().Init, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.eventually("the supervisor's end", func() error {
		if _, err := bed.Open(p.dir); !errors.Is(err, bed.ErrDown) {
			return fmt.Errorf("Open: %v", err)
		}
		return nil
	})
	p.run("up", "--nodes", "1", "--cni", "routes")
	p.noteGroup()
	p.run("down")
	if _, err := os.Stat(p.dir); !os.IsNotExist(err) {
		t.Errorf("the state folder: %v", err)
	}

	// An up that is killed takes its cluster with it, at any time.
	for _, after := range []string{"share/pause.tar", "logs/etcd.log", "logs/node-1/kubelet.log"} {
		t.Run(filepath.Base(after), func(t *testing.T) {
			p := newProgram(t)
			up := p.command("up", "--nodes", "1", "--cni", "routes")
			if err := up.Start(); err != nil {
				t.Fatal(err)
			}
			p.eventually(after, func() error {
				_, err := os.Stat(filepath.Join(p.dir, after))
				return err
			})
			if err := up.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = up.Wait() // it was killed
			p.eventually("the end of what an up started that was killed", func() error {
				if _, err := bed.Open(p.dir); !errors.Is(err, bed.ErrDown) {
					return fmt.Errorf("Open: %v", err)
				}
				return nil
			})
		})
	}
}

// A folder that holds something else is no place for a test bed.
func TestForeignFolder(t *testing.T) {
	p := newProgram(t)
	file := filepath.Join(p.dir, "mine")
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"up", "down"} {
		if _, err := p.try(verb); err == nil || !strings.Contains(err.Error(), p.dir) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if _, err := p.try("status"); err == nil || !strings.Contains(err.Error(), "testbed up") {
		t.Errorf("status: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Error(err)
	}
}
