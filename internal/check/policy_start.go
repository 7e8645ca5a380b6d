package check

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/unit"
)

// startCase is the name of the case about new pods.
const startCase = "start"

// startPolicy forbids the client, and new pods with its label, to speak.
var startPolicy = np("near", "start", "podSelector: {matchLabels: {run: client}}, policyTypes: [Egress]")

// newcomers are the new pods of the case: on either node one that may not speak and one that
// may, which shows that the others could have.
var newcomers = []struct {
	beside string
	run    string // the label by which policies select
	may    bool
}{
	{"server", "client", false}, {"client", "client", false}, {"server", "newcomer", true}, {"client", "newcomer", true},
}

// start tells whether pods that start under an older policy are isolated from their first
// instant, as the specification wants it ("even from the very first instant that any
// container in that Pod is started"), and how long they are open else. The policy is seen
// to cut off an older pod before. Allowed connections may take their time.
func (st *stage) start(ctx context.Context) (c Case, err error) {
	c = Case{Name: startCase, Verdict: Skip, Values: map[string]int{}}
	f := flow{
		from: effectFrom, to: effectTo, source: st.address(effectFrom, false), target: st.address(effectTo, false),
		protocol: arena.TCP, port: firstPort,
	}
	if st.tried && !st.working {
		c.Text = "no policy had an effect"
		return c, nil
	}
	closed, err := st.open(ctx, []flow{f}, st.limit())
	if err != nil {
		return c, err
	}
	if len(closed) > 0 {
		c.Text = fmt.Sprintf("without any policy %s does not reach %s (%s)", f.from, f.over(), closed[0].kind)
		return c, nil
	}
	_, happened, err := st.until(ctx, f, true, func() error { return st.sandbox.Apply(ctx, []byte(startPolicy)) })
	if err != nil {
		return c, err
	}
	if !happened {
		c.Text = fmt.Sprintf("a policy on what pods send had no effect within %v", st.pace.effectTimeout)
		return c, st.sandbox.Delete(ctx)
	}
	saw := make([]arena.Attempts, len(newcomers))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, n := range newcomers {
		group.Go(func() (err error) {
			saw[i], err = st.sandbox.Newcomer(groupCtx, "near", n.beside, fmt.Sprintf("new-%d", i+1), map[string]string{"run": n.run}, netip.AddrPortFrom(f.target, f.port), st.pace.young)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		if ctx.Err() != nil {
			return c, ctx.Err()
		}
		c.Text = "new pods could not be asked: " + err.Error()
		return c, st.sandbox.Delete(ctx)
	}
	st.judgeStart(&c, f, saw)
	return c, st.sandbox.Delete(ctx)
}

// judgeStart judges what the newcomers reached.
func (st *stage) judgeStart(c *Case, f flow, saw []arena.Attempts) {
	var open []string
	var longest, allowed time.Duration
	for i, n := range newcomers {
		a, node := saw[i], st.places.nodes["near/"+n.beside]
		switch {
		case n.may && a.Reached == 0:
			c.Text = fmt.Sprintf("a new pod on %s that may reach %s did not within %s, either", node, f.over(), seconds(st.pace.young))
			return
		case n.may:
			allowed = max(allowed, a.First)
		case a.Reached > 0:
			longest = max(longest, a.Last)
			open = append(open, fmt.Sprintf("%s of %d on %s, the last begun %s after its first instant", unit.Plural(a.Reached, "connection"), a.Tried, node, hundredths(a.Last)))
		}
	}
	c.Values["open_ms"], c.Values["allowed_ms"] = int(longest.Milliseconds()), int(allowed.Milliseconds())
	if len(open) == 0 {
		c.Verdict, c.Found = Pass, enforced
		c.Text = fmt.Sprintf("pods that start under an older policy are isolated from their first instant; one that may reached %s after %s", f.over(), hundredths(allowed))
		return
	}
	c.Verdict, c.Found = Fail, leaks
	c.Text = fmt.Sprintf("pods that started under an older policy reached %s, which it forbids: %s", f.over(), strings.Join(open, "; "))
	if longest > st.pace.young-2*time.Second {
		c.Text += fmt.Sprintf("; they were not isolated within %s", seconds(st.pace.young))
	}
	c.Next = "Kubernetes wants pods isolated from the first instant of their containers. Until the policy engine does so, don't rely on policies for pods that have just started."
}

// hundredths writes a time as newcomers measure it.
func hundredths(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
