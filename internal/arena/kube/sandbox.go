package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/arena"
)

// sandbox holds the namespaces and pods of a policy check.
type sandbox struct {
	id        string // in the label of its objects
	net       *network
	realNames map[string]string // of the namespaces in the cluster, by the check's names
	pods      map[[2]string]*endpoint
	applied   []networkingv1.NetworkPolicy // with the cluster's names
	engineIn  map[string]bool              // the namespaces of the pod network's own pods; nil: not yet known
}

// Sandbox implements arena.Network.
func (n *network) Sandbox(ctx context.Context, list []arena.SandboxNamespace) (_ arena.Sandbox, err error) {
	if missing := n.arena.lacking["check policy"]; len(missing) > 0 {
		return nil, errRights(missing)
	}
	s := &sandbox{id: n.cl.runName(), net: n, realNames: map[string]string{}, pods: map[[2]string]*endpoint{}}
	within := len(n.cl.Options.Within) > 0
	if within {
		if s.realNames, err = n.cl.policyNamespaces(ctx, list); err != nil {
			return nil, err
		}
	}
	var plans []podPlan
	for _, ns := range list {
		if !within {
			s.realNames[ns.Name] = s.id + "-" + ns.Name
		}
		name := s.realNames[ns.Name]
		for _, p := range ns.Pods {
			if p.Node < 0 || p.Node >= len(n.arena.list) {
				return nil, fmt.Errorf("pod %s/%s: there is no node %d", ns.Name, p.Name, p.Node)
			}
			labels := maps.Clone(p.Labels)
			if labels == nil {
				labels = map[string]string{}
			}
			labels[labelSandbox] = s.id
			plans = append(plans, podPlan{namespace: name, name: p.Name, node: n.arena.list[p.Node], labels: labels, ports: p.Ports})
		}
	}
	n.mu.Lock()
	n.sandboxes = append(n.sandboxes, s)
	n.mu.Unlock()
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close(context.WithoutCancel(ctx)))
		}
	}()
	for _, ns := range list {
		if within {
			break
		}
		if err := n.cl.makeNamespace(ctx, namespaceFor(n.run, s.realNames[ns.Name], "baseline", ns.Labels)); err != nil {
			return nil, err
		}
	}
	if err := n.makePods(ctx, plans); err != nil {
		return nil, err
	}
	for _, ns := range list {
		var names []string
		for _, p := range ns.Pods {
			names = append(names, p.Name)
		}
		made, err := n.cl.await(ctx, n.lease, s.realNames[ns.Name], n.arena.list, names...)
		if err != nil {
			return nil, err
		}
		for _, p := range ns.Pods {
			s.pods[[2]string{ns.Name, p.Name}] = n.endpoint(ns.Name+"-"+p.Name, n.arena.list[p.Node], made[p.Name])
		}
	}
	return s, nil
}

// Pod implements arena.Sandbox.
func (s *sandbox) Pod(namespace, name string) (arena.Endpoint, error) {
	if e := s.pods[[2]string{namespace, name}]; e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("the sandbox has no pod %s/%s", namespace, name)
}

// Addrs implements arena.Sandbox.
func (s *sandbox) Addrs(namespace, name string) []netip.Addr {
	if e := s.pods[[2]string{namespace, name}]; e != nil {
		return slices.Clone(e.addrs)
	}
	return nil
}

