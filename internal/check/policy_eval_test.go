package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/arena"
)

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

// smallCluster has the addresses 10.0.NAMESPACE.POD and fd00::NAMESPACE:POD.
func smallCluster() (clusterModel, map[string][]netip.Addr) {
	w := clusterModel{namespaces: map[string]map[string]string{}, pods: map[string]modelPod{}}
	addrs := map[string][]netip.Addr{}
	for i, ns := range sandboxNamespaces() {
		w.namespaces[ns.Name] = ns.Labels
		for k, p := range ns.Pods {
			key := ns.Name + "/" + p.Name
			w.pods[key] = modelPod{ns.Name, p.Labels, p.Ports}
			addrs[key] = []netip.Addr{
				netip.AddrFrom4([4]byte{10, 0, byte(i + 1), byte(k + 1)}),
				netip.MustParseAddr(fmt.Sprintf("fd00::%d:%d", i+1, k+1)),
			}
		}
	}
	return w, addrs
}

// The evaluator against the specification's sentences. A connection is
// "from > to protocol port", over IPv6 with a 6 before the protocol.
func TestPolicySemantics(t *testing.T) {
	const (
		client, server = "near/client", "near/server"
		auth, goal     = "near/authorized-client", "near/authorized-server"
		farAuth, other = "far/authorized-client", "far/stranger"
	)
	to := func(from, to string) string { return from + " > " + to + " TCP 8080" }
	over := func(how string) string { return client + " > " + server + " " + how }
	for name, tt := range map[string]struct {
		policies string
		leniency leniency
		yes, no  []string
	}{
		"no policy at all": {"", leniency{}, []string{to(client, server), to(other, server), over("SCTP 9")}, nil},
		"default deny in": {np("near", "p", everyone+`, `+inOnly), leniency{},
			[]string{to(client, other), to(farAuth, other), to(client, client)}, []string{to(client, server), to(other, server), over("UDP 53")}},
		"an empty list is as none": {np("near", "p", everyone+`, `+inOnly+`, ingress: []`), leniency{}, []string{to(client, other)}, []string{to(client, server)}},
		"default deny out": {np("near", "p", everyone+`, `+outOnly), leniency{},
			[]string{to(other, server), to(farAuth, client)}, []string{to(client, server), to(client, other)}},
		"only the selected":             {np("near", "p", theServer+`, `+inOnly), leniency{}, []string{to(client, goal), to(server, client)}, []string{to(client, server)}},
		"of its own namespace only":     {np("far", "p", everyone), leniency{}, []string{to(client, server)}, []string{to(client, farAuth), to(other, farAuth)}},
		"without types: in":             {np("near", "p", everyone), leniency{}, []string{to(client, other)}, []string{to(client, server)}},
		"without types, with egress":    {np("near", "p", everyone+`, egress: [{}]`), leniency{}, []string{to(client, other)}, []string{to(client, server)}},
		"types win over rules":          {np("near", "p", everyone+`, `+inOnly+`, ingress: [{}], egress: [{to: [{`+farAway+`}]}]`), leniency{}, []string{to(client, server), to(client, goal)}, nil},
		"an empty rule allows all":      {np("near", "p", everyone+`, ingress: [{}]`), leniency{}, []string{to(client, server), to(other, server), over("UDP 1")}, nil},
		"an empty from is all":          {np("near", "p", everyone+`, ingress: [{from: [], ports: [{port: 8080}]}]`), leniency{}, []string{to(other, server)}, []string{over("TCP 8081")}},
		"an empty to is all":            {np("near", "p", everyone+`, `+outOnly+`, egress: [{to: []}]`), leniency{}, []string{to(client, other)}, nil},
		"policies add up":               {policies(np("near", "p", everyone+`, `+inOnly), np("near", "q", theServer+`, ingress: [{from: [{`+theClient+`}]}]`), np("near", "r", theServer+`, ingress: [{from: [{`+authServer+`}]}]`)), leniency{}, []string{to(client, server), to(goal, server)}, []string{to(auth, server), to(client, goal)}},
		"pods of the same namespace":    {np("near", "p", theServer+`, ingress: [{from: [{`+authClient+`}]}]`), leniency{}, []string{to(auth, server)}, []string{to(farAuth, server), to(client, server)}},
		"an empty selector is all pods": {np("near", "p", theServer+`, ingress: [{from: [{podSelector: {}}]}]`), leniency{}, []string{to(auth, server), to(goal, server)}, []string{to(farAuth, server)}},
		"a namespace":                   {np("near", "p", theServer+`, ingress: [{from: [{`+farAway+`}]}]`), leniency{}, []string{to(farAuth, server), to(other, server)}, []string{to(auth, server)}},
		"all namespaces":                {np("near", "p", theServer+`, ingress: [{from: [{`+anywhere+`}]}]`), leniency{}, []string{to(farAuth, server), to(auth, server)}, nil},
		"pods and namespace":            {np("near", "p", theServer+`, ingress: [{from: [{`+farAway+`, `+authClient+`}]}]`), leniency{}, []string{to(farAuth, server)}, []string{to(other, server), to(auth, server)}},
		"pods or namespace":             {np("near", "p", theServer+`, ingress: [{from: [{`+farAway+`}, {`+authClient+`}]}]`), leniency{}, []string{to(farAuth, server), to(other, server), to(auth, server)}, []string{to(client, server)}},
		"all of a selector's labels":    {np("near", "p", `podSelector: {matchLabels: {run: server, tier: front}}`), leniency{}, []string{to(client, server)}, nil},
		"labels and expressions":        {np("near", "p", `podSelector: {matchLabels: {tier: back}, matchExpressions: [{key: run, operator: In, values: [server, client]}]}`), leniency{}, []string{to(client, goal), to(server, client)}, []string{to(client, server)}},
		"not in, or not there":          {np("near", "p", `podSelector: {matchExpressions: [{key: tier, operator: NotIn, values: [back]}]}`), leniency{}, []string{to(client, server), to(client, goal)}, []string{to(server, client), to(server, auth)}},
		"exists":                        {np("near", "p", `podSelector: {matchExpressions: [{key: tier, operator: Exists}]}`), leniency{}, []string{to(server, client)}, []string{to(client, server), to(client, auth)}},
		"does not exist":                {np("near", "p", `podSelector: {matchExpressions: [{key: tier, operator: DoesNotExist}]}`), leniency{}, []string{to(client, server)}, []string{to(server, client)}},
		"TCP is meant where none is":    {np("near", "p", everyone+`, ingress: [{ports: [{port: 8080}]}]`), leniency{}, []string{over("TCP 8080")}, []string{over("UDP 8080"), over("TCP 8081"), over("SCTP 8080")}},
		"UDP":                           {np("near", "p", everyone+`, ingress: [{ports: [{protocol: UDP, port: 53}]}]`), leniency{}, []string{over("UDP 53")}, []string{over("TCP 53"), over("UDP 54")}},
		"SCTP":                          {np("near", "p", everyone+`, ingress: [{ports: [{protocol: SCTP, port: 5}]}]`), leniency{}, []string{over("SCTP 5")}, []string{over("TCP 5"), over("SCTP 6")}},
		"a whole protocol":              {np("near", "p", everyone+`, ingress: [{ports: [{protocol: SCTP}]}]`), leniency{}, []string{over("SCTP 1")}, []string{over("TCP 1")}},
		"a port without anything":       {np("near", "p", everyone+`, ingress: [{ports: [{}]}]`), leniency{}, []string{over("TCP 1")}, []string{over("UDP 1")}},
		"either port":                   {np("near", "p", everyone+`, ingress: [{ports: [{port: 1}, {protocol: UDP, port: 2}]}]`), leniency{}, []string{over("TCP 1"), over("UDP 2")}, []string{over("TCP 2"), over("UDP 1")}},
		"a range":                       {np("near", "p", everyone+`, ingress: [{ports: [{port: 10, endPort: 12}]}]`), leniency{}, []string{over("TCP 10"), over("TCP 11"), over("TCP 12")}, []string{over("TCP 9"), over("TCP 13"), over("UDP 11")}},
		"a range, its first":            {np("near", "p", everyone+`, ingress: [{ports: [{port: 10, endPort: 12}]}]`), leniency{firstPort: true}, []string{over("TCP 10")}, []string{over("TCP 11"), over("TCP 12")}},
		"a range of one":                {np("near", "p", everyone+`, ingress: [{ports: [{port: 10, endPort: 10}]}]`), leniency{}, []string{over("TCP 10")}, []string{over("TCP 11")}},
		"a name is the pod's own":       {np("near", "p", everyone+`, ingress: [{ports: [{port: cnib-web}]}]`), leniency{}, []string{over("TCP 8080"), client + " > " + goal + " TCP 8081"}, []string{over("TCP 8081"), client + " > " + goal + " TCP 8080", over("UDP 8080")}},
		"a name has its protocol":       {np("near", "p", everyone+`, ingress: [{ports: [{port: cnib-dns}, {protocol: UDP, port: cnib-web}]}]`), leniency{}, nil, []string{over("TCP 8080"), over("UDP 8080")}},
		"a name at the destination":     {np("near", "p", theClient+`, `+outOnly+`, egress: [{ports: [{port: cnib-web}]}]`), leniency{}, []string{over("TCP 8080"), client + " > " + goal + " TCP 8081"}, []string{over("TCP 8081"), client + " > " + goal + " TCP 8080"}},
		"a name of several numbers":     {np("near", "p", theClient+`, `+outOnly+`, egress: [{ports: [{port: cnib-web}, {port: cnib-api}]}]`), leniency{namesClash: true}, []string{over("TCP 8082")}, []string{over("TCP 8080"), client + " > " + goal + " TCP 8081"}},
		"and into a pod":                {np("near", "p", theServer+`, ingress: [{ports: [{port: cnib-web}]}]`), leniency{namesClash: true}, []string{over("TCP 8080")}, []string{over("TCP 8081")}},
		"a name that nobody has":        {np("near", "p", everyone+`, ingress: [{ports: [{port: none}]}]`), leniency{}, nil, []string{over("TCP 8080")}},
		"peers and ports of one rule":   {np("near", "p", theServer+`, ingress: [{from: [{`+theClient+`}], ports: [{port: 1}]}, {from: [{`+authServer+`}], ports: [{port: 2}]}]`), leniency{}, []string{over("TCP 1"), goal + " > " + server + " TCP 2"}, []string{over("TCP 2"), goal + " > " + server + " TCP 1"}},
		"both ends must agree":          {policies(np("near", "p", theServer+`, ingress: [{from: [{`+theClient+`}]}]`), np("near", "q", theClient+`, `+outOnly+`, egress: [{to: [{`+authServer+`}]}]`)), leniency{}, []string{to(client, goal)}, []string{to(client, server), to(goal, server)}},
		"who may not speak is reached":  {np("near", "p", theServer+`, `+outOnly), leniency{}, []string{to(client, server)}, []string{to(server, client)}},
		"nobody is cut off from itself": {np("near", "p", everyone+`, policyTypes: [Ingress, Egress]`), leniency{}, []string{to(client, client)}, []string{to(client, server)}},
		"addresses in":                  {np("near", "p", theServer+`, ingress: [{from: [{ipBlock: {cidr: 10.0.1.2/32}}]}]`), leniency{}, []string{to(client, server)}, []string{to(auth, server), over("6 TCP 8080")}},
		"addresses but":                 {np("near", "p", theServer+`, ingress: [{from: [{ipBlock: {cidr: 10.0.1.0/24, except: [10.0.1.2/31]}}]}]`), leniency{}, []string{to(goal, server)}, []string{to(client, server), to(auth, server), to(other, server)}},
		"except is no deny":             {policies(np("near", "p", theServer+`, ingress: [{from: [{ipBlock: {cidr: 0.0.0.0/0, except: [10.0.1.0/24]}}]}]`), np("near", "q", theServer+`, ingress: [{from: [{`+theClient+`}]}]`)), leniency{}, []string{to(client, server), to(other, server)}, []string{to(auth, server)}},
		"addresses out":                 {np("near", "p", theClient+`, `+outOnly+`, egress: [{to: [{ipBlock: {cidr: 10.0.1.1/32}}], ports: [{port: 8080}]}]`), leniency{}, []string{to(client, server), to(goal, server)}, []string{to(client, goal), over("TCP 8081")}},
		"addresses of IPv6":             {np("near", "p", theServer+`, ingress: [{from: [{ipBlock: {cidr: "::/0", except: ["fd00::1:3/128"]}}]}]`), leniency{}, []string{over("6 TCP 8080")}, []string{to(client, server), auth + " > " + server + " 6 TCP 8080"}},
		"addresses select no pods":      {np("near", "p", theServer+`, ingress: [{from: [{ipBlock: {cidr: 0.0.0.0/0}}, {`+theClient+`}]}]`), leniency{podsApart: true}, []string{to(client, server)}, []string{to(auth, server)}},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := readPolicies(tt.policies)
			if err != nil {
				t.Fatal(err)
			}
			w, addrs := smallCluster()
			for want, flows := range map[bool][]string{true: tt.yes, false: tt.no} {
				for _, text := range flows {
					if got := w.allows(list, parseFlow(t, text, addrs), tt.leniency); got != want {
						t.Errorf("%s: %v, want %v", text, got, want)
					}
				}
			}
		})
	}
}

