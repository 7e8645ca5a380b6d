package run

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/exit"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/selftest"
	"github.com/cnibench/cnibench/internal/unit"
)

// The self-test's run: seven rounds are the fewest that give intervals of the level
// that runs end by, and the windows are as short as they can be.
const (
	SelfTestRounds   = 7
	selfTestDuration = 400 * time.Millisecond
	selfTestWarmup   = 100 * time.Millisecond
)

// SelfTest plants known truths in a lab, measures them, and hands what was found to
// show. Outside of the lab's container it starts this same command line there, and is
// meanwhile the busy neighbour. Its run directory is f.Out, or none is kept. The error
// carries exit.Gate if something was not found.
func SelfTest(ctx context.Context, f *Request, show func(selftest.Result) error) error {
	kept := f.Out != ""
	if !kept {
		dir, err := os.MkdirTemp("", "cnibench-selftest-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		f.Out = filepath.Join(dir, "run")
	}
	f.Contenders, f.Baseline, f.Checks, f.Arena = selftest.Baseline, selftest.Baseline, "mtu", Lab
	if err := f.Check(); err != nil {
		return err
	}
	j, err := f.Prepare()
	if err != nil {
		return err
	}
	base, err := j.Catalogue.Contender(selftest.Baseline)
	if err != nil {
		return err
	}
	for _, c := range selftest.Contenders(base) {
		j.Catalogue.Contenders = append(j.Catalogue.Contenders, c)
		j.Wanted = append(j.Wanted, c.ID)
	}
	p := &j.Plan
	p.Suite, p.Steps, p.Gaps = "selftest", selftest.Steps(), selftest.Gaps()
	p.Rounds, p.Until, p.MaxTime = f.Rounds, 0, 0
	p.Duration, p.Warmup = unit.Seconds(selfTestDuration.Seconds()), unit.Seconds(selfTestWarmup.Seconds())
	p.Settings["selftest"] = "yes" // a later version must not take it for a plain run's
	if err := j.place.Equip(selftest.Programs()); err != nil {
		return err
	}
	if !lab.Contained() {
		defer beNeighbour()()
		return Contain(ctx)
	}
	return j.place.Inside(ctx, func(ctx context.Context) error {
		j.Wrap = func(a arena.Arena) (arena.Arena, error) { return selftest.Planted{Arena: a}, nil }
		f.Stdout = io.Discard
		if err := j.Run(ctx); err != nil {
			return err
		}
		rec, err := result.Load(f.Out)
		if err != nil {
			return err
		}
		found := selftest.Judge(rec, Assemble(f.Out, rec, analysis.Options{}))
		if err := show(found); err != nil {
			return err
		}
		if !found.Passed {
			return exit.With(exit.Gate, nil)
		}
		return nil
	})
}

// beNeighbour keeps half of the CPUs busy for half of the time, until stop is called.
func beNeighbour() (stop func()) {
	const half = 1500 * time.Millisecond
	done := make(chan struct{})
	var all sync.WaitGroup
	for range max(1, runtime.NumCPU()/2) {
		all.Go(func() {
			for begin := time.Now(); ; {
				select {
				case <-done:
					return
				default:
				}
				if time.Since(begin)%(2*half) < half {
					for until := time.Now().Add(time.Millisecond); time.Now().Before(until); {
					}
				} else {
					time.Sleep(5 * time.Millisecond)
				}
			}
		})
	}
	return func() { close(done); all.Wait() }
}