// Apply implements arena.Sandbox.
func (s *sandbox) Apply(ctx context.Context, manifests []byte) error {
	policies, err := s.read(bytes.NewReader(manifests))
	if err != nil {
		return err
	}
	for i := range policies {
		p := &policies[i]
		api := s.net.cl.Client.NetworkingV1().NetworkPolicies(p.Namespace)
		err := s.net.cl.do(ctx, "apply NetworkPolicy "+p.Name, func(ctx context.Context) error {
			_, err := api.Create(ctx, p, metav1.CreateOptions{})
			if !apierrors.IsAlreadyExists(err) {
				return err
			}
			old, err := api.Get(ctx, p.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			old.Spec, old.Labels = p.Spec, p.Labels
			_, err = api.Update(ctx, old, metav1.UpdateOptions{})
			return err
		})
		if err != nil {
			return err
		}
		same := func(o networkingv1.NetworkPolicy) bool { return o.Namespace == p.Namespace && o.Name == p.Name }
		if !slices.ContainsFunc(s.applied, same) {
			s.applied = append(s.applied, *p)
		}
	}
	return nil
}

// read reads NetworkPolicies and replaces the check's names of namespaces by the
// cluster's.
func (s *sandbox) read(r io.Reader) ([]networkingv1.NetworkPolicy, error) {
	var list []networkingv1.NetworkPolicy
	documents := yaml.NewDocumentDecoder(io.NopCloser(r))
	defer documents.Close()
	buffer := make([]byte, 1<<20)
	for {
		size, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("NetworkPolicies: %w", err)
		}
		document := bytes.TrimSpace(buffer[:size])
		if len(bytes.TrimSpace(bytes.TrimPrefix(document, []byte("---")))) == 0 {
			continue
		}
		var p networkingv1.NetworkPolicy
		if err := sigsyaml.UnmarshalStrict(document, &p); err != nil {
			return nil, fmt.Errorf("NetworkPolicies: %w", err)
		}
		if p.Kind != "NetworkPolicy" || p.APIVersion != networkingv1.SchemeGroupVersion.String() || p.Name == "" {
			return nil, fmt.Errorf("NetworkPolicies: %s %s %q is no NetworkPolicy", p.APIVersion, p.Kind, p.Name)
		}
		realName, known := s.realNames[p.Namespace]
		if !known {
			return nil, fmt.Errorf("NetworkPolicy %s: the sandbox has no namespace %q", p.Name, p.Namespace)
		}
		p.Namespace = realName
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		maps.Copy(p.Labels, runLabels(s.net.run))
		p.Labels[labelSandbox] = s.id
		for i := range p.Spec.Ingress {
			s.rename(p.Spec.Ingress[i].From)
		}
		for i := range p.Spec.Egress {
			s.rename(p.Spec.Egress[i].To)
		}
		list = append(list, p)
	}
}

// rename replaces the check's names in selectors that select a namespace by the label with
// its name.
func (s *sandbox) rename(peers []networkingv1.NetworkPolicyPeer) {
	for _, peer := range peers {
		if peer.NamespaceSelector == nil {
			continue
		}
		labels := peer.NamespaceSelector.MatchLabels
		if realName, known := s.realNames[labels[corev1.LabelMetadataName]]; known {
			labels[corev1.LabelMetadataName] = realName
		}
		for _, x := range peer.NamespaceSelector.MatchExpressions {
			for i, value := range x.Values {
				if realName, known := s.realNames[value]; known && x.Key == corev1.LabelMetadataName {
					x.Values[i] = realName
				}
			}
		}
	}
}

// Delete implements arena.Sandbox.
func (s *sandbox) Delete(ctx context.Context) error {
	for _, p := range s.applied {
		err := s.net.cl.do(ctx, "remove NetworkPolicy "+p.Name, func(ctx context.Context) error {
			return ignoreNotFound(s.net.cl.Client.NetworkingV1().NetworkPolicies(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{}))
		})
		if err != nil {
			return err
		}
	}
	s.applied = nil
	return nil
}

// names returns the cluster's names of the namespaces.
func (s *sandbox) names() []string {
	return slices.Collect(maps.Values(s.realNames))
}

// Close implements arena.Sandbox. After an error, Down tries again.
func (s *sandbox) Close(ctx context.Context) error {
	n := s.net
	remove := func() error { return n.cl.removeNamespaces(ctx, s.names()...) }
	if len(n.cl.Options.Within) > 0 {
		remove = func() error { return n.cl.clear(ctx, labelSandbox+"="+s.id) }
	}
	if err := remove(); err != nil {
		return err
	}
	n.mu.Lock()
	n.sandboxes = slices.DeleteFunc(n.sandboxes, func(x *sandbox) bool { return x == s })
	n.mu.Unlock()
	return nil
}
