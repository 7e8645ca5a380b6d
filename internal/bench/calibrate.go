package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// Calibrate turns rates that the plan gives as shares of a capacity into rates
// per second. It brings the baseline up, with the contenders that plan.SharesOf adds, and
// finds the highest rate that each of them sustains, for every workload and set of
// parameters in such a step. It writes the lowest of these as the capacity, and the rates,
// into the run's plan. A plan without shares stays as it is. A step whose capacity is not
// found on the baseline is left out of the plan, with the reason among the unsupported; it
// is an error if no step is left. Where all searches found the machine's limit instead of the
// path's, steps that search for a rate themselves are left out, too.
func (r *Runner) Calibrate(ctx context.Context, run *result.Run, baseline result.Entry) error {
	plan := &run.Plan
	var shares []*result.Step
	for i := range plan.Steps {
		if !plan.Takes(baseline.ID, plan.Steps[i].ID) {
			continue
		}
		if _, ok := workload.Share(plan.Steps[i].Params[result.RateParam]); ok {
			shares = append(shares, &plan.Steps[i])
		}
	}
	if len(shares) == 0 {
		return nil
	}
	entries := []result.Entry{baseline}
	by := entryName(baseline)
	if plan.SharesOf == result.SharesOfSlowest && plan.Together > 1 {
		entries = plan.Contenders
		by = "every contender"
	}
	r.Progress(Progress{Text: "finding the highest rate that " + by + " sustains"})
	deployments, closeAll, err := r.setUpAll(ctx, plan, entries, shares)
	defer closeAll()
	if err != nil {
		return fmt.Errorf("calibration: %w", err)
	}
	plan.Capacity = map[string]float64{}
	small, err := onlySmall(shares)
	if err != nil {
		return err
	}
	failed := map[string]error{}
	var doubt error // why a search is not believed
	believed := false
	for _, step := range shares {
		key, err := step.Load()
		if err != nil {
			return err
		}
		if failed[key] != nil {
			continue
		}
		if _, known := plan.Capacity[key]; !known {
			capacity, err := r.capacity(ctx, plan, deployments, step, small[key])
			if unbelievable := (*doubtful)(nil); errors.As(err, &unbelievable) {
				r.Log.Warn("shares are of a closed loop's rate", "step", step.ID, "closed", math.Round(capacity), "error", err)
				doubt, err = err, nil
			} else if err == nil && !small[key] {
				believed = true
			}
			if err != nil {
				if ctx.Err() != nil {
					return fmt.Errorf("calibration of %s: %w", step.ID, err)
				}
				r.Log.Warn("no capacity was found: the load's steps are left out", "step", step.ID, "error", err)
				failed[key] = err
				continue
			}
			plan.Capacity[key] = capacity
			r.Progress(Progress{Text: fmt.Sprintf("%s: %s sustains %.0f/s", step.Workload, by, capacity)})
		}
		share, _ := workload.Share(step.Params[result.RateParam])
		rate := share * plan.Capacity[key]
		if small[key] {
			rate = roundRate(rate)
		}
		step.Params = maps.Clone(step.Params)
		step.Params[result.RateParam] = offBeat(rate)
	}
	if believed {
		doubt = nil
	}
	return leaveOut(run, baseline, func(step result.Step) error { return r.noRate(step, failed, doubt) })
}

// noRate returns why the step can have no rate: its share is of a load that failed, or it
// searches for a rate itself, of which there is a doubt. nil: it can have one.
func (r *Runner) noRate(step result.Step, failed map[string]error, doubt error) error {
	if r.searches(step) {
		return doubt
	}
	if _, share := workload.Share(step.Params[result.RateParam]); !share {
		return nil
	}
	key, err := step.Load()
	if err != nil {
		return err
	}
	return failed[key]
}

