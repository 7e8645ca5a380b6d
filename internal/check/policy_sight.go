package check

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
)

// probeResult is what was seen of one connection.
type probeResult struct {
	flow
	reached int        // how many tries reached the target
	kind    agent.Kind // how the last failed try ended
	detail  string
}

// held says whether the connection is in the list.
func held(list []probeResult, f flow) bool {
	return slices.ContainsFunc(list, func(s probeResult) bool { return s.flow == f })
}

// over describes the connection's target and protocol.
func (f flow) over() string { return fmt.Sprintf("%s over %s %d", f.to, f.protocol, f.port) }

// ask tries every connection once, all at the same time.
func (st *stage) ask(ctx context.Context, flows []flow, timeout time.Duration) ([]agent.Answer, error) {
	answers := make([]agent.Answer, len(flows))
	group, ctx := errgroup.WithContext(ctx)
	for i, f := range flows {
		group.Go(func() (err error) {
			answers[i], err = st.probe(ctx, f, timeout)
			return err
		})
	}
	return answers, group.Wait()
}

func (st *stage) probe(ctx context.Context, f flow, timeout time.Duration) (agent.Answer, error) {
	r, err := st.agents[f.from].Probe(ctx, agent.Probe{
		Target: netip.AddrPortFrom(f.target, f.port), Protocol: strings.ToLower(f.protocol), Timeout: timeout,
	})
	return map[string]agent.Answer{arena.TCP: r.TCP, arena.UDP: r.UDP, arena.SCTP: r.SCTP}[f.protocol], err
}

// open waits until every connection passes or the limit is over, and returns the
// connections that do not pass.
func (st *stage) open(ctx context.Context, flows []flow, limit time.Duration) ([]probeResult, error) {
	for end := time.Now().Add(limit); ; {
		late := !time.Now().Before(end)
		timeout := st.pace.forbiddenTimeout
		if late {
			timeout = st.pace.allowedTimeout
		}
		answers, err := st.ask(ctx, flows, timeout)
		if err != nil {
			return nil, err
		}
		var closed []probeResult
		for i, a := range answers {
			if a.Kind != agent.OK {
				closed = append(closed, probeResult{flow: flows[i], kind: a.Kind, detail: a.Detail})
			}
		}
		if len(closed) == 0 || late {
			return closed, nil
		}
		if err := st.rest(ctx); err != nil {
			return nil, err
		}
		// A connection that passed once is not tried again.
		flows = flows[:0:0]
		for _, s := range closed {
			flows = append(flows, s.flow)
		}
	}
}

// rest pauses between rounds of probes.
func (st *stage) rest(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(5 * st.pace.probeInterval):
		return nil
	}
}

// watch waits until exactly the expected connections pass, or those of the lenient
// reading (other) do for a while, or the limit is over. Then it tries every
// connection several times. took is the time until the expected connections
// passed; negative if they never did.
//
// The probes of one look are not all sent in one instant: while a policy begins to
// hold, some may be sent before and some after, and pass as expected by accident.
// Where a later try differs in what the tolerances differ in, the lenient one is waited
// for once; a network that goes over to it is held to it, in all tries anew.
func (st *stage) watch(ctx context.Context, flows []flow, want, other []bool, limit time.Duration) (seen []probeResult, took time.Duration, err error) {
	began := time.Now()
	st.tried, took = true, -1
	var answers []agent.Answer
	var leniently time.Time
	for {
		sent := time.Now()
		if answers, err = st.ask(ctx, flows, st.pace.forbiddenTimeout); err != nil {
			return nil, 0, err
		}
		if matches(answers, want) {
			took = sent.Sub(began)
			st.slowest = max(st.slowest, took)
			break
		}
		if !matches(answers, other) {
			leniently = time.Time{}
		} else if leniently.IsZero() {
			leniently = sent
		} else if time.Since(leniently) > st.pace.lenient {
			want = other
			break
		}
		if time.Since(began) > limit {
			st.waitedInVain = true
			break
		}
		if err := st.rest(ctx); err != nil {
			return nil, 0, err
		}
	}

	seen = make([]probeResult, len(flows))
	free := !slices.Equal(want, other)
	for try := 1; ; try++ {
		if err := st.retryUnanswered(ctx, flows, answers, want); err != nil {
			return nil, 0, err
		}
		if free && took >= 0 && leaning(answers, want, other) {
			free = false
			later, err := st.await(ctx, flows, answers, other, limit-time.Since(began))
			if err != nil {
				return nil, 0, err
			}
			if later != nil {
				answers, want, took, try = later, other, -1, 1
				clear(seen)
			}
		}
		for i, a := range answers {
			seen[i].flow = flows[i]
			if a.Kind == agent.OK {
				seen[i].reached++
			} else {
				seen[i].kind, seen[i].detail = a.Kind, a.Detail
			}
		}
		if try == st.pace.tries {
			// A connection that failed once may have lost a packet.
			st.working = st.working || slices.ContainsFunc(seen, func(s probeResult) bool { return s.reached == 0 })
			return seen, took, nil
		}
		if answers, err = st.ask(ctx, flows, st.pace.forbiddenTimeout); err != nil {
			return nil, 0, err
		}
	}
}

// leaning says whether a connection of which the tolerances differ ended as the other has it.
func leaning(answers []agent.Answer, want, other []bool) bool {
	for i, a := range answers {
		if want[i] != other[i] && want[i] != (a.Kind == agent.OK) {
			return true
		}
	}
	return false
}

// await returns the given answers if exactly the expected connections passed, else those
// of the first look in which they do; nil where the limit is over before.
func (st *stage) await(ctx context.Context, flows []flow, answers []agent.Answer, want []bool, limit time.Duration) (_ []agent.Answer, err error) {
	for end := time.Now().Add(limit); !matches(answers, want); {
		if !time.Now().Before(end) {
			return nil, nil
		}
		if err := st.rest(ctx); err != nil {
			return nil, err
		}
		if answers, err = st.ask(ctx, flows, st.pace.forbiddenTimeout); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// matches says whether exactly the expected connections passed.
func matches(answers []agent.Answer, want []bool) bool {
	for i, a := range answers {
		if want[i] != (a.Kind == agent.OK) {
			return false
		}
	}
	return true
}

// retryUnanswered tries the allowed connections without an answer once more, with
// a longer timeout: a packet may be lost, or the machine busy.
func (st *stage) retryUnanswered(ctx context.Context, flows []flow, answers []agent.Answer, want []bool) error {
	var late []int
	var missing []flow
	for i, a := range answers {
		if want[i] && a.Kind != agent.OK {
			late, missing = append(late, i), append(missing, flows[i])
		}
	}
	if len(missing) == 0 {
		return nil
	}
	lateAnswers, err := st.ask(ctx, missing, st.pace.allowedTimeout)
	for i, at := range late {
		answers[at] = lateAnswers[i]
	}
	return err
}
