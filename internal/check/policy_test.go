package check

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
)

// policed returns what the check finds of a simulated cluster, all cases or one, in
// the cluster's own time.
func policed(t *testing.T, s *simulated, one *OneCase) (r Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		check := policy{usualPace, one, func(_ context.Context, _ *Subject, e arena.Endpoint) (asker, error) { return e.(simPod), nil }}
		var err error
		if r, err = check.Run(t.Context(), &Subject{Contender: &contender.Contender{ID: "x"}, Network: s}); err != nil {
			t.Fatal(err)
		}
	})
	knownFacts(t, r.Cases)
	if !s.closed {
		t.Error("the sandbox is not closed")
	}
	return r
}

// knownFacts holds what was found beside the schema and the page of checks.
func knownFacts(t *testing.T, cases []Case) {
	t.Helper()
	var schema struct {
		Defs struct {
			Case struct {
				Properties struct{ Found struct{ Enum []string } }
			}
		} `json:"$defs"`
	}
	b, err := os.ReadFile("../../docs/schema/check-1.schema.json")
	if err == nil {
		err = json.Unmarshal(b, &schema)
	}
	page, pageErr := os.ReadFile("../../docs/checks.md")
	if err = errors.Join(err, pageErr); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if c.Found != "" && !(slices.Contains(schema.Defs.Case.Properties.Found.Enum, c.Found) && strings.Contains(string(page), "`"+c.Found+"`")) {
			t.Errorf("%s: %q is unknown to the schema or to docs/checks.md", c.Name, c.Found)
		}
	}
}

// foundIn returns the cases with that verdict, and what was found of them.
func foundIn(r Result, v Conformance) map[string]string {
	list := map[string]string{}
	for _, c := range r.Cases {
		if c.Verdict == v {
			list[c.Name] = c.Found
		}
	}
	return list
}

// changed calls f for a copy of every rule, which it may change.
func changed(list []networkPolicy, f func(p *networkPolicy, r *rule)) []networkPolicy {
	list = slices.Clone(list)
	for i := range list {
		p := list[i].DeepCopy()
		list[i] = *p
		in, out := rulesOf(p, ingress), rulesOf(p, egress)
		for k := range in {
			f(&list[i], &in[k])
		}
		for k := range out {
			f(&list[i], &out[k])
		}
		setRules(&list[i], in, out)
	}
	return list
}

// setRules is the reverse of rulesOf.
func setRules(p *networkPolicy, in, out []rule) {
	p.Spec.Ingress, p.Spec.Egress = nil, nil
	for _, r := range in {
		p.Spec.Ingress = append(p.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{From: r.peers, Ports: r.ports})
	}
	for _, r := range out {
		p.Spec.Egress = append(p.Spec.Egress, networkingv1.NetworkPolicyEgressRule{To: r.peers, Ports: r.ports})
	}
}

// peersOf calls f for every peer of a rule, to change it.
func peersOf(r *rule, f func(p *peer)) {
	for i := range r.peers {
		f(&r.peers[i])
	}
}

func numbered(port int) *intstr.IntOrString { return new(intstr.FromInt(port)) }

type engine = func(w clusterModel, list []networkPolicy, f flow) bool

// spec returns the evaluator on changed rules.
func spec(change func(p *networkPolicy, r *rule)) engine {
	return func(w clusterModel, list []networkPolicy, f flow) bool {
		return w.allows(changed(list, change), f, leniency{})
	}
}

// unless returns the evaluator, but for connections that are never forbidden.
func unless(open func(f flow) bool) engine {
	return func(w clusterModel, list []networkPolicy, f flow) bool {
		return open(f) || w.allows(list, f, leniency{})
	}
}

// without returns the evaluator on the policies that have no such rule.
func without(rules func(r rule) bool) engine {
	return func(w clusterModel, list []networkPolicy, f flow) bool {
		return w.allows(slices.DeleteFunc(slices.Clone(list), func(p networkPolicy) bool {
			return slices.ContainsFunc(slices.Concat(rulesOf(&p, ingress), rulesOf(&p, egress)), rules)
		}), f, leniency{})
	}
}

