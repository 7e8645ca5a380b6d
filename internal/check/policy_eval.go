package check

import (
	"net/netip"
	"slices"

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
func (w clusterModel) passes(policies []networkPolicy, direction string, f flow, d leniency) bool {
	subject, other, address := f.to, f.from, f.source
	if direction == egress {
		subject, other, address = f.from, f.to, f.target
	}
	isolated := false
	for _, p := range policies {
		if !p.affects(direction) || !w.selects(p, subject) {
			continue
		}
		isolated = true
		for _, r := range p.rules(direction) {
			if w.admitsPeer(r, p.Metadata.Namespace, other, address, d) && w.admitsPort(r, direction, f, d) {
				return true
			}
		}
	}
	return !isolated
}

// affects says whether the policy is of that direction. Without types it is
// of ingress, and of egress if it has such rules.
func (p *networkPolicy) affects(direction string) bool {
	if len(p.Spec.PolicyTypes) > 0 {
		return slices.Contains(p.Spec.PolicyTypes, direction)
	}
	return direction == ingress || len(p.Spec.Egress) > 0
}

func (p *networkPolicy) rules(direction string) []rule {
	if direction == egress {
		return p.Spec.Egress
	}
	return p.Spec.Ingress
}

// selects says whether the policy is of that pod.
func (w clusterModel) selects(p networkPolicy, pod string) bool {
	return w.pods[pod].namespace == p.Metadata.Namespace && p.Spec.PodSelector.matches(w.pods[pod].labels)
}

// admitsPeer says whether one of the rule's peers is the other end.
func (w clusterModel) admitsPeer(r rule, namespace, other string, address netip.Addr, d leniency) bool {
	peers := slices.Concat(r.From, r.To) // a rule has those of one direction
	return len(peers) == 0 || slices.ContainsFunc(peers, func(p peer) bool {
		if p.IPBlock != nil {
			return !d.podsApart && p.IPBlock.holds(address)
		}
		pod := w.pods[other]
		if p.NamespaceSelector == nil {
			if pod.namespace != namespace {
				return false
			}
		} else if !p.NamespaceSelector.matches(w.namespaces[pod.namespace]) {
			return false
		}
		return p.PodSelector == nil || p.PodSelector.matches(pod.labels)
	})
}

func (b *ipBlock) holds(a netip.Addr) bool {
	return b.CIDR.Contains(a) && !slices.ContainsFunc(b.Except, func(x netip.Prefix) bool { return x.Contains(a) })
}

// admitsPort says whether one of the rule's ports is the flow's.
func (w clusterModel) admitsPort(r rule, direction string, f flow, d leniency) bool {
	return len(r.Ports) == 0 || slices.ContainsFunc(r.Ports, func(p portRule) bool {
		protocol := p.Protocol
		if protocol == "" {
			protocol = arena.TCP
		}
		switch {
		case protocol != f.protocol:
			return false
		case p.Port == nil:
			return true
		case p.Port.name != "":
			if direction == egress && d.namesClash && w.clashes(p.Port.name, protocol) {
				return false
			}
			return slices.Contains(w.pods[f.to].ports, arena.NamedPort{Name: p.Port.name, Protocol: protocol, Number: f.port})
		case p.EndPort != 0 && !d.firstPort:
			return p.Port.number <= f.port && f.port <= p.EndPort
		}
		return p.Port.number == f.port
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

// matches says whether the labels meet every requirement.
func (s *selector) matches(labels map[string]string) bool {
	for key, value := range s.MatchLabels {
		if has, ok := labels[key]; !ok || has != value {
			return false
		}
	}
	for _, r := range s.MatchExpressions {
		value, has := labels[r.Key]
		met := false
		switch r.Operator {
		case "In":
			met = has && slices.Contains(r.Values, value)
		case "NotIn": // a pod without the label, too
			met = !has || !slices.Contains(r.Values, value)
		case "Exists":
			met = has
		case "DoesNotExist":
			met = !has
		}
		if !met {
			return false
		}
	}
	return true
}
