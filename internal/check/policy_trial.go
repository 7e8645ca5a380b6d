package check

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
)

// carryOut carries out one trial: all connections must pass without policies,
// as the policies say with them, and all again after their deletion.
func (st *stage) carryOut(ctx context.Context, t trial) (cases []Case, err error) {
	skip := func(p part, reason string) {
		cases = append(cases, Case{Name: p.name, Verdict: Skip, Text: reason})
	}
	flows, reason := st.flows(t)
	if reason != "" {
		for _, p := range t.parts {
			skip(p, reason)
		}
		return cases, nil
	}
	limit := st.limit()
	if !st.settled {
		limit = st.pace.settle
	}
	closed, err := st.open(ctx, flows, limit)
	if err != nil {
		return nil, err
	}
	st.settled = true
	var parts []part
	for _, p := range t.parts {
		i := slices.IndexFunc(closed, func(s probeResult) bool { return p.has(s.flow) })
		if i < 0 {
			parts = append(parts, p)
			continue
		}
		reason := fmt.Sprintf("without any policy %s does not reach %s (%s)", closed[i].from, closed[i].over(), closed[i].kind)
		if !slices.ContainsFunc(flows, func(f flow) bool { return f.protocol == closed[i].protocol && !held(closed, f) }) {
			st.unreachable[closed[i].protocol] = reason // no trial waits for this protocol again
		}
		skip(p, reason)
	}
	flows = slices.DeleteFunc(flows, func(f flow) bool {
		return !slices.ContainsFunc(parts, func(p part) bool { return p.has(f) })
	})
	if len(flows) == 0 {
		return cases, nil
	}

	tried, err := st.enforce(ctx, t, parts, flows, st.limit())
	if err == nil {
		err = st.retry(ctx, t, parts, flows, tried)
	}
	return append(cases, tried...), err
}

// enforce applies the trial's policies, asks, deletes the policies and asks again.
// It returns one case for each part.
func (st *stage) enforce(ctx context.Context, t trial, parts []part, flows []flow, limit time.Duration) (cases []Case, err error) {
	manifests := st.manifests(t)
	list, err := readPolicies(manifests)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", parts[0].name, err)
	}
	want, other := st.predict(list, flows, leniency{}), st.predict(list, flows, t.lenient)
	if err := st.sandbox.Apply(ctx, []byte(manifests)); err != nil {
		return nil, fmt.Errorf("%s: %w", parts[0].name, err)
	}
	seen, took, err := st.watch(ctx, flows, want, other, limit)
	if err != nil {
		return nil, err
	}
	if err := st.sandbox.Delete(ctx); err != nil {
		return nil, err
	}
	for _, p := range parts {
		c := judgePolicy(p, seen, want, st.pace.tries)
		if c.Verdict == Fail && t.why != "" && judgePolicy(p, seen, other, st.pace.tries).Verdict == Pass {
			c.Verdict, c.Found, c.Text, c.Next = Skip, t.found, t.why, ""
		}
		switch {
		case c.Verdict == Fail:
			c.Text += fmt.Sprintf(", not within %s of the policy", seconds(limit))
			c.Next = st.next()
			st.places.note(p, seen, want)
		case took > slowEffect:
			c.Text += ", enforced after " + seconds(took)
		}
		if took >= 0 {
			c.Values["settled_ms"] = int(took.Milliseconds())
		}
		cases = append(cases, c)
	}
	return cases, st.reopen(ctx, parts[0].name, flows, seen)
}

// manifests are the trial's policies for the pods that there are.
func (st *stage) manifests(t trial) string {
	return fill(t.policies, func(pod string) netip.Addr { return st.address(pod, t.ipv6) })
}

// reopen checks that the connections which a policy closed pass again.
func (st *stage) reopen(ctx context.Context, name string, flows []flow, seen []probeResult) error {
	if !slices.ContainsFunc(seen, func(s probeResult) bool { return s.reached == 0 }) {
		return nil
	}
	closed, err := st.open(ctx, flows, st.limit())
	switch {
	case err != nil:
		return err
	case len(closed) == 0:
		st.reopened++
	default:
		st.waitedInVain = true
		st.stayedClosed = append(st.stayedClosed, fmt.Sprintf("%s: %s does not reach %s (%s)", name, closed[0].from, closed[0].over(), closed[0].kind))
	}
	return nil
}

// has says whether the connection belongs to the part.
func (p part) has(f flow) bool {
	return p.from == "" || p.from == f.from && p.to == f.to
}

// flows returns the connections of a trial, or the reason why they can't be tried.
func (st *stage) flows(t trial) (list []flow, reason string) {
	ports := t.ports
	if len(ports) == 0 {
		ports = []port{{arena.TCP, firstPort}}
	}
	for _, p := range ports {
		if why := st.unreachable[p.protocol]; why != "" {
			return nil, why
		}
	}
	for _, from := range st.pods {
		for _, to := range st.pods {
			if from == to {
				continue
			}
			for _, p := range ports {
				f := flow{from, to, st.address(from, t.ipv6), st.address(to, t.ipv6), p.protocol, p.number}
				if !f.source.IsValid() || !f.target.IsValid() {
					return nil, "the pods have no IPv6 addresses"
				}
				if slices.ContainsFunc(t.parts, func(p part) bool { return p.has(f) }) {
					list = append(list, f)
				}
			}
		}
	}
	return list, ""
}

// predict says of each connection whether the policies allow it.
func (st *stage) predict(list []networkPolicy, flows []flow, d leniency) []bool {
	want := make([]bool, len(flows))
	for i, f := range flows {
		want[i] = st.clusterModel.allows(list, f, d)
	}
	return want
}

// limit returns how long to wait for an effect. A busy network may take long now
// and then. Once a policy had no effect at all, the next waits are shorter.
func (st *stage) limit() time.Duration {
	switch {
	case st.tried && !st.working:
		return st.pace.idleTimeout
	case !st.waitedInVain:
		return st.pace.effectTimeout
	}
	return min(st.pace.effectTimeout, max(st.pace.laterTimeout, 10*st.slowest))
}
