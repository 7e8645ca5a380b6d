package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/arena"
)

// This file chooses the pods' image where the user gives none. Any image with a shell
// does: carry.go brings this program.

// shells are the names of images that have a shell and its usual programs, the best first.
// The name is the last part of an image's path.
var shells = []string{"busybox", "alpine", "debian", "ubuntu", "agnhost", "netshoot"}

// perhaps are images of pod networks and of Kubernetes itself that mostly have a shell. A
// pod tries it.
var perhaps = []string{
	"flannel", "cilium", "kube-router", "kube-ovn", "weave-kube", "antrea-agent-ubuntu", "antrea-ubuntu", "calico-node", "node", "kindnetd",
	"amazon-k8s-cni", "azure-cns", "ovn-kube-f", "local-path-provisioner", "kube-proxy", "nginx", "redis", "postgres",
}

// pulled are images that a cluster with a way out can pull.
var pulled = []string{"registry.k8s.io/e2e-test-images/busybox:1.36.1-1", "docker.io/library/busybox:1.36", "registry.k8s.io/e2e-test-images/agnhost:2.47"}

// publishers are where the images come from that privileged pods run without being asked for
// by name: any user of a cluster can bring an image called busybox to its nodes.
var publishers = []string{
	"docker.io/library/", "registry.k8s.io/", "quay.io/cilium/", "quay.io/calico/", "docker.io/calico/", "docker.io/flannel/", "ghcr.io/flannel-io/",
	"docker.io/cloudnativelabs/", "docker.io/kubeovn/", "docker.io/antrea/", "docker.io/kindest/", "docker.io/rancher/",
}

// published reports whether the image comes from one of the publishers.
func published(c choice) bool {
	return slices.ContainsFunc(publishers, func(from string) bool { return strings.HasPrefix(c.image, from) })
}

// choice is an image that pods may run.
type choice struct {
	image string
	here  bool // all nodes have it
	sure  bool // it has a shell
}

// String says what the choice is and why.
func (c choice) String() string {
	if c.here {
		return c.image + ", which the nodes have"
	}
	return c.image
}

// candidates returns the images that pods on these nodes may run, the best first: those
// that all of them have, those that some have, those to pull. Node statuses list each
// node's fifty largest images.
func candidates(nodes []corev1.Node) []choice {
	type kept struct {
		choice
		rank, nodes int
	}
	found := map[string]*kept{}
	for _, n := range nodes {
		seen := map[string]bool{}
		for _, image := range n.Status.Images {
			name := pickTagged(image.Names)
			if name == "" || seen[name] {
				continue
			}
			seen[name] = true
			rank, sure := rankImage(name)
			if rank < 0 {
				continue
			}
			if found[name] == nil {
				found[name] = &kept{choice: choice{image: name, sure: sure}, rank: rank}
			}
			found[name].nodes++
		}
	}
	var all []*kept
	for _, k := range found {
		k.here = k.nodes == len(nodes)
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b *kept) int {
		return cmp.Or(cmp.Compare(b.nodes, a.nodes), cmp.Compare(a.rank, b.rank), cmp.Compare(a.image, b.image))
	})
	var list []choice
	for _, k := range all {
		list = append(list, k.choice)
	}
	for _, name := range pulled {
		if !slices.ContainsFunc(list, func(c choice) bool { return c.image == name }) {
			list = append(list, choice{image: name, sure: true})
		}
	}
	return list
}

// pickTagged returns the name with a tag, else with a digest; "" for none.
func pickTagged(names []string) string {
	name := ""
	for _, n := range names {
		if !strings.Contains(n, "@") {
			return n
		}
		name = n
	}
	return name
}

// rankImage returns how early an image is tried, by the last part of its path; -1: never.
func rankImage(name string) (rank int, sure bool) {
	last, _, _ := strings.Cut(path.Base(strings.SplitN(name, "@", 2)[0]), ":")
	if i := slices.Index(shells, last); i >= 0 {
		return i, true
	}
	if i := slices.Index(perhaps, last); i >= 0 {
		return len(shells) + i, false
	}
	return -1, false
}

