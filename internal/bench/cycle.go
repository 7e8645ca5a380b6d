package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/workload"
)

// sliceable returns the step's workload if the plan has slices and its load can
// pause.
func (r *Runner) sliceable(plan *result.Plan, step result.Step) (workload.Sliceable, bool) {
	if plan.Slice <= 0 {
		return nil, false
	}
	w, err := r.workload(step.Workload)
	if err != nil {
		return nil, false
	}
	s, ok := w.(workload.Sliceable)
	return s, ok
}

// slicedRun is one contender of a step that is measured in cycles: its load, which is
// open from the first cycle to the last.
type slicedRun struct {
	*stepRun
	load   workload.Slicer
	slices []slice
	notes  []result.Reason
	others othersCPU
	err    error // why the contender takes no further slices
}

// slice is one slice as it was taken.
type slice struct {
	workload.Slice
	cycle   int                      // from 1
	usage   cpuUsage                 // of the cycle
	windows map[string]sysmon.Window // the measured part of the slice, by node
}

// slicePatience is how much longer than planned a slice may take before its load
// is given up.
const slicePatience = 20 * time.Second

// maxTries is how many cycles may be tried for each planned one, while some are disturbed.
const maxTries = 2

// cycles takes a step with all contenders in turns. In each cycle every contender has
// a slice, in random order, over connections that stay open: a change on the machine
// affects all contenders alike. Contenders for whose loads there is no room at the same
// time take turns in blocks, each beside the baseline, whose load is open in all blocks.
// The samples are sealed together.
func (r *Runner) cycles(ctx context.Context, plan *result.Plan, step result.Step, w workload.Sliceable, up []*upContender, clock *estimate) error {
	at := plan.InRound(up[0].Round) + ": " + step.ID
	open := func(list []*upContender) []*slicedRun {
		r.Progress(clock.now(at + ": opening the loads"))
		turns := r.open(ctx, plan, step, w, list)
		countOthers(turns)
		return turns
	}
	var samples []*result.Sample
	closeAll := func(turns []*slicedRun, count cycleCount) {
		for _, t := range turns {
			t.others.end()
			t.foreign = count.usage.foreignRate()
		}
		atOnce(turns, func(t *slicedRun) { r.close(plan, t, count.disturbed) })
		for _, t := range turns {
			samples = append(samples, t.sample)
			clock.step()
		}
	}
	throughout, others := inAllBlocks(plan, shuffle(up, plan.Seed, up[0].Round, step.ID))
	kept, all := open(throughout), cycleCount{disturbed: map[int]string{}}
	list := blocks(others, plan.Together-len(throughout))
	for i, block := range list {
		if ctx.Err() != nil {
			break
		}
		turns := open(block)
		count := r.block(ctx, plan, step, slices.Concat(kept, turns), all.count, func(done float64, text string) {
			clock.part = done*float64(len(turns)) + (float64(i)+done)/float64(len(list))*float64(len(kept))
			r.Progress(clock.now(at + ": " + text))
		})
		clock.part = float64(i+1) / float64(len(list)) * float64(len(kept))
		closeAll(turns, count)
		all.add(count)
	}
	clock.part = 0
	closeAll(kept, all)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return r.seal(samples...)
}

// inAllBlocks splits contenders into those whose loads are open in all blocks of a step and
// the others. The baseline is open in all, on each of its underlays; where a step has none,
// the first contender.
func inAllBlocks(plan *result.Plan, up []*upContender) (throughout, others []*upContender) {
	for _, s := range up {
		if s.Entry.ID == plan.Contenders[0].ID {
			throughout = append(throughout, s)
		} else {
			others = append(others, s)
		}
	}
	if throughout == nil {
		return others[:1], others[1:]
	}
	return throughout, others
}

// blocks splits a list into as few blocks of at most size entries as possible, of about the
// same length; an empty list is one empty block.
func blocks[T any](list []T, size int) [][]T {
	size = max(1, size)
	n := max(1, (len(list)+size-1)/size)
	var out [][]T
	for i := range n {
		out = append(out, list[len(list)*i/n:len(list)*(i+1)/n])
	}
	return out
}

// cycleCount is what is known of some cycles.
type cycleCount struct {
	count     int            // disturbed cycles included
	disturbed map[int]string // what disturbed a cycle that is left out, by cycle
	usage     cpuUsage       // of the cycles that are used
}

