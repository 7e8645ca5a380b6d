package check

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/text"
)

// policy tries NetworkPolicies on pods that are clients and servers to each
// other: for each of the table in policy_cases.yaml it proves that all of its
// connections pass without any policy, applies it, asks every connection
// several times, compares what passes with what policy_eval.go says, and
// deletes it. policy_trial.go is how one is carried out, policy_judge.go how it
// is judged, policy_effect.go how the time until it has an effect is found, policy_start.go
// what new pods may, policy_engine.go that the engine lives meanwhile.
type policy struct {
	pace pace
	one  *OneCase // nil: all cases
	hire hiring
}

// asker is what the check uses of an agent.
type asker interface {
	EchoAt(ctx context.Context, at netip.AddrPort) (netip.AddrPort, error)
	EchoSCTP(ctx context.Context, at netip.AddrPort) error
	Probe(ctx context.Context, p agent.Probe) (agent.Reached, error)
}

// hiring starts an agent at an endpoint, or finds it there.
type hiring func(ctx context.Context, s *Subject, e arena.Endpoint) (asker, error)

func hire(ctx context.Context, s *Subject, e arena.Endpoint) (asker, error) { return s.Agent(ctx, e) }

// OneCase asks for one case of the check alone.
type OneCase struct {
	Name string
	Hold time.Duration     // how long the pods and the policies stay after the verdict
	Say  func(text string) `json:"-"`
}

// Policy is the check of NetworkPolicies with one case alone. The error names the
// nearest case.
func Policy(one OneCase) (Check, error) {
	names := []string{startCase}
	for _, t := range trials() {
		for _, p := range t.parts {
			names = append(names, p.name)
		}
	}
	name, err := text.Find("case", one.Name, names, func(s string) string { return s })
	one.Name = name
	return policy{usualPace, &one, hire}, err
}

func (policy) Info() Info {
	return Info{"policy", "do NetworkPolicies let through what they allow and nothing else, and after what time?"}
}

// pace says how long the check waits and how often it asks.
type pace struct {
	forbiddenTimeout time.Duration // for the answer of a probe that may be forbidden
	allowedTimeout   time.Duration // for the answer of an allowed probe that did not answer within forbiddenTimeout
	tries            int           // of every connection while a policy holds
	settle           time.Duration // until new pods reach each other
	effectTimeout    time.Duration // until a policy has its effect, or is gone
	laterTimeout     time.Duration // the same once a policy had no effect, or ten times the slowest effect so far
	idleTimeout      time.Duration // the same while no policy has had any effect
	lenient          time.Duration // how long a lenient reading must hold to be believed
	probeInterval    time.Duration // between the probes that time an effect
	times            int           // how often the effect is timed
	repeats          int           // of a case that failed
	repeatTimeout    time.Duration // until a policy has its effect in a repetition
	repeatBudget     time.Duration // for all repetitions
	young            time.Duration // how long new pods are asked
	look             time.Duration // between looks at the engine's own pods
}

var usualPace = pace{
	forbiddenTimeout: 500 * time.Millisecond, allowedTimeout: patience, tries: 3,
	settle: settleTime, effectTimeout: 20 * time.Second, laterTimeout: 5 * time.Second, idleTimeout: 2 * time.Second, lenient: 2 * time.Second,
	probeInterval: 10 * time.Millisecond, times: 5,
	repeats: 2, repeatTimeout: 20 * time.Second, repeatBudget: 2 * time.Minute,
	young: 5 * time.Second, look: 2 * time.Second,
}

// The facts that the check can find; more are in policy_cases.go.
const (
	enforced  = "enforced"       // what is forbidden is cut off, what is allowed passes
	wideOpen  = "open"           // nothing is cut off
	leaks     = "leaks"          // something forbidden passes
	cuts      = "cuts"           // something allowed is cut off
	wrongBoth = "leaks and cuts" // both
	timed     = "timed"          // the time until a policy has an effect
)