// setUpAll brings up the entries for the steps, the baseline first. A contender that does
// not come up has no deployment; if the baseline does not come up, setUpAll returns its error.
// closeAll must be called, also after an error, and takes all down.
func (r *Runner) setUpAll(ctx context.Context, plan *result.Plan, entries []result.Entry, shares []*result.Step) (deployments []*deployment, closeAll func(), err error) {
	var closes []func()
	closeAll = func() {
		for _, c := range slices.Backward(closes) {
			c()
		}
	}
	for i, entry := range entries {
		var steps []result.Step
		for _, s := range shares {
			if plan.Takes(entry.ID, s.ID) {
				steps = append(steps, *s)
			}
		}
		deployment, _, err := r.setUp(ctx, entry, steps)
		closes = append(closes, func() { r.noteLeft("calibration: "+entryName(entry), deployment.close(ctx)) })
		switch {
		case err == nil:
			deployments = append(deployments, deployment)
		case i == 0:
			return nil, closeAll, err
		default:
			r.Log.Warn("the rates are found without a contender", "contender", entryName(entry), "error", err)
		}
	}
	return deployments, closeAll, nil
}

// leaveOut takes the steps for which why returns a reason out of the plan.
func leaveOut(run *result.Run, baseline result.Entry, why func(result.Step) error) error {
	var steps []result.Step
	var causes []error
	for _, step := range run.Plan.Steps {
		cause := why(step)
		if cause == nil {
			steps = append(steps, step)
			continue
		}
		remedy := "stop other work on the machine and run again"
		if _, share := workload.Share(step.Params[result.RateParam]); share {
			remedy += ", or give rates per second"
		}
		causes = append(causes, fmt.Errorf("calibration of %s: %w", step.ID, cause))
		run.Unsupported = append(run.Unsupported, result.Unsupported{
			Contender: baseline.ID, Step: step.ID, Reason: fmt.Sprintf("no highest rate was found: %v", cause),
			Remedy: remedy,
		})
	}
	if len(steps) == 0 {
		return errors.Join(causes...)
	}
	run.Plan.Steps = steps
	return nil
}

// maxSmall is the largest share for which a guess of the capacity is good enough: so far
// below the capacity, a rate that is a tenth too high or too low changes nothing.
const maxSmall = 0.5

// onlySmall returns, by result.Step.Load, whether all shares of that load are small.
func onlySmall(shares []*result.Step) (map[string]bool, error) {
	only := map[string]bool{}
	for _, step := range shares {
		key, err := step.Load()
		if err != nil {
			return nil, err
		}
		share, _ := workload.Share(step.Params[result.RateParam])
		small, seen := only[key]
		only[key] = share <= maxSmall && (small || !seen)
	}
	return only, nil
}

// roundRate returns the nearest of 1, 1.5, 2, 3, 5 and 7 times a power of ten. These steps are
// coarser than the error of a guessed capacity, so that runs on one machine mostly ask for
// the same rate and can be compared.
func roundRate(rate float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(max(rate, 1))))
	best := power
	for _, step := range []float64{1, 1.5, 2, 3, 5, 7, 10} {
		if math.Abs(math.Log(step*power/rate)) < math.Abs(math.Log(best/rate)) {
			best = step * power
		}
	}
	return best
}

// capacity returns the rate (1/s) that all deployments sustain: the lowest of their highest
// rates, each found by a search, or by a guess. The first deployment is the baseline's. A further
// deployment without a highest rate is left out. With the error *doubtful the rate is that of
// closed loops.
func (r *Runner) capacity(ctx context.Context, plan *result.Plan, deployments []*deployment, step *result.Step, guess bool) (float64, error) {
	w, err := workload.Lookup(step.Workload)
	if err != nil {
		return 0, err
	}
	calibrated, ok := w.(workload.Calibrated)
	if !ok {
		return 0, fmt.Errorf("workload %s takes no share of a capacity; give its rate in requests per second", step.Workload)
	}
	params, err := workload.Complete(w.Info(), step.Params)
	if err != nil {
		return 0, err
	}
	type finder = func(context.Context, *workload.Session) (float64, error)
	var on []func(find finder) (float64, error) // by deployment
	for _, deployment := range deployments {
		pair, _, err := deployment.pair(ctx, w, params, *step)
		on = append(on, func(find finder) (float64, error) {
			if err != nil {
				return 0, err
			}
			return find(ctx, &workload.Session{
				Client: pair.Client, Server: pair.Server, Target: pair.Target, Ports: pair.Ports, Params: params,
				Warmup: plan.Warmup.Duration(), Duration: plan.Duration.Duration(),
				Raw: workload.Discard{}, Begin: func() {}, End: func() {},
			})
		})
	}
	search := func(times int, find finder, on []func(finder) (float64, error)) ([]float64, []error) {
		var searches []func() (float64, error)
		for _, deployment := range on {
			searches = append(searches, func() (float64, error) { return deployment(find) })
		}
		return secondHighest(times, searches...)
	}
	if guess {
		return lowest(search(max(minLoops, maxLoops/len(deployments)), calibrated.Peak, on))
	}
	rates, errs := search(1, calibrated.Capacity, on)
	// What keeps the latency of a few requests only is the machine, e.g. an emulated CPU.
	loops, failures := search(minLoops, calibrated.Peak, on[:1])
	d := &doubtful{rates[0], loops[0], errs[0]}
	if failures[0] != nil || d.believable() {
		return lowest(rates, errs)
	}
	further, missing := search(minLoops, calibrated.Peak, on[1:])
	rate, _ := lowest(append(loops, further...), append(failures, missing...)) // the baseline's is there
	return rate, d
}

