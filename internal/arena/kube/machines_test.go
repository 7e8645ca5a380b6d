package kube

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"
)

// onNode is this program on a node: it says its arguments and ends with the
// code that the first is, or waits for its end and says that it came.
func onNode(args []string) {
	if args[0] == "wait" {
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGTERM)
		if err := os.WriteFile(args[1], nil, 0o644); err != nil {
			os.Exit(1)
		}
		<-ended
		fmt.Println("ended in order")
		os.Exit(1)
	}
	fmt.Println(strings.Join(args[1:], " "))
	fmt.Fprintln(os.Stderr, "noted")
	code, _ := strconv.Atoi(args[0])
	os.Exit(code)
}

// machines opens them on that bed.
func (b *bed) machines(t *testing.T) *Machines {
	t.Helper()
	m, err := b.Cluster.machines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if left := b.left(t); left != nil {
			t.Errorf("left behind: %v", left)
		}
	})
	return m
}

func sick(n *corev1.Node) {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Message: "Kubelet stopped posting node status."}}
}

func cordonedAndTainted(n *corev1.Node) {
	n.Spec.Unschedulable = true
	n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoExecute}}
}

func TestMachinesRun(t *testing.T) {
	for name, c := range map[string]struct {
		named, want []string
		logged      string
	}{
		"all that work": {nil, []string{"a", "b", "c"}, "left out: node d is not ready"},
		"some":          {[]string{"c", "a"}, []string{"a", "c"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			o := Options{Nodes: c.named, Log: func(format string, args ...any) { fmt.Fprintf(&log, format, args...) }}
			b := newBed(t, o, testNode("c"), testNode("a"), testNode("b", cordonedAndTainted), testNode("d", sick))
			m := b.machines(t)
			var got []string
			for _, did := range m.Run(t.Context(), "4", "tune", "a b") {
				got = append(got, did.Node)
				did.Node = ""
				if diff := cmp.Diff(OnMachine{Stdout: "tune a b\n", Stderr: "noted\n", Code: 4}, did); diff != "" {
					t.Error(diff)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(log.String(), c.logged) {
				t.Errorf("logged %q, not %q", log.String(), c.logged)
			}
		})
	}
}

// An end of the context lets the program end in order.
func TestMachinesEnd(t *testing.T) {
	m := newBed(t, Options{}, testNode("a")).machines(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	file := t.TempDir() + "/running"
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(file); err == nil {
				time.Sleep(time.Second) // Run may still have to hear that the program runs
				cancel()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	want := []OnMachine{{Node: "a", Stdout: "ended in order\n", Code: 1}}
	if diff := cmp.Diff(want, m.Run(ctx, "wait", file)); diff != "" {
		t.Error(diff)
	}
	if did := m.Run(ctx, "0"); did[0].Err == nil || did[0].Stdout != "" {
		t.Errorf("begun after the end: %+v", did)
	}
}

func TestMachinesRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		nodes   []runtime.Object
		change  func(b *bed)
		want    string
	}{
		"a named node that does not work": {Options{Nodes: []string{"a", "b"}}, []runtime.Object{testNode("a"), testNode("b", sick)}, nil, "node b is not ready"},
		"none that works":                 {Options{}, []runtime.Object{testNode("a", sick)}, nil, "no node works; a is not ready"},
		"a missing right":                 {Options{}, []runtime.Object{testNode("a")}, func(b *bed) { b.denied = []string{"create pods/exec"} }, "may not: create pods/exec"},
		"an image that does not come": {Options{}, []runtime.Object{testNode("a"), testNode("b")}, func(b *bed) {
			b.pod = func(p *corev1.Pod) {
				p.Status = corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImageNeverPull"}}}}}
			}
		}, "the image example.org/cnibench:1 does not come to node "},
		"no privileged pods": {Options{}, []runtime.Object{testNode("a")}, func(b *bed) {
			b.client.PrependReactor("create", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
				return true, nil, forbidden(`violates PodSecurity "baseline:latest": privileged (container "main" must not set securityContext.privileged=true)`)
			})
		}, "the cluster refuses privileged pods"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, c.options, c.nodes...)
			if c.change != nil {
				c.change(b)
			}
			_, err := b.Cluster.machines(t.Context())
			if text := unsupported(t, err); !strings.Contains(text, c.want) {
				t.Errorf("%s; want %s", text, c.want)
			}
			for _, name := range b.left(t) {
				if name != "cnibench-x" {
					t.Errorf("left behind: %s", name)
				}
			}
		})
	}
	_, err := OpenMachines(t.Context(), Options{Image: "i"})
	if text := unsupported(t, err); !strings.Contains(text, "--privileged") {
		t.Error(text)
	}
	_, err = newBed(t, Options{Nodes: []string{"b"}}, testNode("a")).Cluster.machines(t.Context())
	if err == nil || !strings.Contains(err.Error(), `unknown node "b"`) {
		t.Error(err)
	}
}

// What a crash has left is found by its labels.
func TestMachinesClean(t *testing.T) {
	b := newBed(t, Options{}, testNode("a"))
	if _, err := b.Cluster.machines(t.Context()); err != nil {
		t.Fatal(err)
	}
	pods, err := b.client.CoreV1().Pods(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 1 || !pods.Items[0].Spec.HostPID {
		t.Errorf("%+v, %v", pods.Items, err)
	}
	did, err := leftovers{b.Cluster}.clean(t.Context(), true)
	if err != nil || len(did.Removed) != 1 || b.left(t) != nil {
		t.Errorf("%+v, %v; left %v", did, err, b.left(t))
	}
}