func (c policy) Run(ctx context.Context, s *Subject) (res Result, err error) {
	res = Result{Check: "policy", Contender: s.Contender.ID}
	skip := func(reason, next string) (Result, error) {
		res.note(Case{Name: "network", Verdict: Skip, Text: reason, Next: next})
		return res, nil
	}
	if s.Contender.Datapath.Attach == "none" {
		return skip("pods that share their node's network are no subject of NetworkPolicy", "")
	}
	sandbox, err := s.Network.Sandbox(ctx, placePods(sandboxNamespaces(), len(s.Network.Nodes())))
	if u := arena.AsUnsupported(err); u != nil {
		return skip(u.Reason, u.Remedy)
	}
	if err != nil {
		return res, err
	}
	st := &stage{pace: c.pace, subject: s, sandbox: sandbox, unreachable: map[string]string{}}
	defer func() { err = errors.Join(err, st.leave(context.WithoutCancel(ctx))) }()
	if err := st.enter(ctx, c.hire); err != nil {
		return res, err
	}
	watched, stop := st.watchEngine(ctx)
	err = c.ask(watched, st, &res)
	stop()
	var crash *crashed
	if errors.As(context.Cause(watched), &crash) && ctx.Err() == nil {
		cases := res.Cases
		res.Cases = nil
		res.note(crash.fallen()) // first: others may follow from it
		res.Cases = append(res.Cases, cases...)
		return res, nil
	}
	return res, err
}

// ask carries out the cases.
func (c policy) ask(ctx context.Context, st *stage, res *Result) error {
	for _, t := range trials() {
		if c.one != nil && !slices.ContainsFunc(t.parts, func(p part) bool { return p.name == c.one.Name }) {
			continue
		}
		cases, err := st.carryOut(ctx, t)
		for _, c := range cases {
			res.note(c)
		}
		if err != nil {
			return err
		}
		if c.one != nil {
			return st.show(ctx, st.manifests(t), res, c.one)
		}
	}
	st.name(res)
	young, err := st.start(ctx)
	if err != nil {
		return err
	}
	res.note(young)
	if c.one != nil {
		return st.show(ctx, startPolicy, res, c.one)
	}
	timing, err := st.effect(ctx)
	if err != nil {
		return err
	}
	res.note(timing)
	for _, name := range []string{"effect", "back"} {
		if ms, ok := timing.Values[name+"_ms"]; ok {
			res.set(res.key(name), fmt.Sprintf("%d: milliseconds, %s", ms, timing.Text))
		}
	}
	res.note(st.removal())
	return nil
}

// name says in the first case that failed on which node all leaks are.
func (st *stage) name(res *Result) {
	if c := res.MainCase(); c != nil && c.Verdict == Fail {
		if only := st.places.only(); only != "" {
			c.Next = only
			res.set(res.key("node"), only)
		}
	}
}

// show says what one case asked and found, and leaves its policies and pods for a
// while.
func (st *stage) show(ctx context.Context, manifests string, res *Result, one *OneCase) error {
	st.name(res)
	one.Say("the policies:\n" + manifests)
	for _, c := range res.Cases {
		one.Say(fmt.Sprintf("%s: %s: %s", c.Name, c.Verdict, c.Text))
	}
	if one.Hold <= 0 {
		return nil
	}
	if err := st.sandbox.Apply(ctx, []byte(manifests)); err != nil {
		return err
	}
	one.Say(fmt.Sprintf("the policies are applied again; they and the pods stay for %s (kubectl get pods,networkpolicies -A)", one.Hold))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(one.Hold):
	}
	return st.sandbox.Delete(ctx)
}

// note adds the case to the result and to the values of the environment.
func (r *Result) note(c Case) {
	r.Cases = append(r.Cases, c)
	r.set(r.key(c.Name), string(c.Verdict)+": "+c.Text)
}

// placePods returns a copy of the namespaces with every pod on a node that exists.
func placePods(list []arena.SandboxNamespace, nodes int) []arena.SandboxNamespace {
	list = slices.Clone(list)
	for i, ns := range list {
		list[i].Pods = slices.Clone(ns.Pods)
		for k := range ns.Pods {
			list[i].Pods[k].Node %= max(1, nodes)
		}
	}
	return list
}