func (t *cycleCount) add(o cycleCount) {
	t.count += o.count
	maps.Copy(t.disturbed, o.disturbed)
	t.usage.add(o.usage)
}

// block takes a step's cycles with the turns that are open; after is the number of the last
// cycle of the block before. A cycle that something else on the machine disturbed is
// repeated for all contenders. progress is told which share of the block is done.
func (r *Runner) block(ctx context.Context, plan *result.Plan, step result.Step, turns []*slicedRun, after int, progress func(done float64, text string)) cycleCount {
	detector := r.detectorFor(turns)
	defer detector.close()
	count := cycleCount{disturbed: map[int]string{}}
	usages := map[int]cpuUsage{}
	wanted := max(1, int(math.Round(float64(plan.Duration/plan.Slice))))
	for count.count < maxTries*wanted && count.count-len(count.disturbed) < wanted && ctx.Err() == nil {
		cycle := after + count.count + 1
		order := cycleOrder(plan, turns, turns[0].Round, fmt.Sprint(step.ID, " ", cycle))
		if len(order) == 0 {
			break
		}
		// The step ends when all tries are used up, or when enough cycles are undisturbed.
		used := count.count - len(count.disturbed)
		done := max(float64(count.count)/float64(maxTries*wanted), float64(used)/float64(wanted))
		progress(done, fmt.Sprintf("cycle %d of %d", used+1, wanted))
		detector.begin()
		lead := plan.Lead
		if count.count == 0 { // connections are new
			lead = max(lead, plan.Warmup)
		}
		for _, t := range order {
			t.slice(ctx, lead.Duration(), plan.Slice.Duration(), cycle)
		}
		why, usage := detector.end()
		if why != "" {
			count.disturbed[cycle] = why
		}
		usages[cycle] = usage
		for _, t := range order {
			t.noteUsage(usage)
		}
		count.count++
	}
	if used := count.count - len(count.disturbed); len(count.disturbed) > 0 && used < minCycles(wanted) {
		// So few undisturbed cycles say less than all cycles together.
		for _, t := range turns {
			t.notes = append(t.notes, disturbedNote(count.disturbed, count.count))
		}
		clear(count.disturbed)
	}
	for cycle, usage := range usages {
		if _, dropped := count.disturbed[cycle]; !dropped {
			count.usage.add(usage)
		}
	}
	return count
}

// detectorFor returns the detector of this machine, with a canary on each CPU to which a client
// or a server is bound.
func (r *Runner) detectorFor(turns []*slicedRun) disturbanceDetector {
	if r.detector != nil {
		return r.detector
	}
	var cpus []int
	for _, t := range turns {
		if t.watch != nil { // nil: the contender could not be prepared
			cpus = slices.Concat(cpus, t.pair.Client.CPUs(), t.pair.Server.CPUs())
		}
	}
	slices.Sort(cpus)
	return newLocalMachine(slices.Compact(cpus)...)
}

// minCycles returns how many undisturbed cycles are enough to leave the disturbed cycles
// out. Two can be enough: a disturbance changes ratios more than chance changes the mean of
// two cycles (docs/dev/measurement.md).
func minCycles(wanted int) int { return min(wanted, max(2, wanted/3)) }

func disturbedNote(disturbed map[int]string, count int) result.Reason {
	return result.Reason{
		Code: "disturbed_cycles",
		Text: fmt.Sprintf("%d of %d cycles were disturbed (%s); all cycles were used, because too few were undisturbed", len(disturbed), count, disturbed[slices.Min(slices.Collect(maps.Keys(disturbed)))]),
	}
}

// cycleOrder returns the turns of a cycle in random order: every contender whose load
// runs has one slice, and the baseline about √n slices for n other contenders. All are
// compared with the baseline, and that many slices make the ratios' intervals smallest.
func cycleOrder(plan *result.Plan, turns []*slicedRun, round int, name string) []*slicedRun {
	var order, bases []*slicedRun
	for _, t := range turns {
		if t.err != nil {
			continue
		}
		order = append(order, t)
		if len(plan.Contenders) > 0 && t.Entry.ID == plan.Contenders[0].ID {
			bases = append(bases, t)
		}
	}
	for range int(math.Sqrt(float64(len(order)-len(bases)))) - 1 {
		order = append(order, bases...)
	}
	return shuffle(order, plan.Seed, round, name)
}

// maxFaulty is the share of slices with a fault above which the sample has the fault.
const maxFaulty = 0.1