func TestPolicyEnforced(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*simulated{
		"by dropping":    {},
		"by refusing":    {denied: agent.Refused},
		"after a while":  {lag: 30 * time.Millisecond},
		"on a lossy net": {passes: func(f flow, asked int) bool { return asked%7 != 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := policed(t, s, nil)
			if bad := foundIn(r, Fail); len(bad) > 0 || len(foundIn(r, Skip)) > 0 {
				t.Fatalf("failed %v, skipped %v\n%s", bad, foundIn(r, Skip), r.MainCase().Text)
			}
			if want := len(trials()) + 3 + 3; len(r.Cases) != want { // the study's trial has four cases
				t.Errorf("%d cases, want %d", len(r.Cases), want)
			}
			effect := caseOf(t, r, "effect")
			lag, beat := int(s.lag.Milliseconds()), int(usualPace.probeInterval.Milliseconds())
			wrong := func(name string) bool { ms := effect.Values[name]; return ms < lag || ms > lag+7*beat } // one in seven is lost
			if effect.Values["times"] != usualPace.times || wrong("effect_ms") || wrong("back_ms") {
				t.Errorf("%+v", effect)
			}
			deny := caseOf(t, r, "ingress-default-deny")
			if deny.Found != enforced || deny.Values["forbidden"] != 20 || deny.Values["allowed"] != 10 || deny.Values["settled_ms"] < lag {
				t.Errorf("%+v", deny)
			}
			if got := r.Environment["check.policy.x.ingress-from-pods"]; !strings.HasPrefix(got, "pass: ") {
				t.Errorf("environment %q", got)
			}
			if got, _, _ := strings.Cut(r.Environment["check.policy.x.effect"], ":"); strings.Trim(got, "0123456789") != "" {
				t.Errorf("environment %q, want a number", got)
			}
		})
	}
}

