package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
)

// simulated is a cluster that is none: a connection passes if the evaluator, or a
// broken one, says so, and in a bubble (testing/synctest) its time is one that no busy
// machine disturbs. It shows that the check finds what is broken, and says nothing of
// any real network.
type simulated struct {
	// allows is the policy engine; nil is the evaluator itself.
	allows func(w clusterModel, list []networkPolicy, f flow) bool
	// passes is the network below; nil lets everything through.
	passes func(f flow, asked int) bool
	lag    time.Duration // until a policy, or its deletion, has its effect
	stuck  bool          // deletions have none
	noSCTP bool          // the kernels have none
	noIPv6 bool
	// onApply is told of what is applied; may be nil.
	onApply func(list []networkPolicy)
	denied  agent.Kind    // how a forbidden connection ends; "": it times out
	young   time.Duration // how long new pods are open
	silent  bool          // new pods reach nothing
	fallen  time.Time     // when the engine ends; never where zero

	mu           sync.Mutex
	clusterModel clusterModel
	addrs        map[string][]netip.Addr
	policies     []networkPolicy // that have an effect
	applied      []networkPolicy
	since        time.Time
	asked        map[flow]int
	closed       bool
}

var (
	_ arena.Network = (*simulated)(nil)
	_ arena.Sandbox = (*simulated)(nil)
)

// Sandbox makes the pods that it is asked for.
func (s *simulated) Sandbox(_ context.Context, namespaces []arena.SandboxNamespace) (arena.Sandbox, error) {
	s.clusterModel, s.addrs = smallCluster()
	s.asked = map[flow]int{}
	for _, ns := range namespaces {
		for _, p := range ns.Pods {
			key := ns.Name + "/" + p.Name
			if s.addrs[key] == nil || p.Node < 0 || p.Node >= len(s.Nodes()) {
				return nil, fmt.Errorf("a pod %s on node %d", key, p.Node)
			}
			if s.noIPv6 {
				s.addrs[key] = s.addrs[key][:1]
			}
		}
	}
	return s, nil
}

func (s *simulated) Pod(namespace, name string) (arena.Endpoint, error) {
	return simPod{s, namespace + "/" + name}, nil
}

func (s *simulated) Addrs(namespace, name string) []netip.Addr { return s.addrs[namespace+"/"+name] }

func (s *simulated) Apply(_ context.Context, manifests []byte) error {
	list, err := readPolicies(string(manifests))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onApply != nil {
		s.onApply(list)
	}
	s.take(list)
	return err
}

func (s *simulated) Delete(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stuck {
		return nil
	}
	s.take(nil)
	return nil
}

func (s *simulated) take(list []networkPolicy) {
	s.force()
	s.applied, s.since = list, time.Now()
}

// force lets what was applied have its effect, if it is time.
func (s *simulated) force() {
	if time.Since(s.since) >= s.lag {
		s.policies = s.applied
	}
}

// Newcomer is a pod of the cluster for a while.
func (s *simulated) Newcomer(_ context.Context, namespace, _, name string, labels map[string]string, target netip.AddrPort, life time.Duration) (a arena.Attempts, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.force()
	key := namespace + "/" + name
	w := clusterModel{namespaces: s.clusterModel.namespaces, pods: maps.Clone(s.clusterModel.pods)}
	w.pods[key] = modelPod{namespace, labels, nil}
	allows := s.allows
	if allows == nil {
		allows = evaluated
	}
	a.Tried = 100
	f := flow{from: key, to: effectTo, source: netip.AddrFrom4([4]byte{10, 0, 9, 9}), target: target.Addr(), protocol: arena.TCP, port: target.Port()}
	switch {
	case s.silent:
	case allows(w, s.policies, f):
		a = arena.Attempts{Tried: 100, Reached: 100, Last: life}
	case s.young > 0:
		a.Reached, a.Last = 10, s.young
	}
	return a, nil
}

