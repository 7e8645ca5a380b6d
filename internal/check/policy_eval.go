package check

import (
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/cnibench/cnibench/internal/arena"
)

// This file says which connections NetworkPolicies allow: pure functions of
// the policies and of who there is, after the specification
// (https://kubernetes.io/docs/concepts/services-networking/network-policies/).

// clusterModel is what policies are judged against.
type clusterModel struct {
	namespaces map[string]map[string]string // labels
	pods       map[string]modelPod          // by "namespace/name"
}

type modelPod struct {
	namespace string
	labels    map[string]string
	ports     []arena.NamedPort
}

// flow is a connection that somebody tries.
type flow struct {
	from, to       string     // pods of the model
	source, target netip.Addr // theirs
	protocol       string     // TCP, UDP, SCTP
	port           uint16     // of the destination
}

// leniency is in what a network differs from the letter of the specification:
// where that leaves it free, or errs on the safe side.
type leniency struct {
	// podsApart: no ipBlock selects pods. "These should be cluster-external
	// IPs, since Pod IPs are ephemeral and unpredictable."
	podsApart bool
	// firstPort: of a range of ports only the first counts. "If your network
	// plugin does not support the endPort field …, the policy will be applied
	// only for the single port field."
	firstPort bool
	// namesClash: out of a pod, a port's name that is several numbers at the
	// pods of the cluster is none. The specification takes that of the
	// destination's pod.
	namesClash bool
}

// allows says whether the policies let the flow pass: its source may send it
// and its destination may receive it. Replies need no rule, and nobody can cut
// a pod off from itself.
func (w clusterModel) allows(policies []networkPolicy, f flow, d leniency) bool {
	return f.from == f.to || w.passes(policies, egress, f, d) && w.passes(policies, ingress, f, d)
}

// passes judges one direction. A pod that no policy selects for it is open;
// one that some select is open for what any of them admits, and for nothing
// else.
func (w clusterModel) passes(policies []networkPolicy, direction networkingv1.PolicyType, f flow, d leniency) bool {
	subject, other, address := f.to, f.from, f.source
	if direction == egress {
		subject, other, address = f.from, f.to, f.target
	}
	isolated := false
	for i := range policies {
		p := &policies[i]
		if !affects(p, direction) || w.pods[subject].namespace != p.Namespace || !selects(&p.Spec.PodSelector, w.pods[subject].labels) {
			continue
		}
		isolated = true
		for _, r := range rulesOf(p, direction) {
			if w.admitsPeer(r, p.Namespace, other, address, d) && w.admitsPort(r, direction, f, d) {
				return true
			}
		}
	}
	return !isolated
}

// affects says whether the policy is of that direction. Without types it is
// of ingress, and of egress if it has such rules.
func affects(p *networkPolicy, direction networkingv1.PolicyType) bool {
	if len(p.Spec.PolicyTypes) > 0 {
		return slices.Contains(p.Spec.PolicyTypes, direction)
	}
	return direction == ingress || len(p.Spec.Egress) > 0
}

// admitsPeer says whether one of the rule's peers is the other end.
func (w clusterModel) admitsPeer(r rule, namespace, other string, address netip.Addr, d leniency) bool {
	return len(r.peers) == 0 || slices.ContainsFunc(r.peers, func(p peer) bool {
		if p.IPBlock != nil {
			return !d.podsApart && holds(p.IPBlock, address)
		}
		pod := w.pods[other]
		if p.NamespaceSelector == nil {
			if pod.namespace != namespace {
				return false
			}
		} else if !selects(p.NamespaceSelector, w.namespaces[pod.namespace]) {
			return false
		}
		return p.PodSelector == nil || selects(p.PodSelector, pod.labels)
	})
}

func holds(b *networkingv1.IPBlock, a netip.Addr) bool {
	in := func(cidr string) bool {
		prefix, err := netip.ParsePrefix(cidr)
		return err == nil && prefix.Contains(a)
	}
	return in(b.CIDR) && !slices.ContainsFunc(b.Except, in)
}

// admitsPort says whether one of the rule's ports is the flow's.
func (w clusterModel) admitsPort(r rule, direction networkingv1.PolicyType, f flow, d leniency) bool {
	return len(r.ports) == 0 || slices.ContainsFunc(r.ports, func(p portRule) bool {
		protocol, port := arena.TCP, int32(f.port)
		if p.Protocol != nil {
			protocol = string(*p.Protocol)
		}
		switch {
		case protocol != f.protocol:
			return false
		case p.Port == nil:
			return true
		case p.Port.Type == intstr.String:
			if direction == egress && d.namesClash && w.clashes(p.Port.StrVal, protocol) {
				return false
			}
			return slices.Contains(w.pods[f.to].ports, arena.NamedPort{Name: p.Port.StrVal, Protocol: protocol, Number: f.port})
		case p.EndPort != nil && !d.firstPort:
			return p.Port.IntVal <= port && port <= *p.EndPort
		}
		return p.Port.IntVal == port
	})
}

// clashes says whether the name is another number at another pod.
func (w clusterModel) clashes(name, protocol string) bool {
	numbers := map[uint16]bool{}
	for _, pod := range w.pods {
		for _, p := range pod.ports {
			if p.Name == name && p.Protocol == protocol {
				numbers[p.Number] = true
			}
		}
	}
	return len(numbers) > 1
}

// selects says whether a selector matches the labels.
func selects(s *metav1.LabelSelector, set map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(set))
}