// A fault of each kind is found, by the cases that are about it.
func TestPolicyFaults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cluster *simulated
		found   []string // these fail, among others
		only    bool     // and no others
	}{
		"no engine": {cluster: &simulated{allows: func(clusterModel, []networkPolicy, flow) bool { return true }},
			found: []string{"ingress-forbidden: open", "egress-forbidden: open", "ingress-default-deny: open", "egress-default-deny: open", "ingress-sctp: open", "egress-ipv6: open"}},
		"ingress only": {cluster: &simulated{allows: func(w clusterModel, l []networkPolicy, f flow) bool { return w.passes(l, ingress, f, leniency{}) }},
			found: []string{"egress-forbidden: open", "egress-default-deny: open", "egress-port: open", "ingress-and-egress: leaks"}},
		"egress only": {cluster: &simulated{allows: func(w clusterModel, l []networkPolicy, f flow) bool { return w.passes(l, egress, f, leniency{}) }},
			found: []string{"ingress-forbidden: open", "ingress-default-deny: open", "ingress-and-egress: leaks"}},
		"any policy is a wall": {cluster: &simulated{allows: func(_ clusterModel, l []networkPolicy, _ flow) bool { return len(l) == 0 }},
			found: []string{"ingress-allowed: cuts", "egress-allowed: cuts", "ingress-from-pods: cuts", "egress-to-pods: cuts"}},
		"all pods are selected": {cluster: &simulated{allows: func(w clusterModel, l []networkPolicy, f flow) bool {
			l = changed(l, func(*networkPolicy, *rule) {})
			for i := range l {
				l[i].Spec.PodSelector = metav1.LabelSelector{}
			}
			return w.allows(l, f, leniency{})
		}}, found: []string{"ingress-from-pods: cuts", "egress-to-pods: cuts"}},
		"no default deny": {cluster: &simulated{allows: func(w clusterModel, l []networkPolicy, f flow) bool {
			return w.allows(slices.DeleteFunc(slices.Clone(l), func(p networkPolicy) bool { return len(p.Spec.Ingress)+len(p.Spec.Egress) == 0 }), f, leniency{})
		}}, found: []string{"ingress-default-deny: open", "egress-default-deny: open", "ingress-without-types: open"}},
		"the last policy alone": {cluster: &simulated{allows: func(w clusterModel, l []networkPolicy, f flow) bool {
			return w.allows(l[max(0, len(l)-1):], f, leniency{})
		}},
			found: []string{"ingress-additive: cuts", "egress-additive: cuts", "ingress-and-egress: leaks"}},
		"a deny that wins": {cluster: &simulated{allows: func(w clusterModel, l []networkPolicy, f flow) bool {
			for i := range l {
				if !w.allows(l[i:i+1], f, leniency{}) {
					return false
				}
			}
			return true
		}}, found: []string{"ingress-allow-all: cuts", "egress-allow-all: cuts", "ingress-additive: cuts"}},
		"namespace or pods": {cluster: &simulated{allows: spec(func(_ *networkPolicy, r *rule) {
			for _, p := range r.peers {
				if p.NamespaceSelector != nil && p.PodSelector != nil {
					r.peers = append(r.peers, peer{NamespaceSelector: p.NamespaceSelector}, peer{PodSelector: p.PodSelector})
				}
			}
		})}, found: []string{"ingress-from-pods-of-namespace: leaks", "egress-to-pods-of-namespace: leaks"}},
		"pods of all namespaces": {cluster: &simulated{allows: spec(func(_ *networkPolicy, r *rule) {
			peersOf(r, func(p *peer) {
				if p.PodSelector != nil && p.NamespaceSelector == nil {
					p.NamespaceSelector = &metav1.LabelSelector{}
				}
			})
		})}, found: []string{"ingress-from-pods: leaks", "egress-to-pods: leaks"}},
		"no namespaces": {cluster: &simulated{allows: spec(func(_ *networkPolicy, r *rule) {
			peersOf(r, func(p *peer) {
				if p.PodSelector != nil {
					p.NamespaceSelector = nil
				}
			})
		})}, found: []string{"ingress-from-pods-of-namespace: leaks and cuts", "egress-to-pods-of-namespace: leaks and cuts", "ingress-from-pods-anywhere: cuts"}},
		"no expressions": {cluster: &simulated{allows: func(w clusterModel, l []networkPolicy, f flow) bool {
			l = changed(l, func(_ *networkPolicy, r *rule) {
				peersOf(r, func(p *peer) {
					for _, s := range []**metav1.LabelSelector{&p.PodSelector, &p.NamespaceSelector} {
						if *s != nil {
							*s = &metav1.LabelSelector{MatchLabels: (*s).MatchLabels}
						}
					}
				})
			})
			return w.allows(l, f, leniency{})
		}}, found: []string{"ingress-expressions: open"}, only: true},
		"NotIn wants the label": {cluster: &simulated{allows: func(w clusterModel, l []networkPolicy, f flow) bool {
			l = slices.Clone(l)
			for i := range l {
				for _, r := range l[i].Spec.PodSelector.MatchExpressions {
					if r.Operator == "NotIn" {
						s := l[i].Spec.PodSelector
						s.MatchExpressions = append(slices.Clone(s.MatchExpressions), metav1.LabelSelectorRequirement{Key: r.Key, Operator: "Exists"})
						l[i].Spec.PodSelector = s
					}
				}
			}
			return w.allows(l, f, leniency{})
		}}, found: []string{"ingress-expressions: leaks"}, only: true},
		"UDP passes": {cluster: &simulated{allows: unless(func(f flow) bool { return f.protocol == arena.UDP })},
			found: []string{"ingress-port: leaks", "ingress-udp: leaks", "egress-udp: leaks", "egress-and-replies: leaks"}},
		"SCTP passes": {cluster: &simulated{allows: unless(func(f flow) bool { return f.protocol == arena.SCTP })},
			found: []string{"ingress-sctp: leaks", "egress-sctp: leaks"}, only: true},
		"IPv6 passes": {cluster: &simulated{allows: unless(func(f flow) bool { return f.target.Is6() })},
			found: []string{"ingress-ipv6: open", "egress-ipv6: open", "ingress-ip-block-ipv6: open"}, only: true},
		"the same node passes": {cluster: &simulated{allows: unless(func(f flow) bool {
			return f.from == "near/authorized-server" && f.to == "near/server"
		})}, found: []string{"ingress-forbidden: open", "ingress-default-deny: leaks", "egress-default-deny: leaks"}},
		"ports don't matter": {cluster: &simulated{allows: spec(func(_ *networkPolicy, r *rule) { r.ports = nil })},
			found: []string{"ingress-port: open", "ingress-udp: open", "egress-port: open", "ingress-whole-protocol: open", "ingress-port-range: open"}},
		"protocols don't matter": {cluster: &simulated{allows: func(w clusterModel, l []networkPolicy, f flow) bool {
			for _, p := range []string{arena.TCP, arena.UDP, arena.SCTP} {
				if f.protocol = p; w.allows(l, f, leniency{}) {
					return true
				}
			}
			return false
		}}, found: []string{"ingress-port: leaks", "ingress-udp: leaks", "ingress-whole-protocol: open", "egress-udp: leaks"}},
		"a whole protocol is none": {cluster: &simulated{allows: spec(func(_ *networkPolicy, r *rule) {
			r.ports = slices.DeleteFunc(r.ports, func(p portRule) bool { return p.Port == nil })
		})}, found: []string{"ingress-whole-protocol: open"}, only: true},
		"names are one number": {cluster: &simulated{allows: spec(func(_ *networkPolicy, r *rule) {
			for i, p := range r.ports {
				if p.Port != nil && p.Port.StrVal == "cnib-web" {
					r.ports[i].Port = numbered(8080)
				}
			}
		})}, found: []string{"ingress-named-port: leaks and cuts", "egress-named-port-by-pod: leaks and cuts"}, only: true},
		"names are unknown": {cluster: &simulated{allows: spec(func(_ *networkPolicy, r *rule) {
			r.ports = slices.Clone(r.ports)
			for i, p := range r.ports {
				if p.Port != nil && p.Port.StrVal != "" {
					r.ports[i].Port = numbered(1)
				}
			}
		})}, found: []string{"ingress-named-port: cuts", "egress-named-port: cuts"}, only: true},
		"ranges without an end": {cluster: &simulated{allows: spec(func(_ *networkPolicy, r *rule) {
			for i, p := range r.ports {
				if p.EndPort != nil {
					r.ports[i].EndPort = new(int32(65535))
				}
			}
		})}, found: []string{"ingress-port-range: leaks", "egress-port-range: leaks"}, only: true},
		"ranges without their end": {cluster: &simulated{allows: spec(func(_ *networkPolicy, r *rule) {
			for i, p := range r.ports {
				if p.EndPort != nil && *p.EndPort == 8082 {
					r.ports[i].EndPort = nil
					r.ports[i].Port = numbered(8082)
				}
			}
		})}, found: []string{"ingress-port-range: cuts", "egress-port-range: cuts"}, only: true},
		"peers and ports apart": {cluster: &simulated{allows: func(w clusterModel, l []networkPolicy, f flow) bool {
			l = slices.Clone(l)
			for i := range l {
				join := func(rules []rule) []rule {
					var all rule
					for _, r := range rules {
						all.peers, all.ports = append(all.peers, r.peers...), append(all.ports, r.ports...)
					}
					return append(rules[:0], all)[:min(1, len(rules))]
				}
				setRules(&l[i], join(rulesOf(&l[i], ingress)), join(rulesOf(&l[i], egress)))
			}
			return w.allows(l, f, leniency{})
		}}, found: []string{"ingress-port-by-peer: leaks", "egress-port-by-peer: leaks", "ingress-ip-block-overlap: leaks", "egress-ip-block-overlap: leaks"}, only: true},
		"rules for nobody are none": {cluster: &simulated{allows: without(func(r rule) bool {
			return slices.ContainsFunc(r.peers, func(p peer) bool { return p.PodSelector != nil && p.PodSelector.MatchLabels["run"] == "nobody" })
		})}, found: []string{"ingress-from-nobody: open", "egress-to-nobody: open"}, only: true},
		"rules of SCTP are none": {cluster: &simulated{noSCTP: true, allows: without(func(r rule) bool {
			return slices.ContainsFunc(r.ports, func(p portRule) bool { return p.Protocol != nil && *p.Protocol == arena.SCTP })
		})}, found: []string{"ingress-sctp-only: open", "egress-sctp-only: open"}, only: true},
		"except is forgotten": {cluster: &simulated{allows: spec(func(_ *networkPolicy, r *rule) {
			peersOf(r, func(p *peer) {
				if p.IPBlock != nil {
					p.IPBlock = &networkingv1.IPBlock{CIDR: p.IPBlock.CIDR}
				}
			})
		})}, found: []string{"ingress-ip-block-except: open", "egress-ip-block-except: open", "ingress-ip-block-ipv6: open"}, only: true},
		"except is a deny": {cluster: &simulated{allows: func(w clusterModel, l []networkPolicy, f flow) bool {
			for _, p := range l {
				for _, r := range p.Spec.Ingress {
					for _, x := range r.From {
						if x.IPBlock != nil && holds(&networkingv1.IPBlock{CIDR: x.IPBlock.CIDR}, f.source) && !holds(x.IPBlock, f.source) {
							return false
						}
					}
				}
			}
			return w.allows(l, f, leniency{})
		}}, found: []string{"ingress-ip-block-except: cuts", "ingress-ip-block-ipv6: cuts"}, only: true},
		"addresses don't matter": {cluster: &simulated{allows: spec(func(_ *networkPolicy, r *rule) {
			peersOf(r, func(p *peer) {
				if p.IPBlock != nil {
					*p = peer{NamespaceSelector: &metav1.LabelSelector{}}
				}
			})
		})}, found: []string{"ingress-ip-block: open", "egress-ip-block: open"}},
		"replies need a rule": {cluster: &simulated{allows: func(w clusterModel, l []networkPolicy, f flow) bool {
			back := flow{f.to, f.from, f.target, f.source, f.protocol, f.port}
			return w.allows(l, f, leniency{}) && w.passes(l, egress, back, leniency{})
		}}, found: []string{"egress-and-replies: cuts", "egress-default-deny: cuts"}},
		"types are never of egress": {cluster: &simulated{allows: func(w clusterModel, l []networkPolicy, f flow) bool {
			l = slices.Clone(l)
			for i := range l {
				if len(l[i].Spec.PolicyTypes) == 0 {
					l[i].Spec.PolicyTypes = []networkingv1.PolicyType{ingress}
				}
			}
			return w.allows(l, f, leniency{})
		}}, found: []string{"egress-without-types: leaks"}, only: true},
		"types are both": {cluster: &simulated{allows: func(w clusterModel, l []networkPolicy, f flow) bool {
			l = slices.Clone(l)
			for i := range l {
				l[i].Spec.PolicyTypes = []networkingv1.PolicyType{ingress, egress}
			}
			return w.allows(l, f, leniency{})
		}}, found: []string{"ingress-default-deny: cuts", "egress-default-deny: cuts", "ingress-from-pods: cuts"}},
		"one end is enough": {cluster: &simulated{allows: func(w clusterModel, l []networkPolicy, f flow) bool {
			return w.passes(l, ingress, f, leniency{}) || w.passes(l, egress, f, leniency{})
		}}, found: []string{"ingress-default-deny: open", "ingress-forbidden: open"}},
		"one in three passes": {cluster: &simulated{allows: func() engine {
			asked := map[flow]int{}
			return func(w clusterModel, l []networkPolicy, f flow) bool {
				if w.allows(l, f, leniency{}) {
					return true
				}
				asked[f]++
				return asked[f]%3 == 0
			}
		}()}, found: []string{"ingress-default-deny: open"}},
		"what was closed stays so": {cluster: &simulated{stuck: true}, found: []string{"removal: cuts"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := policed(t, tt.cluster, nil)
			failed := foundIn(r, Fail)
			for _, want := range tt.found {
				name, found, _ := strings.Cut(want, ": ")
				if failed[name] != found {
					t.Errorf("%s: %q, want %q; failed: %v", name, failed[name], found, failed)
				}
			}
			if tt.only && len(failed) != len(tt.found) {
				t.Errorf("failed %v, want %v and no others", failed, tt.found)
			}
			for _, c := range r.Cases {
				if (c.Verdict == Fail) != (c.Next != "") {
					t.Errorf("%s: %s, next step %q", c.Name, c.Verdict, c.Next)
				}
				if word := r.Environment["check.policy.x."+c.Name]; c.Name != "effect" && !strings.HasPrefix(word, string(c.Verdict)+": ") {
					t.Errorf("%s: %s, environment %q", c.Name, c.Verdict, word)
				}
			}
			if r.Verdict() != Fail {
				t.Errorf("verdict %s", r.Verdict())
			}
		})
	}
}

