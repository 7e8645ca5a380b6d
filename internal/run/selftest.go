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
	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/report"
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

// SelfTestTask is a self-test as it crosses to the worker.
type SelfTestTask struct {
	Measurement
	Conditions selftest.Conditions
}

// SelfTest plants known truths in the request's venue and measures them; while a lab runs,
// a busy neighbour works beside it. The run directory is f.Out; if that is empty, it is
// removed afterwards. The error carries exit.Gate if a planted truth was not found.
func SelfTest(ctx context.Context, f *Request) (*selftest.Result, error) {
	if f.Out == "" {
		dir, err := os.MkdirTemp("", "cnibench-selftest-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		f.Out = filepath.Join(dir, "run")
	}
	j, conditions, err := f.selfTest()
	if err != nil {
		return nil, err
	}
	w, err := j.Begin(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := SelfTestVerb().Last(w, &SelfTestTask{Measurement: j.Measurement, Conditions: *conditions}); err != nil {
		return nil, err
	}
	if err := WriteReport(f.Out, false, io.Discard); err != nil {
		return nil, err
	}
	rec, err := result.Load(f.Out)
	if err != nil {
		return nil, err
	}
	found := conditions.Judge(rec, report.Assemble(f.Out, rec, analysis.Options{}))
	diagnosed, err := diagnosisTrials(ctx, *conditions)
	if err != nil {
		return nil, err
	}
	for _, t := range diagnosed {
		found.Add(t)
	}
	if f.keepsSelfTest() && f.Rounds >= SelfTestRounds {
		dir, err := tune.StateDir()
		if err == nil {
			err = found.Keep(dir, f.Tool.Version, lab.KernelRelease(), time.Now())
		}
		if err != nil {
			console.Logger(os.Stderr).Warn("the result is not kept for later runs", "error", err)
		}
	}
	if !found.Passed {
		err = exit.With(exit.Gate, nil)
	}
	return &found, err
}

// SelfTestVerb measures what is planted.
func SelfTestVerb() Verb[*SelfTestTask, struct{}] {
	return Verb[*SelfTestTask, struct{}]{
		Name: "selftest",
		Do: func(ctx context.Context, in *Inside, task *SelfTestTask) (none struct{}, err error) {
			return none, in.Measure(ctx, &task.Measurement, func(catalogue *Catalogue, a arena.Arena) (arena.Arena, error) {
				base, err := catalogue.Contender(task.Conditions.Baseline)
				if err != nil {
					return nil, err
				}
				catalogue.Contenders = append(catalogue.Contenders, task.Conditions.Contenders(base)...)
				if in.Venue.Traits().ThisMachine {
					base = nil
				}
				return selftest.Planted{Arena: a, Conditions: task.Conditions, Of: base}, nil
			})
		},
		Beside: func(task *SelfTestTask) func() {
			busy := selfTestBusy
			if task.Conditions.LongTurns { // a cycle takes seconds, and some should be without the neighbour
				busy *= 10
			}
			return selftest.Neighbour(max(1, runtime.NumCPU()/2), 1, busy)
		},
	}
}

// bedInLab is where a lab's self-test plants its truths.
func bedInLab(f *Request) selftest.Conditions {
	conditions := selftest.Conditions{Baseline: "host"}
	conditions.MTU, _ = strconv.Atoi(f.MTU)
	if f.Kind().Guest {
		conditions.NoDiagnosis = "a guest takes minutes for it; cnibench diagnose --arena microvm"
	}
	return conditions
}

// bedInCluster is where a cluster's self-test plants its truths.
func bedInCluster(f *Request) selftest.Conditions {
	conditions := selftest.Conditions{Baseline: ThisCluster, NoNeighbour: "what else runs on a cluster's nodes is not watched", NoDiagnosis: "faults of nodes are planted in a lab alone", LongTurns: true}
	if !f.Cluster.Privileged {
		conditions.NoFaults = "pods may not change their own network; give them that right with --privileged"
	}
	return conditions
}

// keepsSelfTest says whether the result of a self-test is one of this machine and kernel.
func (f *Request) keepsSelfTest() bool {
	kind := f.Kind()
	return !kind.Cluster && !kind.Guest
}

// keptSelfTest returns the newest self-test of this machine, kernel and version; nil: none.
func (f *Request) keptSelfTest() *selftest.Kept {
	dir, err := tune.StateDir()
	if err != nil || !f.keepsSelfTest() {
		return nil
	}
	return selftest.Newest(dir, f.Tool.Version, lab.KernelRelease())
}

// selfTest prepares the self-test. The conditions are those of an emulated CPU once the worker
// has begun in a guest that has one.
func (f *Request) selfTest() (*Job, *selftest.Conditions, error) {
	kind, err := KindOf(f.Arena, nil)
	if err != nil {
		return nil, nil, err
	}
	conditions := kind.selfTest(f)
	f.Contenders, f.Baseline, f.Checks = conditions.Baseline, conditions.Baseline, "mtu"
	f.ForSelfTest = true
	j, err := f.Prepare()
	if err != nil {
		return nil, nil, err
	}
	base, err := j.Catalogue.Contender(conditions.Baseline)
	if err != nil {
		return nil, nil, err
	}
	p := &j.Record.Plan
	p.Rounds, p.Until, p.MaxTime = f.Rounds, 0, 0
	p.Settings["selftest"] = "yes" // an unknown setting: the run can't be resumed as an ordinary run
	j.End = f.end(p)
	j.Adapt = func(guest *vm.Facts) {
		if guest != nil && guest.Emulated {
			conditions.Emulated, conditions.LongTurns = true, true
		}
		j.Copies = conditions.Contenders(base)
		p.Suite, p.Steps, p.Gaps = "selftest", conditions.Steps(), conditions.Gaps()
		p.Duration, p.Warmup = unit.Seconds(conditions.Window().Seconds()), unit.Seconds(selfTestWarmup.Seconds())
	}
	return j, &conditions, nil
}
