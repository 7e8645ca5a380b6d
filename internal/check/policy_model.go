package check

import (
	"fmt"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// This file reads NetworkPolicies; policy_eval.go says what they allow.

type (
	networkPolicy = networkingv1.NetworkPolicy
	peer          = networkingv1.NetworkPolicyPeer // the other end of a connection: pods, or addresses
	portRule      = networkingv1.NetworkPolicyPort // ports of the destination
)

// The policy types.
const (
	ingress = networkingv1.PolicyTypeIngress
	egress  = networkingv1.PolicyTypeEgress
)

// rule is a rule of either direction. It admits what matches one of its peers and one of its
// ports; none of either is all.
type rule struct {
	peers []peer
	ports []portRule
}

// rulesOf returns the policy's rules of a direction.
func rulesOf(p *networkPolicy, direction networkingv1.PolicyType) (list []rule) {
	if direction == egress {
		for _, r := range p.Spec.Egress {
			list = append(list, rule{r.To, r.Ports})
		}
		return list
	}
	for _, r := range p.Spec.Ingress {
		list = append(list, rule{r.From, r.Ports})
	}
	return list
}

const documentEnd = "---\n"

// readPolicies reads YAML documents. An unknown key is an error: the evaluator must not judge by
// half of a policy. The API server refuses wrong values.
func readPolicies(manifests string) ([]networkPolicy, error) {
	var list []networkPolicy
	for _, text := range strings.Split(manifests, documentEnd) {
		var p networkPolicy
		if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
			return nil, fmt.Errorf("NetworkPolicy %d: %w", len(list)+1, err)
		}
		list = append(list, p)
	}
	return list, nil
}
