package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
)

// actAs is a kubeconfig like that one for who acts as the user.
func actAs(t *testing.T, kubeconfig, user string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range config.AuthInfos {
		info.Impersonate = user
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// allGroups are the clients of the API groups that only tests need, too.
func allGroups(t *testing.T, cl *Cluster) *kubernetes.Clientset {
	t.Helper()
	set, err := kubernetes.NewForConfig(cl.Config)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// bindRights applies what rbac prints and returns the account's user.
func bindRights(t *testing.T, cl *Cluster) string {
	t.Helper()
	const namespace = "cnibench-test-rights"
	text, err := RBAC(Options{Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	var account corev1.ServiceAccount
	var role rbacv1.ClusterRole
	var binding rbacv1.ClusterRoleBinding
	for i, document := range bytes.Split(text, []byte("---\n")) {
		if err := yaml.UnmarshalStrict(document, []any{&account, &role, &binding}[i]); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		ctx := context.Background()
		_ = allGroups(t, cl).RbacV1().ClusterRoleBindings().Delete(ctx, binding.Name, metav1.DeleteOptions{})
		_ = allGroups(t, cl).RbacV1().ClusterRoles().Delete(ctx, role.Name, metav1.DeleteOptions{})
		if err := cl.removeNamespaces(ctx, namespace); err != nil {
			t.Error(err)
		}
	})
	_, err = cl.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err == nil {
		_, err = cl.Client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &account, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = allGroups(t, cl).RbacV1().ClusterRoles().Create(t.Context(), &role, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = allGroups(t, cl).RbacV1().ClusterRoleBindings().Create(t.Context(), &binding, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return "system:serviceaccount:" + namespace + ":" + account.Name
}

// The rights that rbac prints are enough for all that a contender is put to.
func TestKubeRights(t *testing.T) {
	o := realCluster(t)
	admin, err := Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Kubeconfig = actAs(t, o.Kubeconfig, bindRights(t, admin))
	var a *Arena
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Second) { // until the API server knows them
		a, err = New(t.Context(), o)
		if err == nil && len(a.lacking) > 0 {
			err = fmt.Errorf("left out: %v", a.lacking)
		}
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	if _, err := a.cl.Client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the rights are more than those: %v", err)
	}
	for _, c := range []*contender.Contender{a.ThisCluster(), {ID: HostID}} {
		if err := a.Supports(t.Context(), c); err != nil {
			t.Errorf("%s: %v", c.ID, err)
		}
		n := up(t, a, c)
		for _, path := range []string{arena.PathPod, arena.PathSameNode, arena.PathHost} {
			if _, err := n.Pair(t.Context(), path); err != nil {
				t.Errorf("%s: path %s: %v", c.ID, path, err)
			}
		}
		if c.ID == ThisClusterID {
			if _, _, err := n.Service(t.Context(), []arena.Port{{Protocol: arena.TCP, Number: 5201}}, 3); err != nil {
				t.Errorf("%s: path service: %v", c.ID, err)
			}
			sandboxed(t, n)
		}
		if err := errors.Join(n.(*network).Fault(), n.Down(t.Context())); err != nil {
			t.Errorf("%s: %v", c.ID, err)
		}
	}
}

// Within a namespace that an administrator made, a Role in the namespace and the
// right to list nodes are enough; where its Pod Security level forbids the host
// network, the baseline is left out with that reason.
func TestKubeWithin(t *testing.T) {
	o := realCluster(t)
	admin, err := Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Within = []string{"cnibench-test-near", "cnibench-test-far"}
	text, err := RBAC(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		_ = allGroups(t, admin).RbacV1().ClusterRoleBindings().Delete(ctx, roleName, metav1.DeleteOptions{})
		_ = allGroups(t, admin).RbacV1().ClusterRoles().Delete(ctx, roleName, metav1.DeleteOptions{})
		if err := admin.removeNamespaces(ctx, o.Within...); err != nil {
			t.Error(err)
		}
	})
	for _, document := range bytes.Split(text, []byte("---\n")) {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			t.Fatal(err)
		}
		if object.GetKind() == "Namespace" {
			labels := object.GetLabels()
			labels[labelEnforce] = "baseline"
			object.SetLabels(labels)
		}
		mapping, err := admin.Mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := admin.Dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace()).Create(t.Context(), &object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	o.Kubeconfig = actAs(t, o.Kubeconfig, "system:serviceaccount:"+o.Within[0]+":"+roleName)
	var a *Arena
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Second) { // until the API server knows the rights
		a, err = New(t.Context(), o)
		if err == nil && len(a.lacking) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%v; left out: %v", err, a.lacking)
		}
	}
	if _, err := a.cl.Client.CoreV1().Pods("kube-system").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the rights are more than those: %v", err)
	}
	if err := a.Supports(t.Context(), &contender.Contender{ID: HostID}); arena.AsUnsupported(err) == nil {
		t.Errorf("the host network is allowed: %v", err)
	}
	n := up(t, a, a.ThisCluster())
	if _, _, err := n.Service(t.Context(), []arena.Port{{Protocol: arena.TCP, Number: 5201}}, 3); err != nil {
		t.Error(err)
	}
	s, err := n.Sandbox(t.Context(), []arena.SandboxNamespace{
		{Name: "near", Labels: withinLabels[0], Pods: []arena.SandboxPod{{Name: "p"}}}, {Name: "far", Labels: withinLabels[1], Pods: []arena.SandboxPod{{Name: "p"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(t.Context()), n.Down(t.Context())); err != nil {
		t.Error(err)
	}
	if runs, err := (leftovers{a.cl}).runsWithin(t.Context()); err != nil || runs != nil {
		t.Errorf("left behind: %v, %v", runs, err)
	}
}

// sandboxed makes a policy check's pods, and a policy twice.
func sandboxed(t *testing.T, n arena.Network) {
	t.Helper()
	s, err := n.Sandbox(t.Context(), []arena.SandboxNamespace{{Name: "x", Pods: []arena.SandboxPod{{Name: "p"}}}})
	if err != nil {
		t.Fatal(err)
	}
	const policy = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: none, namespace: x}\nspec: {podSelector: {}}\n"
	for range 2 {
		if err := s.Apply(t.Context(), []byte(policy)); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(s.Delete(t.Context()), s.Close(t.Context())); err != nil {
		t.Error(err)
	}
}
