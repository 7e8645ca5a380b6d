package check

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/cnibench/cnibench/internal/arena"
)

// This file reads NetworkPolicies (networking.k8s.io/v1), as far as the
// specification has them; policy_eval.go says what they allow. The types are
// own ones, for client-go and its API stay in arena/kube.

// networkPolicy is one NetworkPolicy.
type networkPolicy struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name      string `yaml:"name"`
		Namespace string `yaml:"namespace"`
	} `yaml:"metadata"`
	Spec struct {
		PodSelector selector `yaml:"podSelector"`
		PolicyTypes []string `yaml:"policyTypes"`
		Ingress     []rule   `yaml:"ingress"`
		Egress      []rule   `yaml:"egress"`
	} `yaml:"spec"`
}

// rule admits what matches one of its peers and one of its ports; none of
// either is all.
type rule struct {
	From  []peer     `yaml:"from"`
	To    []peer     `yaml:"to"`
	Ports []portRule `yaml:"ports"`
}

// peer is the other end of a connection: pods, or addresses.
type peer struct {
	PodSelector       *selector `yaml:"podSelector"`
	NamespaceSelector *selector `yaml:"namespaceSelector"`
	IPBlock           *ipBlock  `yaml:"ipBlock"`
}

type ipBlock struct {
	CIDR   netip.Prefix   `yaml:"cidr"`
	Except []netip.Prefix `yaml:"except"`
}

// selector matches labels; without any requirement it matches all.
type selector struct {
	MatchLabels      map[string]string `yaml:"matchLabels"`
	MatchExpressions []requirement     `yaml:"matchExpressions"`
}

type requirement struct {
	Key      string   `yaml:"key"`
	Operator string   `yaml:"operator"`
	Values   []string `yaml:"values"`
}

// portRule is ports of the destination.
type portRule struct {
	Protocol string   `yaml:"protocol"` // empty: TCP
	Port     *portRef `yaml:"port"`     // nil: all of the protocol
	EndPort  uint16   `yaml:"endPort"`  // 0: none
}

// portRef is a port's number, or the name that the destination's pod gives it.
type portRef struct {
	number uint16
	name   string
}

func (p *portRef) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&p.number) == nil {
		return nil
	}
	return unmarshal(&p.name)
}

// The policy types.
const (
	ingress = "Ingress"
	egress  = "Egress"
)

// readPolicies reads YAML documents. What it does not know is an error: the
// evaluator must not judge by half of a policy.
func readPolicies(r io.Reader) ([]networkPolicy, error) {
	var list []networkPolicy
	d := yaml.NewDecoder(r, yaml.Strict())
	for {
		var p networkPolicy
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err == nil {
			err = p.check()
		}
		if err != nil {
			return nil, fmt.Errorf("NetworkPolicy %d: %w", len(list)+1, err)
		}
		list = append(list, p)
	}
}

func (p *networkPolicy) check() error {
	switch {
	case p.APIVersion != "networking.k8s.io/v1" || p.Kind != "NetworkPolicy":
		return fmt.Errorf("%s %s: want networking.k8s.io/v1 NetworkPolicy", p.APIVersion, p.Kind)
	case p.Metadata.Name == "" || p.Metadata.Namespace == "":
		return errors.New("metadata: want a name and a namespace")
	}
	for _, t := range p.Spec.PolicyTypes {
		if t != ingress && t != egress {
			return fmt.Errorf("policy type %q: want %s or %s", t, ingress, egress)
		}
	}
	for _, r := range p.Spec.Ingress {
		if r.To != nil {
			return errors.New("an ingress rule with to: want from")
		}
	}
	for _, r := range p.Spec.Egress {
		if r.From != nil {
			return errors.New("an egress rule with from: want to")
		}
	}
	if err := p.Spec.PodSelector.check(); err != nil {
		return err
	}
	for _, r := range slices.Concat(p.Spec.Ingress, p.Spec.Egress) {
		if err := r.check(); err != nil {
			return err
		}
	}
	return nil
}

func (r *rule) check() error {
	for _, x := range slices.Concat(r.From, r.To) {
		if err := x.check(); err != nil {
			return err
		}
	}
	for _, x := range r.Ports {
		switch {
		case !slices.Contains([]string{"", arena.TCP, arena.UDP, arena.SCTP}, x.Protocol):
			return fmt.Errorf("protocol %q: want TCP, UDP or SCTP", x.Protocol)
		case x.EndPort != 0 && (x.Port == nil || x.Port.name != ""):
			return errors.New("endPort: want a port that is a number, too")
		case x.EndPort != 0 && x.EndPort < x.Port.number:
			return fmt.Errorf("endPort %d: it is below the port, %d", x.EndPort, x.Port.number)
		}
	}
	return nil
}

func (p *peer) check() error {
	selects := p.PodSelector != nil || p.NamespaceSelector != nil
	switch {
	case p.IPBlock == nil && !selects:
		return errors.New("a peer with neither a selector nor an ipBlock")
	case p.IPBlock != nil && selects:
		return errors.New("a peer with an ipBlock and a selector: want one of them")
	}
	if p.IPBlock != nil {
		for _, x := range p.IPBlock.Except {
			if !p.IPBlock.CIDR.Overlaps(x) || x.Bits() <= p.IPBlock.CIDR.Bits() {
				return fmt.Errorf("except %s: it is not within %s", x, p.IPBlock.CIDR)
			}
		}
	}
	for _, s := range []*selector{p.PodSelector, p.NamespaceSelector} {
		if s == nil {
			continue
		}
		if err := s.check(); err != nil {
			return err
		}
	}
	return nil
}

func (s *selector) check() error {
	for _, r := range s.MatchExpressions {
		switch r.Operator {
		case "In", "NotIn":
			if len(r.Values) == 0 {
				return fmt.Errorf("%s %s: want values", r.Key, r.Operator)
			}
		case "Exists", "DoesNotExist":
			if len(r.Values) > 0 {
				return fmt.Errorf("%s %s: want no values", r.Key, r.Operator)
			}
		default:
			return fmt.Errorf("operator %q: want In, NotIn, Exists or DoesNotExist", r.Operator)
		}
	}
	return nil
}