// JustAShell reports whether the image is one that has a shell and nothing that steps run.
func JustAShell(name string) bool {
	_, sure := rankImage(name)
	return sure
}

// image returns the image of pods and its pull policy, once settleImage has chosen one.
func (cl *Cluster) image() (name, policy string) {
	cl.cargo.mu.Lock()
	defer cl.cargo.mu.Unlock()
	return cmp.Or(cl.Options.Image, cl.cargo.image), cmp.Or(cl.Options.PullPolicy, cl.cargo.policy)
}

// settleImage chooses the image of pods on the named nodes, if the user gave none and it
// is not yet chosen. Where an image is not known to have a shell, it tries the image with a
// pod on the first node, in the run's namespace. Privileged pods run images of publishers
// only. The error is an *arena.Unsupported if nothing does.
func (cl *Cluster) settleImage(ctx context.Context, run, namespace string, privileged bool, nodes ...*node) error {
	cl.cargo.settle.Lock()
	defer cl.cargo.settle.Unlock()
	if name, _ := cl.image(); name != "" {
		return nil
	}
	all, err := cl.listNodes(ctx)
	if err != nil {
		return err
	}
	used := slices.DeleteFunc(all, func(n corev1.Node) bool {
		return !slices.ContainsFunc(nodes, func(u *node) bool { return u.realName == n.Name })
	})
	var refused []string
	for i, c := range candidates(used) {
		if privileged && !published(c) {
			continue
		}
		policy := ""
		if c.here {
			policy = string(corev1.PullIfNotPresent)
		}
		cl.choose(c.image, policy)
		if c.here && c.sure {
			cl.Options.log("pods run %s; --image gives another", c)
			return nil
		}
		err := cl.tryImage(ctx, run, namespace, fmt.Sprintf("try-image-%d", i+1), nodes[0])
		if err == nil {
			cl.Options.log("pods run %s; --image gives another", c)
			return nil
		}
		cl.choose("", "")
		u := arena.AsUnsupported(err)
		if u == nil || ctx.Err() != nil {
			return err
		}
		cl.Options.log("the image %s does not do: %s", c.image, u.Reason)
		refused = append(refused, c.image)
	}
	return &arena.Unsupported{
		Reason: "no image with a shell for the pods: the nodes have none, and these don't do: " + strings.Join(refused, ", "),
		Remedy: "give one that the nodes have or can pull with --image, such as busybox; `make image` builds one with this program and all that steps run",
	}
}

// choose sets the image and the pull policy of pods.
func (cl *Cluster) choose(image, policy string) {
	cl.cargo.mu.Lock()
	defer cl.cargo.mu.Unlock()
	cl.cargo.image, cl.cargo.policy = image, policy
}

// tryImage makes a pod of the image, looks whether this program can run there, and removes the pod.
func (cl *Cluster) tryImage(ctx context.Context, run, namespace, name string, at *node) (err error) {
	plan := podPlan{namespace: namespace, name: name, node: at, hostNetwork: true, tolerateAll: true}
	defer func() {
		err = errors.Join(err, cl.removePod(context.WithoutCancel(ctx), namespace, name))
	}()
	err = cl.makePod(ctx, run, plan)
	if refusedByPolicy(err) {
		plan.hostNetwork = false
		err = cl.makePod(ctx, run, plan)
	}
	if err != nil {
		return err
	}
	made, err := cl.awaitRunning(ctx, namespace, []*node{at}, nil, nil, name)
	if err != nil {
		return err
	}
	e := &endpoint{cl: cl, namespace: namespace, pod: name, uid: string(made[name].UID), name: name, node: at, ctx: ctx}
	_, _, err = e.inspect(ctx)
	return err
}

// removePod deletes a pod without a grace period, if it exists.
func (cl *Cluster) removePod(ctx context.Context, namespace, name string) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	var noGrace int64
	return cl.do(ctx, "delete pod "+namespace+"/"+name, func(ctx context.Context) error {
		return ignoreNotFound(cl.Client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &noGrace}))
	})
}
