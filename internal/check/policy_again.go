package check

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// slowEffect is from when on the time until a policy holds is worth a word.
const slowEffect = time.Second

// unstable is found of a case that came out differently when it was carried out again.
const unstable = "unstable"

// retry carries out what failed some more times, with more patience: what never
// holds is told from what holds late, and from what holds now and then. It stops
// where nothing was enforced so far, and when the time for it is used up.
func (st *stage) retry(ctx context.Context, t trial, parts []part, flows []flow, cases []Case) error {
	attempts := map[string]*attempt{}
	for n := 0; n < st.pace.repeats && st.working && st.repeated < st.pace.repeatBudget; n++ {
		var failed []part
		for i, c := range cases {
			if c.Verdict == Fail {
				failed = append(failed, parts[i])
			}
		}
		if len(failed) == 0 {
			break
		}
		begin := time.Now()
		asked := slices.DeleteFunc(slices.Clone(flows), func(f flow) bool {
			return !slices.ContainsFunc(failed, func(p part) bool { return p.has(f) })
		})
		repeats, err := st.enforce(ctx, t, failed, asked, st.pace.repeatTimeout)
		if err != nil {
			return err
		}
		st.repeated += time.Since(begin)
		for i, p := range failed {
			if attempts[p.name] == nil {
				attempts[p.name] = &attempt{}
			}
			attempts[p.name].add(repeats[i])
		}
	}
	for i := range cases {
		if a := attempts[cases[i].Name]; a != nil {
			cases[i] = a.judge(cases[i], st.limit())
		}
	}
	return nil
}

// attempt is what came of a case's repetitions.
type attempt struct {
	failed, held int
	last         Case // that held
	latest       int  // milliseconds until a policy held
}

func (a *attempt) add(c Case) {
	if c.Verdict == Fail {
		a.failed++
		return
	}
	a.held++
	a.last, a.latest = c, max(a.latest, c.Values["settled_ms"])
}

// judge changes the verdict on a case that failed at first, with that patience, by
// what came of its repetitions.
func (a *attempt) judge(first Case, patience time.Duration) Case {
	times := 1 + a.failed + a.held
	switch {
	case a.held == 0:
		first.Text += fmt.Sprintf("; the same in each of %d attempts", times)
	case a.failed == 0 && time.Duration(a.latest)*time.Millisecond > patience:
		return a.last // it takes longer than was waited for at first, and holds every time
	default:
		first.Found = unstable
		first.Text = fmt.Sprintf("not stable: it failed in %d of %d attempts; %s", 1+a.failed, times, first.Text)
	}
	first.Values["attempts"], first.Values["failed_attempts"] = times, 1+a.failed
	return first
}

// seconds is a duration for a sentence.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