func parseFlow(t *testing.T, text string, addrs map[string][]netip.Addr) flow {
	t.Helper()
	var f flow
	ends, how, _ := strings.Cut(strings.Replace(text, " > ", ">", 1), " ")
	f.from, f.to, _ = strings.Cut(ends, ">")
	family := 0
	if rest, is := strings.CutPrefix(how, "6 "); is {
		how, family = rest, 1
	}
	if _, err := fmt.Sscanf(how, "%s %d", &f.protocol, &f.port); err != nil || addrs[f.from] == nil || addrs[f.to] == nil {
		t.Fatalf("%q: %v", text, err)
	}
	f.source, f.target = addrs[f.from][family], addrs[f.to][family]
	return f
}

func TestReadPolicies(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"an unknown key": {np("near", "p", everyone+`, ingres: []`), "ingres"},
		"to in ingress":  {np("near", "p", everyone+`, ingress: [{to: [{podSelector: {}}]}]`), `unknown field "to"`},
		"from in egress": {np("near", "p", everyone+`, egress: [{from: [{podSelector: {}}]}]`), `unknown field "from"`},
		"the second":     {policies(np("near", "p", everyone), "kinds: x\n"), "NetworkPolicy 2: "},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := readPolicies(tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func FuzzReadPolicies(f *testing.F) {
	for _, t := range trials() {
		f.Add(t.policies)
	}
	w, addrs := smallCluster()
	f.Fuzz(func(t *testing.T, text string) {
		list, err := readPolicies(text)
		if err != nil {
			return
		}
		for from := range w.pods {
			for to := range w.pods {
				w.allows(list, flow{from, to, addrs[from][0], addrs[to][0], arena.TCP, 8080}, leniency{})
			}
		}
	})
}

// Every trial can be told from no policy at all and from a wall: it forbids
// something and allows something, so that neither passes it. Where a network
// may read it otherwise, that shows, too.
func TestTrialsTell(t *testing.T) {
	w, addrs := smallCluster()
	st := &stage{clusterModel: w, addrs: addrs}
	for key := range w.pods {
		st.pods = append(st.pods, key)
	}
	slices.Sort(st.pods)
	names := map[string]bool{}
	for _, x := range trials() {
		name := x.parts[0].name
		for _, p := range x.parts {
			if names[p.name] || !strings.HasPrefix(p.name, "ingress-") && !strings.HasPrefix(p.name, "egress-") {
				t.Errorf("case %q: want a name of its own that begins with the direction", p.name)
			}
			names[p.name] = true
		}
		flows, reason := st.flows(x)
		if reason != "" {
			t.Fatalf("%s: %s", name, reason)
		}
		text := fill(x.policies, func(pod string) netip.Addr { return st.address(pod, x.ipv6) })
		list, err := readPolicies(text)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		want := st.predict(list, flows, leniency{})
		if !slices.Contains(want, true) || !slices.Contains(want, false) {
			t.Errorf("%s: all %d connections are alike", name, len(want))
		}
		if same := cmp.Equal(want, st.predict(list, flows, x.lenient)); same != (x.why == "") {
			t.Errorf("%s: the lenient reading is the same: %v", name, same)
		}
	}
}

// What the trials of the published study expect, in its own words.
func TestStudyTrial(t *testing.T) {
	w, addrs := smallCluster()
	study := trials()[0]
	list, err := readPolicies(study.policies)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, p := range study.parts {
		got[p.name] = w.allows(list, flow{p.from, p.to, addrs[p.from][0], addrs[p.to][0], arena.TCP, firstPort}, leniency{})
	}
	want := map[string]bool{"ingress-allowed": true, "ingress-forbidden": false, "egress-allowed": true, "egress-forbidden": false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
