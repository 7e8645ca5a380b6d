package check

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/cnibench/cnibench/internal/arena"
)

// This file is the table of check policy: who there is, which policies are
// tried on them, and under which names what came of it is told. What a policy
// should do is in no table: policy_eval.go finds it from the policy itself.

// The ports at which every pod of the sandbox listens, over every protocol.
const (
	firstPort = 8080
	lastPort  = 8083
)

// sandboxNamespaces returns the pods that policies are tried on. Those of the
// published study are in near, with its labels; far has one of the same labels
// and one of others. All pods are clients and servers.
func sandboxNamespaces() []arena.SandboxNamespace {
	pod := func(name string, node int, web uint16, labels map[string]string) arena.SandboxPod {
		return arena.SandboxPod{Name: name, Node: node, Labels: labels, Ports: []arena.NamedPort{
			{Name: "cnib-web", Protocol: arena.TCP, Number: web}, {Name: "cnib-api", Protocol: arena.TCP, Number: 8082},
			{Name: "cnib-dns", Protocol: arena.UDP, Number: 8080},
		}}
	}
	return []arena.SandboxNamespace{
		{Name: "near", Labels: map[string]string{"team": "near"}, Pods: []arena.SandboxPod{
			pod("server", 0, 8080, map[string]string{"run": "server", "tier": "back"}),
			pod("client", 1, 8080, map[string]string{"run": "client"}),
			pod("authorized-client", 1, 8080, map[string]string{"run": "authorized-client", "tier": "front"}),
			// The same name is another number here.
			pod("authorized-server", 0, 8081, map[string]string{"run": "authorized-server", "tier": "back"}),
		}},
		{Name: "far", Labels: map[string]string{"team": "far", "trusted": "yes"}, Pods: []arena.SandboxPod{
			pod("authorized-client", 0, 8080, map[string]string{"run": "authorized-client", "tier": "front"}),
			pod("stranger", 1, 8081, map[string]string{"run": "stranger"}),
		}},
	}
}

// port is a port of every pod.
type port struct {
	protocol string
	number   uint16
}

// trial is some policies and what is asked while they hold.
type trial struct {
	policies string // YAML; {namespace/pod} is that pod's address as a prefix, {all} every address
	ports    []port // none: TCP at the first
	ipv6     bool   // by the pods' IPv6 addresses; else by the first that they have
	// lenient is what a network may do instead without failing; found is that in
	// a word and why in a sentence.
	lenient    dialect
	found, why string
	parts      []part
}

// part is a case: all connections of the trial, or one of them.
type part struct {
	name     string
	from, to string
}

// one returns a trial with one case of all connections.
func one(name string, t trial) trial {
	t.parts = []part{{name: name}}
	return t
}

// np returns a NetworkPolicy as YAML. The specification is in YAML's flow style.
func np(namespace, name, spec string) string {
	return fmt.Sprintf("apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: %s, namespace: %s}\nspec: {%s}\n", name, namespace, spec)
}

func policies(list ...string) string { return strings.Join(list, "---\n") }

// Selectors that many policies have.
const (
	everyone   = `podSelector: {}`
	theServer  = `podSelector: {matchLabels: {run: server}}`
	theClient  = `podSelector: {matchLabels: {run: client}}`
	authClient = `podSelector: {matchLabels: {run: authorized-client}}`
	authServer = `podSelector: {matchLabels: {run: authorized-server}}`
	farAway    = `namespaceSelector: {matchLabels: {team: far}}`
	anywhere   = `namespaceSelector: {}`
	inOnly     = `policyTypes: [Ingress]`
	outOnly    = `policyTypes: [Egress]`
)