// doubtful is the error of a search whose result tells of the machine and not of the path.
type doubtful struct {
	found, loop float64 // the rates (1/s) of the search and of a closed loop
	err         error   // of the search
}

// minOfLoop is the least share of the closed loop's rate that a search finds on a machine
// that can tell latencies.
const minOfLoop = 0.25

// believable says whether the search tells what the path carries.
func (d *doubtful) believable() bool { return d.err == nil && d.found >= minOfLoop*d.loop }

// Error implements error.
func (d *doubtful) Error() string {
	if d.err != nil {
		return fmt.Sprintf("a closed loop reached %.0f/s, and no rate was found that keeps its latency: %v", d.loop, d.err)
	}
	return fmt.Sprintf("of the %.0f/s of a closed loop, %.0f/s kept its latency: this machine is too slow to tell", d.loop, d.found)
}

func (d *doubtful) Unwrap() error { return d.err }

// lowest returns the lowest of the rates, which are the baseline's and those of the further
// deployments that have one.
func lowest(rates []float64, errs []error) (float64, error) {
	if errs[0] != nil {
		return 0, errs[0]
	}
	minimum := rates[0]
	for i, rate := range rates {
		if errs[i] == nil {
			minimum = min(minimum, rate)
		}
	}
	return minimum, nil
}

// A capacity is guessed from short closed loops on each deployment: maxLoops if there is only
// the baseline, else fewer, but at least minLoops.
const (
	minLoops = 3
	maxLoops = 12
)

// secondHighest calls each function that many times, in turns, and returns for each the
// second highest rate, or the rate of a single call. Other work makes a machine slower for
// seconds at a time. If it lasts for more than half of the calls, it would determine a
// median, and without turns it would hit one function only. One call of a function may
// fail, e.g. because nothing got a response on a busy machine; the second error is the
// function's.
func secondHighest(times int, searches ...func() (rate float64, err error)) (highest []float64, errs []error) {
	rates := make([][]float64, len(searches))
	failures := make([][]error, len(searches))
	for range times {
		for i, search := range searches {
			if len(failures[i]) >= min(2, times) {
				continue
			}
			rate, err := search()
			if err != nil {
				failures[i] = append(failures[i], err)
			}
			rates[i] = append(rates[i], rate)
		}
	}
	for i := range searches {
		slices.Sort(rates[i])
		rate, err := rates[i][max(0, len(rates[i])-2)], error(nil)
		switch {
		case len(failures[i]) >= min(2, times):
			rate, err = 0, failures[i][len(failures[i])-1]
		case rate <= 0:
			err = errors.New("the closed loop had no response; does the server run?")
		}
		highest, errs = append(highest, rate), append(errs, err)
	}
	return highest, errs
}

// offBeat returns a whole rate near the given one that is no multiple of the
// kernel's tick rate (100, 250, 300 or 1000 Hz). Kernels that account CPU time by
// ticks would otherwise always sample a constant load at the same phase.
func offBeat(rate float64) float64 {
	whole := max(math.Floor(rate), 1)
	if math.Mod(whole, 10) == 0 || math.Mod(whole, 25) == 0 {
		whole += 3
	}
	return whole
}
