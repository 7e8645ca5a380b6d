package kube

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/host"
)

// bare is a pod whose image has a shell and not this program: commands run here.
type bare struct {
	*bed
	e *endpoint

	mu      sync.Mutex
	breaks  []int64 // a stream that carries the program ends after so many bytes
	damage  bool    // the first stream changes its bytes
	streams int     // that carried the program
	path    string  // of the pod's programs; "": this machine's
}

func newBare(t *testing.T) *bare {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "127.0.0.1"}}}}
	b := &bare{bed: newBed(t, Options{Image: "shell:1"}, pod, namespaceFor("n", "n", "privileged", nil))}
	b.program = filepath.Join(t.TempDir(), "none")
	b.Exec = b.exec
	b.e = &endpoint{cl: b.Cluster, namespace: "n", pod: "p", uid: "1", node: &node{name: "node1", realName: "a"}, ctx: t.Context()}
	return b
}

// exec runs the command here, with the faults.
func (b *bare) exec(_, _, _ string, argv []string) agent.Stream {
	return func(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
		var broken error
		if len(argv) > 2 && argv[2] == receive {
			b.mu.Lock()
			b.streams++
			if len(b.breaks) > 0 {
				stdin, broken = io.LimitReader(stdin, b.breaks[0]), errors.New("the stream is cut")
				b.breaks = b.breaks[1:]
			}
			if b.damage {
				b.damage = false
				stdin = damaged{stdin}
			}
			b.mu.Unlock()
		}
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Stdout, cmd.Stderr = stdout, stderr
		if b.path != "" && argv[0] == "sh" {
			cmd.Path, cmd.Env = filepath.Join(b.path, "sh"), []string{"PATH=" + b.path}
		}
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(in, stdin)
			in.Close()
		}()
		if err := cmd.Wait(); err != nil {
			return err
		}
		return broken
	}
}

// damaged changes every byte.
type damaged struct{ io.Reader }

func (d damaged) Read(b []byte) (int, error) {
	n, err := d.Reader.Read(b)
	for i := range b[:n] {
		b[i] ^= 1
	}
	return n, err
}

