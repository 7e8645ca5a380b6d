package kube

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/arena"
)

// The script of a newcomer, in this machine's shell: what answers is reached, what does not is
// not, and the last words are read.
func TestNewcomerScript(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b := make([]byte, 16)
				if n, err := c.Read(b); err == nil {
					_, _ = c.Write(b[:n])
				}
			}()
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		port, life string
		reached    bool
	}{{port, "200", true}, {"1", "10", false}} {
		words := filepath.Join(t.TempDir(), "words")
		out, err := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(newcomer, "/dev/termination-log", words), "sh", "127.0.0.1", tt.port, tt.life).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		said, err := os.ReadFile(words)
		if err != nil {
			t.Fatal(err)
		}
		a, err := readAttempts(string(said))
		if err != nil || a.Tried == 0 || (a.Reached > 0) != tt.reached {
			t.Errorf("port %s: %q: %+v, %v", tt.port, said, a, err)
		}
	}
}

func TestReadAttempts(t *testing.T) {
	a, err := readAttempts("53 47 2 88\n")
	if want := (arena.Attempts{Tried: 53, Reached: 47, First: 20 * time.Millisecond, Last: 880 * time.Millisecond}); err != nil || a != want {
		t.Errorf("%+v, %v", a, err)
	}
	for _, text := range []string{"", "the image has neither nc nor bash\n", "1 2 0 0\n", "2 1 5 4\n", "-1 -1 0 0\n"} {
		if _, err := readAttempts(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// A newcomer is beside another pod, with the labels asked for, says what it reached, and is
// removed.
func TestNewcomer(t *testing.T) {
	b := newBed(t, Options{}, testNode("a"), testNode("b"))
	n := up(t, b.arena(t), here)
	var made *corev1.Pod
	b.pod = func(p *corev1.Pod) {
		if c := p.Spec.Containers[0]; c.Command[2] == newcomer {
			made = p.DeepCopy()
			p.Status.Phase = corev1.PodSucceeded
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: "9 3 1 50\n"}}}}
		}
	}
	s, err := n.Sandbox(t.Context(), []arena.SandboxNamespace{{Name: "near", Pods: []arena.SandboxPod{{Name: "server", Node: 1}}}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Newcomer(t.Context(), "near", "server", "new-1", map[string]string{"run": "client"}, netip.MustParseAddrPort("10.1.2.3:8080"), 5*time.Second)
	if err != nil || a != (arena.Attempts{Tried: 9, Reached: 3, First: 10 * time.Millisecond, Last: 500 * time.Millisecond}) {
		t.Errorf("%+v, %v", a, err)
	}
	if made == nil || made.Spec.NodeName != "b" || made.Labels["run"] != "client" || made.Labels[labelSandbox] == "" {
		t.Fatalf("%+v", made)
	}
	if diff := cmp.Diff([]string{"sh", "10.1.2.3", "8080", "500"}, made.Spec.Containers[0].Command[3:]); diff != "" {
		t.Error(diff)
	}
	if _, err := b.client.CoreV1().Pods(made.Namespace).Get(t.Context(), "new-1", metav1.GetOptions{}); err == nil {
		t.Error("it is still there")
	}
	if _, err := s.Newcomer(t.Context(), "near", "nobody", "new-2", nil, netip.AddrPort{}, time.Second); err == nil {
		t.Error("beside nobody")
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The ends of the programs of the product's own pods are counted, also of one that has not
// begun again; those of other DaemonSets and nodes are not.
func TestEngineEnds(t *testing.T) {
	of := func(set, name, on string, c ...corev1.ContainerStatus) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: set}}},
			Spec:       corev1.PodSpec{NodeName: on}, Status: corev1.PodStatus{ContainerStatuses: c},
		}
	}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	b := newBed(t, Options{}, testNode("a"), testNode("b"),
		of("kube-router", "1", "a", corev1.ContainerStatus{Name: "r", RestartCount: 2}), of("kube-router", "2", "b", corev1.ContainerStatus{Name: "r", State: ended}),
		of("kube-router", "3", "a", corev1.ContainerStatus{Name: "r", State: waiting, LastTerminationState: ended, RestartCount: 1}),
		of("kube-router", "4", "b", corev1.ContainerStatus{Name: "r", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}),
		of("kube-router", "6", "elsewhere", corev1.ContainerStatus{Name: "r", RestartCount: 3}), of("node-exporter", "5", "a", corev1.ContainerStatus{Name: "e", RestartCount: 7}))
	n := up(t, b.arena(t), here)
	s, err := n.Sandbox(t.Context(), []arena.SandboxNamespace{{Name: "near", Pods: []arena.SandboxPod{{Name: "server"}}}})
	if err != nil {
		t.Fatal(err)
	}
	ends, err := s.EngineEnds(t.Context())
	want := map[string]int{}
	for i, n := range []int{2, 1, 2, 0} {
		name := string(rune('1' + i))
		want["r in pod kube-system/"+name+" on "+[]string{"a", "b"}[i%2]] = n
	}
	if diff := cmp.Diff(want, ends); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