// stage is the sandbox with an agent in every pod.
type stage struct {
	pace
	subject *Subject
	sandbox arena.Sandbox

	pods         []string // "namespace/name", in order
	clusterModel clusterModel
	addrs        map[string][]netip.Addr
	agents       map[string]asker

	// unreachable are the protocols over which no pod reaches another even without
	// a policy, each with the reason.
	unreachable  map[string]string
	settled      bool // pods have reached each other
	tried        bool // at least one policy was applied
	places       places
	repeated     time.Duration    // spent on repetitions
	waitedInVain bool             // at least one policy had no effect within the limit
	working      bool             // at least one policy had an effect
	slowest      time.Duration    // the longest time that an effect took so far
	reopened     int              // policies whose connections passed again after the deletion
	stayedClosed []string         // connections that did not
	hired        []arena.Endpoint // endpoints with an agent
}

// enter starts the agents and their echoes.
func (st *stage) enter(ctx context.Context, hire hiring) error {
	st.clusterModel = clusterModel{namespaces: map[string]map[string]string{}, pods: map[string]modelPod{}}
	st.places = places{nodes: map[string]string{}, forbidden: map[string]int{}, leaked: map[string]int{}}
	st.addrs, st.agents = map[string][]netip.Addr{}, map[string]asker{}
	for _, ns := range sandboxNamespaces() {
		st.clusterModel.namespaces[ns.Name] = ns.Labels
		for _, p := range ns.Pods {
			key := ns.Name + "/" + p.Name
			st.pods = append(st.pods, key)
			st.clusterModel.pods[key] = modelPod{ns.Name, p.Labels, p.Ports}
			e, err := st.sandbox.Pod(ns.Name, p.Name)
			if err != nil {
				return err
			}
			st.hired = append(st.hired, e)
			st.places.nodes[key] = e.Node()
			if st.agents[key], err = hire(ctx, st.subject, e); err != nil {
				return err
			}
			st.addrs[key] = st.sandbox.Addrs(ns.Name, p.Name)
			if err := st.listen(ctx, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// listen opens the pod's echoes at all of its addresses.
func (st *stage) listen(ctx context.Context, pod string) error {
	if len(st.addrs[pod]) == 0 {
		return fmt.Errorf("pod %s has no address", pod)
	}
	for _, addr := range st.addrs[pod] {
		for port := uint16(firstPort); port <= lastPort; port++ {
			at := netip.AddrPortFrom(addr, port)
			if _, err := st.agents[pod].EchoAt(ctx, at); err != nil {
				return err
			}
			if st.unreachable[arena.SCTP] != "" {
				continue
			}
			if err := st.agents[pod].EchoSCTP(ctx, at); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				st.unreachable[arena.SCTP] = err.Error()
			}
		}
	}
	return nil
}

// leave ends the agents and the sandbox.
func (st *stage) leave(ctx context.Context) error {
	for _, e := range st.hired {
		st.subject.dismiss(e)
	}
	return st.sandbox.Close(ctx)
}

// address returns the pod's first address, or its first IPv6 address. A pod
// without one gives the zero Addr.
func (st *stage) address(pod string, ipv6 bool) netip.Addr {
	i := slices.IndexFunc(st.addrs[pod], func(a netip.Addr) bool { return !ipv6 || a.Is6() })
	if i < 0 {
		return netip.Addr{}
	}
	return st.addrs[pod][i]
}

// removal judges whether connections passed again after their policy was deleted.
func (st *stage) removal() Case {
	c := Case{Name: "removal", Verdict: Pass, Found: enforced, Values: map[string]int{"removed": st.reopened, "stuck": len(st.stayedClosed)}}
	switch {
	case len(st.stayedClosed) > 0:
		c.Verdict, c.Found = Fail, cuts
		c.Text = "what a policy had closed stayed closed after it was deleted: " + st.stayedClosed[0]
		if n := len(st.stayedClosed) - 1; n > 0 {
			c.Text += fmt.Sprintf("; and so after %d others", n)
		}
		c.Next = st.next()
	case st.reopened == 0:
		c.Verdict, c.Found, c.Text = Skip, "", "no policy had an effect that could be taken back"
	default:
		c.Text = fmt.Sprintf("what %d policies had closed was open again after each was deleted", st.reopened)
	}
	return c
}

// next says what to do about policies that are not enforced.
func (st *stage) next() string {
	if p := st.subject.Contender.Features.Policy; st.working || p.Ingress || p.Egress {
		return "Don't rely on this kind of policy here; look at the log of the policy engine on the pods' nodes."
	}
	return "Take another contender where NetworkPolicy is needed."
}