// open starts the contenders' loads, all at once: a start mostly waits. An error is in the
// slicedRun and in its sample.
func (r *Runner) open(ctx context.Context, plan *result.Plan, step result.Step, w workload.Sliceable, list []*upContender) []*slicedRun {
	var turns []*slicedRun
	for _, s := range list {
		t, sample := &slicedRun{}, r.sample(s.Visit, step)
		if d, _, ok := r.prepare(ctx, s, sample, step, false); ok {
			t.stepRun = d
		} else {
			t.stepRun, t.err = &stepRun{upContender: s, sample: sample}, errors.New("not prepared")
		}
		turns = append(turns, t)
	}
	atOnce(turns, func(t *slicedRun) {
		if t.err == nil {
			t.load, t.err = w.Open(ctx, t.session(plan))
		}
	})
	return turns
}

// atOnce does something with all turns at the same time.
func atOnce(turns []*slicedRun, do func(*slicedRun)) {
	var all sync.WaitGroup
	for _, t := range turns {
		all.Go(func() { do(t) })
	}
	all.Wait()
}

// slice takes one slice. A contender that fails takes no further slices.
func (t *slicedRun) slice(ctx context.Context, lead, length time.Duration, cycle int) {
	ctx, cancel := context.WithTimeout(ctx, lead+length+slicePatience)
	defer cancel()
	clear(t.watch.begins)
	clear(t.watch.ends)
	t.others.end()
	defer t.others.begin()
	s := slice{cycle: cycle, windows: map[string]sysmon.Window{}}
	s.Slice, t.err = t.load.Slice(ctx, lead, length, t.watch.begin, t.watch.end)
	for name, begin := range t.watch.begins {
		if end, whole := t.watch.ends[name]; whole {
			s.windows[name] = sysmon.Window{Begin: begin, End: end}
		}
	}
	t.slices = append(t.slices, s)
}

// noteUsage writes who used the CPUs in the last cycle into its slices.
func (t *slicedRun) noteUsage(usage cpuUsage) {
	for i := len(t.slices) - 1; i >= 0 && t.slices[i].cycle == t.slices[len(t.slices)-1].cycle; i-- {
		t.slices[i].usage = usage
	}
}

// close ends a contender's load and fills in its sample, without the disturbed
// cycles.
func (r *Runner) close(plan *result.Plan, t *slicedRun, disturbed map[int]string) {
	if t.watch == nil {
		return // not prepared, as the sample says
	}
	isUsed := func(i int) bool {
		_, dropped := disturbed[t.slices[i].cycle]
		return !dropped && len(t.slices[i].Metrics) > 0
	}
	done := stepOutcome{code: "workload_failed", windows: map[string][]sysmon.Window{}}
	if t.load != nil {
		var err error
		done.out, err = t.load.Close(isUsed)
		t.err = errors.Join(t.err, err)
	}
	done.err = t.err
	done.recordings, done.recordErr = t.watch.stop()
	list := &result.Slices{Metrics: map[string][]float64{}, Disturbed: slices.Sorted(maps.Keys(disturbed))}
	faults := map[string][]string{} // texts by code
	for i, s := range t.slices {
		if !isUsed(i) {
			continue
		}
		list.Cycles = append(list.Cycles, s.cycle)
		for name, w := range s.windows {
			done.windows[name] = append(done.windows[name], w)
		}
		for _, f := range s.Faults {
			faults[f.Code] = append(faults[f.Code], f.Text)
		}
	}
	list.Metrics = commonMetrics(t.slices, isUsed)
	t.sample.Slices = list
	r.conclude(plan, t.stepRun, done)
	if rate := t.others.rate(); rate != nil {
		t.sample.Metrics[result.CPUStanding] = *rate
	}
	for _, code := range slices.Sorted(maps.Keys(faults)) {
		fault := result.Reason{Code: code, Text: fmt.Sprintf("%d of %d slices: %s", len(faults[code]), len(list.Cycles), faults[code][0])}
		if float64(len(faults[code])) > maxFaulty*float64(len(list.Cycles)) {
			invalidate(t.sample, fault.Code, fault.Text)
		} else {
			t.notes = append(t.notes, fault)
		}
	}
	t.sample.Notes = append(t.sample.Notes, t.notes...)
	if err := t.writeSlices(); err != nil && t.err == nil {
		invalidate(t.sample, "workload_failed", err.Error())
	}
}