// The ways in which the specification leaves networks free, or in which they
// are known to forbid more than it does.
var (
	podsApart = trial{
		lenient: dialect{podsApart: true}, found: "pods apart",
		why: "no ipBlock selects a pod here, which the specification allows: it means addresses outside of the cluster, and none of those is asked",
	}
	singlePort = trial{
		lenient: dialect{firstPort: true}, found: "single port",
		why: "endPort is not heeded here, which the specification allows: of a range only its first port is open",
	}
	namesClash = trial{
		lenient: dialect{namesClash: true}, found: "names clash",
		why: "a port's name that is several numbers in the cluster is none for egress here: closed, where the specification opens that of the destination's pod",
	}
)

func (t trial) with(policies string, ports ...port) trial {
	t.policies, t.ports = policies, ports
	return t
}

func over6(policies string) trial { return trial{policies: policies, ipv6: true} }

// trials are all, in the order in which they are carried out. A name begins
// with the direction that it proves or refutes: analysis goes by that.
func trials() []trial {
	tcp := func(n uint16) port { return port{arena.TCP, n} }
	udp := func(n uint16) port { return port{arena.UDP, n} }
	sctp := func(n uint16) port { return port{arena.SCTP, n} }
	tried := func(list string, ports ...port) trial { return trial{}.with(list, ports...) }
	fourPorts := []port{tcp(8080), tcp(8081), tcp(8082), tcp(8083)}
	allowAll := `policyTypes: [Ingress, Egress], ingress: [{}], egress: [{}]`

	return []trial{
		// The published study: a server that only run=authorized-client may
		// reach, a client that may only reach run=authorized-server.
		{
			policies: policies(
				np("near", "study-server", theServer+`, `+inOnly+`, ingress: [{from: [{`+authClient+`}]}]`),
				np("near", "study-client", theClient+`, `+outOnly+`, egress: [{to: [{`+authServer+`}]}]`)),
			parts: []part{
				{"ingress-allowed", "near/authorized-client", "near/server"},
				{"ingress-forbidden", "near/authorized-server", "near/server"},
				{"egress-allowed", "near/client", "near/authorized-server"},
				{"egress-forbidden", "near/client", "near/authorized-client"},
			},
		},

		one("ingress-default-deny", tried(np("near", "deny", everyone+`, `+inOnly))),
		one("ingress-without-types", tried(np("near", "deny", everyone))),
		one("ingress-allow-all", tried(policies(
			np("near", "deny", everyone+`, `+inOnly),
			np("near", "allow", theServer+`, ingress: [{}]`)))),
		one("ingress-from-pods", tried(np("near", "p", theServer+`, ingress: [{from: [{`+authClient+`}]}]`))),
		one("ingress-from-namespace", tried(np("near", "p", theServer+`, ingress: [{from: [{`+farAway+`}]}]`))),
		one("ingress-from-pods-of-namespace", tried(np("near", "p", theServer+`, ingress: [{from: [{`+farAway+`, `+authClient+`}]}]`))),
		one("ingress-from-pods-or-namespace", tried(np("near", "p", theServer+`, ingress: [{from: [{`+farAway+`}, {`+authClient+`}]}]`))),
		one("ingress-from-pods-anywhere", tried(np("near", "p", theServer+`, ingress: [{from: [{`+anywhere+`, `+authClient+`}]}]`))),
		one("ingress-expressions", tried(policies(
			np("near", "p", `podSelector: {matchExpressions: [{key: tier, operator: In, values: [back]}, {key: run, operator: NotIn, values: [authorized-server]}]}, ingress: [{from: [{
				namespaceSelector: {matchExpressions: [{key: trusted, operator: DoesNotExist}]},
				podSelector: {matchExpressions: [{key: tier, operator: Exists}, {key: run, operator: NotIn, values: [authorized-server]}]}}]}]`),
			np("far", "p", `podSelector: {matchExpressions: [{key: tier, operator: NotIn, values: [front]}]}, ingress: [{from: [{
				namespaceSelector: {matchExpressions: [{key: trusted, operator: Exists}]}}]}]`)))),
		one("ingress-additive", tried(policies(
			np("near", "p", theServer+`, ingress: [{from: [{`+authClient+`}]}]`),
			np("near", "q", theServer+`, ingress: [{from: [{`+theClient+`}]}]`)))),
		one("ingress-port", tried(
			np("near", "p", everyone+`, ingress: [{ports: [{port: 8080}]}]`), tcp(8080), tcp(8081), udp(8080))),
		one("ingress-udp", tried(
			np("near", "p", everyone+`, ingress: [{ports: [{protocol: UDP, port: 8080}]}]`), tcp(8080), udp(8080), udp(8081))),
		one("ingress-whole-protocol", tried(
			np("near", "p", everyone+`, ingress: [{ports: [{protocol: UDP}]}]`), tcp(8080), udp(8080), udp(8081))),
		one("ingress-port-range", singlePort.with(
			np("near", "p", everyone+`, ingress: [{ports: [{protocol: TCP, port: 8081, endPort: 8082}]}]`), fourPorts...)),
		one("ingress-named-port", tried(
			np("near", "p", everyone+`, ingress: [{ports: [{port: cnib-web}, {protocol: UDP, port: cnib-dns}]}]`), tcp(8080), tcp(8081), udp(8080), udp(8081))),
		one("ingress-port-by-peer", tried(
			np("near", "p", theServer+`, ingress: [{from: [{`+authClient+`}], ports: [{port: 8080}]}, {from: [{`+farAway+`}], ports: [{port: 8081}]}]`), tcp(8080), tcp(8081))),
		one("ingress-sctp", tried(
			np("near", "p", everyone+`, ingress: [{ports: [{protocol: SCTP, port: 8080}]}]`), sctp(8080), sctp(8081), tcp(8080))),
		one("ingress-ip-block", podsApart.with(
			np("near", "p", theServer+`, ingress: [{from: [{ipBlock: {cidr: "{near/authorized-client}"}}]}]`))),
		one("ingress-ip-block-except", podsApart.with(
			np("near", "p", theServer+`, ingress: [{from: [{ipBlock: {cidr: "{all}", except: ["{far/authorized-client}", "{near/client}"]}}]}]`))),

		one("egress-default-deny", tried(np("near", "deny", everyone+`, `+outOnly))),
		one("egress-without-types", tried(np("near", "p", theClient+`, egress: [{to: [{`+authServer+`}]}]`))),
		one("egress-allow-all", tried(policies(
			np("near", "deny", everyone+`, `+outOnly),
			np("near", "allow", theClient+`, `+outOnly+`, egress: [{}]`)))),
		one("egress-to-pods", tried(np("near", "p", theClient+`, `+outOnly+`, egress: [{to: [{`+authClient+`}]}]`))),
		one("egress-to-namespace", tried(np("near", "p", theClient+`, `+outOnly+`, egress: [{to: [{`+farAway+`}]}]`))),
		one("egress-to-pods-of-namespace", tried(np("near", "p", theClient+`, `+outOnly+`, egress: [{to: [{`+farAway+`, `+authClient+`}]}]`))),
		one("egress-to-pods-or-namespace", tried(np("near", "p", theClient+`, `+outOnly+`, egress: [{to: [{`+farAway+`}, {`+authClient+`}]}]`))),
		one("egress-additive", tried(policies(
			np("near", "p", theClient+`, `+outOnly+`, egress: [{to: [{`+theServer+`}]}]`),
			np("near", "q", everyone+`, `+outOnly+`, egress: [{to: [{`+authServer+`}]}]`)))),
		one("egress-port", tried(
			np("near", "p", everyone+`, `+outOnly+`, egress: [{ports: [{port: 8080}]}]`), tcp(8080), tcp(8081), udp(8080))),
		one("egress-udp", tried(
			np("near", "p", everyone+`, `+outOnly+`, egress: [{ports: [{protocol: UDP, port: 8080}]}]`), tcp(8080), udp(8080), udp(8081))),
		one("egress-port-range", singlePort.with(
			np("near", "p", everyone+`, `+outOnly+`, egress: [{ports: [{protocol: TCP, port: 8081, endPort: 8082}]}]`), fourPorts...)),
		one("egress-named-port", tried(
			np("near", "p", everyone+`, `+outOnly+`, egress: [{ports: [{port: cnib-api}]}]`), tcp(8080), tcp(8082))),
		one("egress-named-port-by-pod", namesClash.with(
			np("near", "p", everyone+`, `+outOnly+`, egress: [{ports: [{port: cnib-web}]}]`), tcp(8080), tcp(8081))),
		one("egress-port-by-peer", tried(
			np("near", "p", theClient+`, `+outOnly+`, egress: [{to: [{`+theServer+`}], ports: [{port: 8080}]}, {to: [{`+farAway+`}], ports: [{port: 8081}]}]`), tcp(8080), tcp(8081))),
		one("egress-sctp", tried(
			np("near", "p", everyone+`, `+outOnly+`, egress: [{ports: [{protocol: SCTP, port: 8080}]}]`), sctp(8080), sctp(8081), tcp(8080))),
		one("egress-ip-block", podsApart.with(
			np("near", "p", theClient+`, `+outOnly+`, egress: [{to: [{ipBlock: {cidr: "{near/server}"}}]}]`))),
		one("egress-ip-block-except", podsApart.with(
			np("near", "p", theClient+`, `+outOnly+`, egress: [{to: [{ipBlock: {cidr: "{all}", except: ["{far/stranger}", "{near/server}"]}}]}]`))),

		// Both ends must allow; and who may not speak may answer.
		one("ingress-and-egress", tried(policies(
			np("near", "in", theServer+`, ingress: [{from: [{`+theClient+`}, {`+authClient+`}]}]`),
			np("near", "out", theClient+`, `+outOnly+`, egress: [{to: [{`+authServer+`}]}]`),
			np("near", "out2", authClient+`, `+outOnly+`, egress: [{to: [{`+theServer+`}]}]`)))),
		one("ingress-and-egress-deny", tried(policies(
			np("near", "deny", everyone+`, policyTypes: [Ingress, Egress]`),
			np("far", "allow", everyone+`, `+allowAll)))),
		one("egress-and-replies", tried(np("near", "p", theServer+`, `+outOnly), tcp(8080), udp(8080))),

		one("ingress-ipv6", over6(np("near", "p", theServer+`, ingress: [{from: [{`+authClient+`}]}]`))),
		one("egress-ipv6", over6(np("near", "p", theClient+`, `+outOnly+`, egress: [{to: [{`+authServer+`}]}]`))),
		one("ingress-ip-block-ipv6", func() trial {
			t := podsApart.with(np("near", "p", theServer+`, ingress: [{from: [{ipBlock: {cidr: "{all}", except: ["{near/client}"]}}]}]`))
			t.ipv6 = true
			return t
		}()),
	}
}

// effectPolicy is the one whose effect is timed, on the connection that it
// forbids.
var effectPolicy = np("near", "effect", theServer+`, `+inOnly)

const effectFrom, effectTo = "near/client", "near/server"

// fill puts the pods' addresses into the policies.
func fill(policies string, addr func(pod string) netip.Addr) string {
	for _, ns := range sandboxNamespaces() {
		for _, p := range ns.Pods {
			key := ns.Name + "/" + p.Name
			a := addr(key)
			policies = strings.ReplaceAll(policies, "{"+key+"}", netip.PrefixFrom(a, a.BitLen()).String())
			all := netip.IPv4Unspecified()
			if a.Is6() {
				all = netip.IPv6Unspecified()
			}
			policies = strings.ReplaceAll(policies, "{all}", netip.PrefixFrom(all, 0).String())
		}
	}
	return policies
}
