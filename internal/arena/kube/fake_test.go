package kube

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	ktesting "k8s.io/client-go/testing"

	"github.com/cnibench/cnibench/internal/agent"
)

// bed is a cluster without a cluster: objects in memory, whose pods are
// addresses of this machine's loopback and whose commands run here.
type bed struct {
	*Cluster
	client *fake.Clientset
	denied []string // "VERB RESOURCE" that the user may not
	// pod changes a pod before it is stored as one that runs.
	pod func(p *corev1.Pod)
	// broken streams fail before they reach their command.
	broken atomic.Int32
	count  atomic.Int32
}

// testNode is a node whose address is this machine's.
func testNode(name string, change ...func(n *corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Capacity:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
			NodeInfo: corev1.NodeSystemInfo{
				KernelVersion: "6.1.0", KubeletVersion: "v1.34.4", ContainerRuntimeVersion: "containerd://1.7", OperatingSystem: "linux", BootID: name,
			},
		},
	}
	for _, f := range change {
		f(n)
	}
	return n
}

func newBed(t *testing.T, o Options, objects ...runtime.Object) *bed {
	t.Helper()
	b := &bed{client: fake.NewClientset(objects...)}
	if o.Image == "" {
		o.Image = "example.org/cnibench:1"
	}
	b.Cluster = &Cluster{
		Config: &rest.Config{Host: "https://example.org"}, Client: b.client, Options: o, program: os.Args[0], dir: t.TempDir(), cargo: newCargo(), guard: &guard{},
		Version: &version.Info{GitVersion: "v1.34.4"},
	}
	b.Exec = b.local
	b.client.PrependReactor("create", "pods", func(a ktesting.Action) (bool, runtime.Object, error) {
		create, ok := a.(ktesting.CreateActionImpl)
		if !ok || a.GetSubresource() != "" {
			return false, nil, nil
		}
		p := create.GetObject().(*corev1.Pod)
		n := b.count.Add(1)
		p.UID = types.UID(fmt.Sprint("uid-", n))
		ip := fmt.Sprintf("127.0.1.%d", n)
		if p.Spec.HostNetwork {
			ip = "127.0.0.1"
		}
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}}
		if b.pod != nil {
			b.pod(p)
		}
		if len(create.CreateOptions.DryRun) > 0 {
			return true, p, nil
		}
		return true, p, b.client.Tracker().Create(a.GetResource(), p, a.GetNamespace())
	})
	b.client.PrependReactor("create", "services", func(a ktesting.Action) (bool, runtime.Object, error) {
		s := a.(ktesting.CreateAction).GetObject().(*corev1.Service)
		if s.Spec.ClusterIP == "" {
			s.Spec.ClusterIP = "127.0.0.1"
		}
		for i := range s.Spec.Ports {
			if s.Spec.Type == corev1.ServiceTypeNodePort {
				s.Spec.Ports[i].NodePort = s.Spec.Ports[i].Port // the echo's own, so that it answers
			}
		}
		return true, s, b.client.Tracker().Create(a.GetResource(), s, a.GetNamespace())
	})
	b.client.PrependReactor("delete-collection", "endpointslices", func(a ktesting.Action) (bool, runtime.Object, error) {
		kind := schema.GroupVersionKind{Group: a.GetResource().Group, Version: "v1", Kind: "EndpointSlice"}
		list, err := b.client.Tracker().List(a.GetResource(), kind, a.GetNamespace())
		if err != nil {
			return true, nil, err
		}
		return true, nil, meta.EachListItem(list, func(o runtime.Object) error {
			named, err := meta.Accessor(o)
			if err != nil {
				return err
			}
			return b.client.Tracker().Delete(a.GetResource(), a.GetNamespace(), named.GetName())
		})
	})
	b.client.PrependReactor("create", "selfsubjectaccessreviews", func(a ktesting.Action) (bool, runtime.Object, error) {
		r := a.(ktesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		r.Status.Allowed = true
		for _, d := range b.denied {
			if rightText(*r.Spec.ResourceAttributes) == d {
				r.Status.Allowed = false
			}
		}
		return true, r, nil
	})
	return b
}

// local runs the command on this machine.
func (b *bed) local(_, _, _ string, argv []string) agent.Stream {
	return func(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
		if b.broken.Add(-1) >= 0 {
			return fmt.Errorf("dial tcp 127.0.0.1:6443: connect: connection refused")
		}
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Stdout, cmd.Stderr = stdout, stderr
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
		return cmd.Wait()
	}
}

// arena is the arena on that bed.
func (b *bed) arena(t *testing.T) *Arena {
	t.Helper()
	a, err := newArena(t.Context(), b.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// left are the objects that a run has made and not removed.
func (b *bed) left(t *testing.T) []string {
	t.Helper()
	list, err := b.client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range list.Items {
		if strings.HasPrefix(n.Name, "cnibench") {
			names = append(names, n.Name)
		}
	}
	return names
}
