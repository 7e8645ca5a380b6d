package run

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/arena/microvm"
	"github.com/cnibench/cnibench/internal/console"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/exit"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/selftest"
	"github.com/cnibench/cnibench/internal/tune"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/vm"
)

// The self-test's run: seven rounds are the fewest that give intervals of the level
// that runs end by, and the windows are as short as they can be.
const (
	SelfTestRounds = 7
	selfTestWarmup = 100 * time.Millisecond
	selfTestBusy   = 1500 * time.Millisecond // for so long the neighbour works at a stretch
)

// stateEnv is the user's state folder, for the process in the lab's container, which
// is another user.
const stateEnv = "CNIBENCH_SELFTEST_STATE"

// SelfTest plants known truths where the request says, measures them, and hands what
// was found to show. For a guest, and for the lab's container, it starts this same
// command line there; beside a lab it is meanwhile the busy neighbour. Its run
// directory is f.Out, or none is kept. The error carries exit.Gate if something was not
// found.
func SelfTest(ctx context.Context, f *Request, show func(selftest.Result) error) error {
	if f.Arena == MicroVM && !microvm.Inside() {
		return f.SameInGuest(ctx)
	}
	if f.Arena != Kube {
		f.Arena = Lab // in a guest, of the guest
	}
	if f.Out == "" {
		dir, err := os.MkdirTemp("", "cnibench-selftest-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		f.Out = filepath.Join(dir, "run")
	}
	j, bed, err := f.selfTest()
	if err != nil {
		return err
	}
	if f.Arena == Lab && !lab.Contained() {
		if dir, err := tune.StateDir(); err == nil && !microvm.Inside() {
			if err := os.Setenv(stateEnv, dir); err != nil {
				return err
			}
		}
		defer selftest.Neighbour(max(1, runtime.NumCPU()/2), 1, selfTestBusy)()
		return Contain(ctx)
	}
	return j.Place.Inside(ctx, func(ctx context.Context) error {
		f.Stdout = io.Discard
		if err := j.Run(ctx); err != nil {
			return err
		}
		rec, err := result.Load(f.Out)
		if err != nil {
			return err
		}
		found := bed.Judge(rec, Assemble(f.Out, rec, analysis.Options{}))
		if dir := os.Getenv(stateEnv); dir != "" && f.Rounds >= SelfTestRounds {
			if err := found.Keep(dir, f.Tool.Version, lab.KernelRelease(), time.Now()); err != nil {
				console.Logger(os.Stderr).Warn("the result is not kept for later runs", "error", err)
			}
		}
		if err := show(found); err != nil {
			return err
		}
		if !found.Passed {
			return exit.With(exit.Gate, nil)
		}
		return nil
	})
}

// remember finds the newest self-test of this machine.
func (f *Request) remember() {
	if dir, err := tune.StateDir(); err == nil && !f.accepted && f.Arena != Kube {
		f.SelfTest = selftest.Newest(dir, f.Tool.Version, lab.KernelRelease())
	}
}

// selfTested is what the fingerprint of a run on that kernel has of the self-test.
func (f *Request) selfTested(kernel string) result.Environment {
	if f.SelfTest == nil || f.SelfTest.Kernel != kernel {
		return nil
	}
	return result.Environment{"selftest": f.SelfTest.String()}
}

// selfTest is the job of the self-test and what it runs on.
func (f *Request) selfTest() (*Job, selftest.Bed, error) {
	bed := selftest.Bed{Baseline: "host"}
	if f.Arena == Kube {
		bed = selftest.Bed{Baseline: ThisCluster, NoNeighbour: "what else runs on a cluster's nodes is not watched"}
		if !f.Cluster.Privileged {
			bed.NoFaults = "pods may not change their own network; give them that right with --privileged"
		}
	} else {
		bed.MTU, _ = strconv.Atoi(f.MTU)
		bed.Emulated = os.Getenv(vm.EmulatedEnv) == "true"
	}
	f.Contenders, f.Baseline, f.Checks = bed.Baseline, bed.Baseline, "mtu"
	f.proves = true
	if err := f.Check(); err != nil {
		return nil, bed, err
	}
	j, err := f.Prepare()
	if err != nil {
		return nil, bed, err
	}
	base, err := j.Catalogue.Contender(bed.Baseline)
	if err != nil {
		return nil, bed, err
	}
	for _, c := range bed.Contenders(base) {
		j.Catalogue.Contenders = append(j.Catalogue.Contenders, c)
		j.Wanted = append(j.Wanted, c.ID)
	}
	var known *contender.Contender
	if k, ok := j.Place.(*KubePlace); ok {
		k.Options.Beside, k.Options.NetAdmin = true, f.Cluster.Privileged
		known = base
	}
	j.Wrap = func(a arena.Arena) (arena.Arena, error) { return selftest.Planted{Arena: a, Bed: bed, Of: known}, nil }
	p := &j.Plan
	p.Suite, p.Steps, p.Gaps = "selftest", bed.Steps(), bed.Gaps()
	p.Rounds, p.Until, p.MaxTime = f.Rounds, 0, 0
	p.Duration, p.Warmup = unit.Seconds(bed.Window().Seconds()), unit.Seconds(selfTestWarmup.Seconds())
	p.Settings["selftest"] = "yes" // a later version must not take it for a plain run's
	return j, bed, nil
}