// What can't be asked is skipped with the reason, and never passes.
func TestPolicySkips(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cluster *simulated
		cases   map[string]string // skipped, and what was found
		text    string            // of the first
	}{
		"a wall":       {&simulated{passes: func(flow, int) bool { return false }}, nil, "without any policy near/authorized-client does not reach near/server over TCP 8080 (timeout)"},
		"no SCTP":      {&simulated{noSCTP: true}, map[string]string{"ingress-sctp": "", "egress-sctp": ""}, "this kernel has no SCTP"},
		"SCTP is lost": {&simulated{passes: func(f flow, _ int) bool { return f.protocol != arena.SCTP }}, map[string]string{"ingress-sctp": "", "egress-sctp": ""}, "over SCTP 8080 (timeout)"},
		"no IPv6":      {&simulated{noIPv6: true}, map[string]string{"ingress-ipv6": "", "egress-ipv6": "", "ingress-ip-block-ipv6": ""}, "the pods have no IPv6 addresses"},
		"no ipBlock for pods": {&simulated{allows: func(w clusterModel, l []networkPolicy, f flow) bool { return w.allows(l, f, leniency{podsApart: true}) }},
			map[string]string{"ingress-ip-block": "pods apart", "ingress-ip-block-except": "pods apart", "egress-ip-block": "pods apart", "egress-ip-block-except": "pods apart", "ingress-ip-block-ipv6": "pods apart", "ingress-ip-block-overlap": "pods apart", "egress-ip-block-overlap": "pods apart"}, "means addresses outside of the cluster"},
		"no ranges": {&simulated{allows: func(w clusterModel, l []networkPolicy, f flow) bool { return w.allows(l, f, leniency{firstPort: true}) }},
			map[string]string{"ingress-port-range": "single port", "egress-port-range": "single port"}, "endPort is not heeded"},
		"names clash": {&simulated{allows: func(w clusterModel, l []networkPolicy, f flow) bool {
			return w.allows(l, f, leniency{namesClash: true})
		}},
			map[string]string{"egress-named-port-by-pod": "names clash"}, "several numbers in the cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := policed(t, tt.cluster, nil)
			if bad := foundIn(r, Fail); len(bad) > 0 {
				t.Errorf("failed %v", bad)
			}
			skipped := foundIn(r, Skip)
			if tt.cases == nil { // all
				if len(skipped) != len(r.Cases) || r.Verdict() != Skip {
					t.Errorf("%d of %d cases skipped, verdict %s; passed: %v", len(skipped), len(r.Cases), r.Verdict(), foundIn(r, Pass))
				}
			} else if diff := cmp.Diff(tt.cases, skipped); diff != "" {
				t.Errorf("skipped (-want +got)\n%s", diff)
			}
			for _, c := range r.Cases {
				if c.Verdict == Skip {
					if !strings.Contains(c.Text, tt.text) {
						t.Errorf("%s: %q, want %q in it", c.Name, c.Text, tt.text)
					}
					break
				}
			}
		})
	}
}

