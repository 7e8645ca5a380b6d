package check

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// engineCase is the name of the case about an engine that ended.
const engineCase = "engine"

// crashed is why the check ended before its time: programs of the policy engine ended.
type crashed struct{ what []string }

func (e *crashed) Error() string { return strings.Join(e.what, "; ") }

// watchEngine returns a context that ends with a *crashed as its cause once a program of
// the pod network's own pods ends. stop ends the watch, after a last look.
func (st *stage) watchEngine(ctx context.Context) (watched context.Context, stop func()) {
	watched, end := context.WithCancelCause(ctx)
	before, err := st.sandbox.EngineEnds(ctx)
	if err != nil || len(before) == 0 { // nobody knows
		return watched, func() { end(nil) }
	}
	look := func() {
		now, err := st.sandbox.EngineEnds(ctx)
		if err != nil {
			return // the API server is away for a moment: a crash is seen by its count later
		}
		var what []string
		for _, name := range slices.Sorted(maps.Keys(now)) {
			if n, known := before[name]; known && now[name] > n {
				what = append(what, name)
			}
		}
		if len(what) > 0 {
			end(&crashed{what})
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-watched.Done():
				return
			case <-time.After(st.pace.look):
				look()
			}
		}
	}()
	return watched, func() {
		if watched.Err() == nil {
			look()
		}
		end(nil)
		<-done
	}
}

// fallen is the case of an engine that ended in the middle of the check.
func (e *crashed) fallen() Case {
	return Case{
		Name: engineCase, Verdict: Fail, Found: "crashed",
		Text: "the policy engine ended in the middle of the check, which was given up: " + e.Error(),
		Next: "See its last words with kubectl logs --previous, and check again when it runs; what cases found about then need not be what its policies do.",
	}
}
