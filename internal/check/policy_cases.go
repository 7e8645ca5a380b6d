package check

import (
	_ "embed"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/strictyaml"
)

//go:embed policy_cases.yaml
var caseFile string

// The ports at which every pod of the sandbox listens, over every protocol.
const (
	firstPort = 8080
	lastPort  = 8083
)

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
	parts    []part
	tolerance
}

// part is a case: all connections of the trial, or one of them.
type part struct {
	name     string
	from, to string
}

// tolerance is what a network may do instead of the letter of the specification
// without failing; found is that in a word and why in a sentence.
type tolerance struct {
	lenient    leniency
	found, why string
}

// tolerances are the ways in which the specification leaves networks free, or in
// which they are known to forbid more than it does, by the names in policy_cases.yaml.
var tolerances = map[string]tolerance{
	"": {},
	"pods apart": {
		leniency{podsApart: true}, "pods apart",
		"no ipBlock selects a pod here, which the specification allows: it means addresses outside of the cluster, and none of those is asked",
	},
	"single port": {
		leniency{firstPort: true}, "single port",
		"endPort is not heeded here, which the specification allows: of a range only its first port is open",
	},
	"names clash": {
		leniency{namesClash: true}, "names clash",
		"a port's name that is several numbers in the cluster is none for egress here: closed, where the specification opens that of the destination's pod",
	},
}

// caseTable is policy_cases.yaml.
type caseTable struct {
	Namespaces []arena.SandboxNamespace
	Trials     []struct {
		Cases    []struct{ Name, From, To string }
		Lenient  string
		IPv6     bool
		Ports    []string // PROTOCOL NUMBER
		Policies []struct{ Namespace, Name, Spec string }
	}
}

// cases is the table of policy_cases.yaml.
var cases = sync.OnceValue(func() caseTable { return strictyaml.Must[caseTable]("policy_cases.yaml", caseFile) })

// sandboxNamespaces returns the pods that policies are tried on. Nobody changes them.
func sandboxNamespaces() []arena.SandboxNamespace { return cases().Namespaces }

// trials are all, in the order in which they are carried out.
var trials = sync.OnceValue(func() (list []trial) {
	for _, row := range cases().Trials {
		r, ok := tolerances[row.Lenient]
		if !ok {
			panic("policy_cases.yaml: no reading is called " + row.Lenient)
		}
		t := trial{ipv6: row.IPv6, tolerance: r}
		for _, c := range row.Cases {
			t.parts = append(t.parts, part{c.Name, c.From, c.To})
		}
		for _, text := range row.Ports {
			var p port
			if _, err := fmt.Sscan(text, &p.protocol, &p.number); err != nil {
				panic("policy_cases.yaml: want PROTOCOL NUMBER, not " + text)
			}
			t.ports = append(t.ports, p)
		}
		var manifests []string
		for _, p := range row.Policies {
			manifests = append(manifests, np(p.Namespace, p.Name, p.Spec))
		}
		t.policies = policies(manifests...)
		list = append(list, t)
	}
	return list
})

// np returns a NetworkPolicy as YAML. The specification is in YAML's flow style.
func np(namespace, name, spec string) string {
	return fmt.Sprintf("apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: %s, namespace: %s}\nspec: {%s}\n", name, namespace, spec)
}

func policies(list ...string) string { return strings.Join(list, documentEnd) }

// effectPolicy is the one whose effect is timed, on the connection that it
// forbids.
var effectPolicy = np("near", "effect", "podSelector: {matchLabels: {run: server}}, policyTypes: [Ingress]")

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