func (s *simulated) EngineEnds(context.Context) (map[string]int, error) {
	ends := 1 // of former times
	if !s.fallen.IsZero() && time.Now().After(s.fallen) {
		ends++
	}
	return map[string]int{"engine in pod kube-system/engine-1 on node2": ends, "proxy in pod kube-system/engine-1 on node2": 0}, nil
}

func evaluated(w clusterModel, list []networkPolicy, f flow) bool {
	return w.allows(list, f, leniency{})
}

func (s *simulated) Close(context.Context) error {
	s.closed = true
	return nil
}

// reached says how a connection ends.
func (s *simulated) reached(f flow) agent.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.force()
	s.asked[f]++
	allows := s.allows
	if allows == nil {
		allows = evaluated
	}
	if !allows(s.clusterModel, s.policies, f) {
		if s.denied != "" {
			return agent.Answer{Kind: s.denied}
		}
		return agent.Answer{Kind: agent.TimedOut}
	}
	if s.passes != nil && !s.passes(f, s.asked[f]) {
		return agent.Answer{Kind: agent.TimedOut}
	}
	return agent.Answer{Kind: agent.OK, RTT: time.Millisecond}
}

// What the check does not use of a network.
func (s *simulated) Nodes() []arena.Endpoint { return make([]arena.Endpoint, 2) }
func (s *simulated) Pods() []arena.Endpoint  { return nil }
func (s *simulated) Pair(context.Context, string) (arena.Pair, error) {
	return arena.Pair{}, errors.New("no pairs here")
}
func (s *simulated) Service(context.Context, []arena.Port, int) (arena.Pair, time.Duration, error) {
	return arena.Pair{}, 0, errors.New("no Services here")
}
func (s *simulated) Uplink() string                                     { return "" }
func (s *simulated) Effort(context.Context) (map[string]float64, error) { return nil, nil }
func (s *simulated) Notes() []result.Reason                             { return nil }
func (s *simulated) Reset(context.Context) error                        { return nil }
func (s *simulated) Fault() error                                       { return nil }
func (s *simulated) Down(context.Context) error                         { return nil }

// nodeOfSim is where the table of cases puts the pod.
func nodeOfSim(key string) string {
	for _, ns := range sandboxNamespaces() {
		for _, p := range ns.Pods {
			if ns.Name+"/"+p.Name == key {
				return fmt.Sprintf("node%d", p.Node+1)
			}
		}
	}
	return ""
}

// simPod is a pod of the simulated cluster.
type simPod struct {
	cluster *simulated
	key     string
}

func (p simPod) Name() string     { return p.key }
func (p simPod) Node() string     { return nodeOfSim(p.key) }
func (p simPod) Addr() netip.Addr { return p.cluster.addrs[p.key][0] }
func (p simPod) Dir() string      { return "" }
func (p simPod) CPUs() []int      { return nil }

// The pod is its own agent.
func (p simPod) EchoAt(_ context.Context, at netip.AddrPort) (netip.AddrPort, error) { return at, nil }

func (p simPod) EchoSCTP(context.Context, netip.AddrPort) error {
	if p.cluster.noSCTP {
		return errors.New("this kernel has no SCTP")
	}
	return nil
}

func (p simPod) Probe(ctx context.Context, probe agent.Probe) (agent.Reached, error) {
	f := flow{from: p.key, protocol: strings.ToUpper(probe.Protocol), target: probe.Target.Addr(), port: probe.Target.Port()}
	for key, addrs := range p.cluster.addrs {
		if i := slices.Index(addrs, f.target); i >= 0 {
			f.to, f.source = key, p.cluster.addrs[p.key][i]
		}
	}
	a := p.cluster.reached(f)
	wait := a.RTT
	if a.Kind == agent.TimedOut {
		wait = probe.Timeout
	}
	select {
	case <-ctx.Done():
		return agent.Reached{}, ctx.Err()
	case <-time.After(wait):
		return agent.Reached{TCP: a, UDP: a, SCTP: a}, nil
	}
}

// Start is for real agents.
func (simPod) Start(context.Context, host.Command) (host.Process, error) {
	return nil, errors.New("no processes here")
}