// only is a folder with these programs alone.
func only(t *testing.T, programs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range programs {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("%v; install it with: apt-get install coreutils gzip", err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var needed = []string{"sh", "cat", "chmod", "head", "mv", "rm", "sleep", "uname", "wc"}

// The program comes whole into a pod that lacks it: where streams break it goes on from
// there, where bytes change it comes anew, and without an unpacker it comes as it is.
func TestCarry(t *testing.T) {
	for name, c := range map[string]struct {
		breaks  []int64
		damage  bool
		path    []string
		streams int
	}{
		"at once":             {streams: 1},
		"broken streams":      {breaks: []int64{1000, 0, 100_000}, streams: 4},
		"damaged":             {damage: true, streams: 2},
		"without an unpacker": {path: needed, streams: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBare(t)
			b.breaks, b.damage = c.breaks, c.damage
			if c.path != nil {
				b.path = only(t, c.path...)
			}
			held, err := b.holdLease(t.Context(), "n", leaseName, "n")
			if err != nil {
				t.Fatal(err)
			}
			defer held.stop()
			if err := b.e.equip(t.Context(), held); err != nil {
				t.Fatal(err)
			}
			if b.streams != c.streams || !b.e.carried {
				t.Errorf("%d streams, want %d", b.streams, c.streams)
			}
			out, err := host.Output(t.Context(), b.e, host.Command{Argv: []string{Program, "agent", "have"}, OffMeasuredCPUs: true})
			if err != nil || !strings.Contains(string(out), "sha256") {
				t.Errorf("%s: %v", out, err)
			}
			if left, _ := filepath.Glob(filepath.Join(b.dir, "part.*")); left != nil {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A pod whose run was killed ends by itself, saying why, whatever of the program had come.
func TestAbandoned(t *testing.T) {
	for name, files := range map[string][]string{
		"before the stream":      nil,
		"in the stream":          {"part.0.0"},
		"after a broken stream":  {"part.0.1"},
		"unpacked, not yet told": {"cnibench"},
		"told, without a name":   {"cnibench", "go"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, file := range files {
				if err := os.WriteFile(filepath.Join(dir, file), nil, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			out, err := exec.CommandContext(t.Context(), "sh", "-c", boot, "sh", "/none", dir, "1", agent.ErrAbandoned.Error()).CombinedOutput()
			if err == nil || !strings.Contains(string(out), agent.ErrAbandoned.Error()) {
				t.Errorf("%s: %v", out, err)
			}
		})
	}
}

// The program goes where programs can be started: past a memory folder without that, into
// /tmp or /var/tmp.
func TestCarryPastNoexec(t *testing.T) {
	b := newBare(t)
	b.path = only(t, "sh", "cat", "head", "mv", "rm", "sleep", "uname", "wc", "gzip")
	chmod, err := exec.LookPath("chmod")
	if err != nil {
		t.Fatal(err)
	}
	// A file of that folder is not executable, as on a file system that was mounted noexec.
	script := "#!/bin/sh\ncase $2 in " + b.dir + "/*) ;; *) exec " + chmod + " \"$@\" ;; esac\n"
	if err := os.WriteFile(filepath.Join(b.path, "chmod"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := b.e.ask(t.Context(), "look", look, "/none", b.dir)
	if found := readSeen(text); err != nil || found.dir != "/tmp" && found.dir != "/var/tmp" {
		t.Errorf("%+v: %v", found, err)
	}
}

// A stream that always breaks without a byte is given up, and the error names the pod.
func TestCarryGivesUp(t *testing.T) {
	b := newBare(t)
	b.breaks = make([]int64, 100)
	held, err := b.holdLease(t.Context(), "n", leaseName, "n")
	if err != nil {
		t.Fatal(err)
	}
	defer held.stop()
	if err := b.e.equip(t.Context(), held); err == nil || !strings.Contains(err.Error(), "pod p") || b.streams != carryTries {
		t.Errorf("%d streams: %v", b.streams, err)
	}
}

// An image that can't take the program is refused with what it lacks.
func TestCarryRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T, b *bare)
		want    string
	}{
		"programs": {func(t *testing.T, b *bare) { b.path = only(t, "sh", "cat", "uname", "rm", "mv", "wc", "sleep") }, "chmod, head"},
		"another architecture": {func(t *testing.T, b *bare) {
			b.path = only(t, "sh", "cat", "chmod", "head", "mv", "rm", "sleep", "wc")
			if err := os.WriteFile(filepath.Join(b.path, "uname"), []byte("#!/bin/sh\necho loongarch64\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, "linux/loongarch64"},
		"no folder lets programs start": {func(t *testing.T, b *bare) {
			b.path = only(t, "sh", "cat", "head", "mv", "rm", "sleep", "uname", "wc")
			if err := os.WriteFile(filepath.Join(b.path, "chmod"), []byte("#!/bin/sh\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, "noexec"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBare(t)
			c.prepare(t, b)
			held, err := b.holdLease(t.Context(), "n", leaseName, "n")
			if err != nil {
				t.Fatal(err)
			}
			defer held.stop()
			if text := unsupported(t, b.e.equip(t.Context(), held)); !strings.Contains(text, c.want) {
				t.Errorf("%q lacks %q", text, c.want)
			}
		})
	}
}

func withImages(names ...string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		for _, name := range names {
			n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: strings.Split(name, " ")})
		}
	}
}

// Images that all nodes have come first, by how sure their shell is; those to pull last;
// pause never.
func TestCandidates(t *testing.T) {
	a := testNode("a", withImages("registry.example/pause:3.9", "quay.example/cilium/cilium:v1.15", "docker.example/library/alpine@sha256:1 docker.example/library/alpine:3", "ghcr.example/agnhost:2"))
	b := testNode("b", withImages("registry.example/pause:3.9", "quay.example/cilium/cilium:v1.15", "docker.example/library/alpine:3"))
	var got []string
	for _, c := range candidates([]corev1.Node{*a, *b}) {
		got = append(got, c.image)
	}
	want := append([]string{"docker.example/library/alpine:3", "quay.example/cilium/cilium:v1.15", "ghcr.example/agnhost:2"}, pulled...)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// An image that is not sure to have a shell and its programs is tried; the next one takes its
// place.
func TestSettleImage(t *testing.T) {
	b := newBare(t)
	if err := b.client.Tracker().Add(testNode("a", withImages("quay.example/calico/node:v3", "ghcr.example/flannel:v0.28", "quay.example/cilium/cilium:v1.15"))); err != nil {
		t.Fatal(err)
	}
	b.Options.Image = ""
	few, all := only(t, "sh", "cat", "rm", "sleep"), b.path
	b.Exec = func(namespace, pod, container string, argv []string) agent.Stream {
		b.path = all
		if image, _ := b.image(); strings.Contains(image, "cilium") {
			b.path = few
		}
		return b.exec(namespace, pod, container, argv)
	}
	b.pod = func(p *corev1.Pod) {
		if strings.Contains(p.Spec.Containers[0].Image, "flannel") {
			p.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "RunContainerError", Message: "exec: \"sh\": executable file not found"},
			}}}}
		}
	}
	if err := b.settleImage(t.Context(), "r", "r", false, &node{name: "node1", realName: "a"}); err != nil {
		t.Fatal(err)
	}
	if image, policy := b.image(); image != "quay.example/calico/node:v3" || policy != "IfNotPresent" {
		t.Errorf("%s, %s", image, policy)
	}
	if pods, err := b.pods(t.Context(), "r"); err != nil || len(pods) > 0 {
		t.Errorf("%d pods are left: %v", len(pods), err)
	}
}

// Nothing is known to have a shell: the error says what was tried and what to do.
func TestSettleImageNone(t *testing.T) {
	b := newBed(t, Options{}, testNode("a"))
	b.Options.Image = ""
	b.pod = func(p *corev1.Pod) {
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}}
	}
	if text := unsupported(t, b.settleImage(t.Context(), "r", "r", false, &node{name: "node1", realName: "a"})); !strings.Contains(text, "agnhost") {
		t.Error(text)
	}
}
