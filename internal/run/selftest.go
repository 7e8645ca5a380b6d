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
	"github.com/cnibench/cnibench/internal/arena/guest"
	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/selftest"
	"github.com/cnibench/cnibench/internal/text/console"
	"github.com/cnibench/cnibench/internal/tune"
	"github.com/cnibench/cnibench/internal/unit"
)

// Seven rounds are the fewest that give intervals at the confidence by which runs end.
const (
	SelfTestRounds = 7
	selfTestWarmup = 100 * time.Millisecond
	selfTestBusy   = 1500 * time.Millisecond // the neighbour works so long without a pause
)

// stateEnv passes the user's state folder to the process in the lab's container, where
// the user is another.
const stateEnv = "CNIBENCH_SELFTEST_STATE"

// SelfTest plants known truths in the request's arena, measures them, and hands the
// result to show. For a guest and for the lab's container it starts this same command
// line there; while a lab runs, this process is its busy neighbour. The run directory is
// f.Out; if that is empty, it is removed afterwards. The error carries exit.Gate if a
// planted truth was not found.
func SelfTest(ctx context.Context, f *Request, show func(selftest.Result) error) error {
	if err := f.NoGuestUnasked(); err != nil {
		return err
	}
	if f.Arena == MicroVM && !guest.Inside() {
		return f.SameInGuest(ctx)
	}
	if f.Arena != Kube {
		f.Arena = Lab // also in a guest: the lab there
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
		if dir, err := tune.StateDir(); err == nil && !guest.Inside() {
			if err := os.Setenv(stateEnv, dir); err != nil {
				return err
			}
		}
		busy := selfTestBusy
		if bed.LongTurns { // a cycle takes seconds, and some should be without the neighbour
			busy *= 10
		}
		defer selftest.Neighbour(max(1, runtime.NumCPU()/2), 1, busy)()
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

// findSelfTest finds the newest self-test of this machine.
func (f *Request) findSelfTest() {
	if dir, err := tune.StateDir(); err == nil && !f.accepted && f.Arena != Kube {
		f.SelfTest = selftest.Newest(dir, f.Tool.Version, lab.KernelRelease())
	}
}

// selfTested returns the self-test as a key of a run's environment; nil if there was
// none under the run's kernel.
func (f *Request) selfTested(kernel string) result.Environment {
	if f.SelfTest == nil || f.SelfTest.Kernel != kernel {
		return nil
	}
	return result.Environment{"selftest": f.SelfTest.String()}
}

// selfTest returns the self-test's job and its bed, the planted truths.
func (f *Request) selfTest() (*Job, selftest.Bed, error) {
	bed := selftest.Bed{Baseline: "host"}
	if f.Arena == Kube {
		bed = selftest.Bed{Baseline: ThisCluster, NoNeighbour: "what else runs on a cluster's nodes is not watched", LongTurns: true}
		if !f.Cluster.Privileged {
			bed.NoFaults = "pods may not change their own network; give them that right with --privileged"
		}
	} else {
		bed.MTU, _ = strconv.Atoi(f.MTU)
		bed.Emulated = os.Getenv(vm.EmulatedEnv) == "true"
		bed.LongTurns = bed.Emulated
	}
	f.Contenders, f.Baseline, f.Checks = bed.Baseline, bed.Baseline, "mtu"
	f.isSelfTest = true
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
		k.Options.NetAdmin = f.Cluster.Privileged
		known = base
	}
	j.Wrap = func(a arena.Arena) (arena.Arena, error) { return selftest.Plant(a, bed, known), nil }
	p := &j.Plan
	p.Suite, p.Steps, p.Gaps = "selftest", bed.Steps(), bed.Gaps()
	p.Rounds, p.Until, p.MaxTime = f.Rounds, 0, 0
	p.Duration, p.Warmup = unit.Seconds(bed.Window().Seconds()), unit.Seconds(selfTestWarmup.Seconds())
	p.Settings["selftest"] = "yes" // an unknown setting: the run can't be resumed as an ordinary run
	return j, bed, nil
}