// unpoliced is a network that enforces no policies.
type unpoliced struct{ arena.Network }

func (unpoliced) Nodes() []arena.Endpoint { return nil }

func (unpoliced) Sandbox(context.Context, []arena.SandboxNamespace) (arena.Sandbox, error) {
	return nil, &arena.Unsupported{Reason: "no policy engine", Remedy: "ask on a cluster"}
}

// A network without a policy engine to ask, and one of hosts, are skipped.
func TestPolicyIsNotAsked(t *testing.T) {
	for name, tt := range map[string]struct {
		s    Subject
		text string
	}{
		"the lab":  {Subject{Contender: &contender.Contender{ID: "x"}, Network: unpoliced{}}, "no policy engine"},
		"the host": {Subject{Contender: &contender.Contender{ID: "host", Datapath: contender.Datapath{Attach: "none"}}, Network: &simulated{}}, "share their node's network"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := policy{pace: usualPace}.Run(t.Context(), &tt.s)
			if err != nil || r.Verdict() != Skip || !strings.Contains(r.MainCase().Text, tt.text) {
				t.Errorf("%+v, %v", r, err)
			}
			for _, word := range slices.Collect(maps.Values(r.Environment)) {
				if !strings.HasPrefix(word, "skip: ") {
					t.Errorf("environment %q", word)
				}
			}
		})
	}
}

// A probe that fails in a way that no policy makes it fail proves nothing.
func TestPolicyOddProbe(t *testing.T) {
	f := flow{from: "a/b", to: "c/d", protocol: arena.TCP, port: 1}
	c := judgePolicy(part{name: "n"}, []probeResult{{flow: f, kind: agent.Other, detail: "no more files"}}, []bool{false}, 3)
	if c.Verdict != Skip || !strings.Contains(c.Text, "a/b to c/d over TCP 1") || !strings.Contains(c.Text, "no more files") {
		t.Errorf("%+v", c)
	}
}
