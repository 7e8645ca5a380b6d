package run

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/procfs"
)

// This file tells, before minutes are spent, what this machine will be able to tell
// apart: every CPU works for half a second in slices of the length that contenders are
// measured in, and their work should be the same in each.

const (
	outlookSlices = 20
	outlookSlice  = 25 * time.Millisecond
	longRun       = time.Minute // of load; a shorter run is its own outlook

	// The load generator's threads need a CPU each beside the server's, and a percentile
	// of latency shows every wait for one.
	cpusForLatency  = 4
	stealForLatency = 0.02
)

// outlook is what the CPUs did while all of them worked.
type outlook struct {
	cpus   int
	steal  float64 // share of the CPUs' time that the hypervisor took
	spread float64 // of the work in a slice: the tenth least and tenth most by the median
}

// SayOutlook writes one sentence on what will be usable, and one more where nobody has
// proven the instrument on this machine; nothing for a short run, a cluster, or a system
// that does not say.
func (j *Job) SayOutlook(w io.Writer) {
	names, _ := j.planned()
	load := time.Duration(len(j.Plan.Steps)*min(cmp.Or(j.Plan.Rounds, SelfTestRounds), SelfTestRounds)*len(names)) * (seconds(j.Plan.Duration) + seconds(j.Plan.Warmup))
	if j.request.Arena == Kube || load < longRun {
		return
	}
	if o, ok := look(); ok {
		fmt.Fprintln(w, o.sentence(j.Plan.Slice > 0))
		if j.request.SelfTest == nil {
			fmt.Fprintln(w, "This machine never had a self-test with this version and kernel: `cnibench selftest` takes 2 minutes and shows what it can tell apart.")
		}
	}
}

// sentence words the outlook for a run whose contenders take turns, which all have the
// same share of the CPUs' moods, or for one that measures them one after the other.
func (o outlook) sentence(turns bool) string {
	poor := o.cpus < cpusForLatency || o.steal >= stealForLatency
	begin := fmt.Sprintf("%d CPUs, steal %.0f %%, their speed varies by %.0f %% from slice to slice: ", o.cpus, 100*o.steal, 100*o.spread)
	switch {
	case turns && poor:
		return begin + "contenders take turns, which goodput and the median network time bear; tails and latency will hardly be usable."
	case turns:
		return begin + "contenders take turns, which all figures should bear."
	case poor:
		return begin + fmt.Sprintf("latency will hardly be usable; goodput to about %.0f %%.", math.Max(1, math.Ceil(100*o.spread)))
	}
	return begin + fmt.Sprintf("latency should be usable; goodput to about %.0f %%.", math.Max(1, math.Ceil(100*o.spread)))
}

// look keeps all CPUs busy and counts.
func look() (outlook, bool) {
	total, stolen, ok := cpuTimes()
	if !ok {
		return outlook{}, false
	}
	o := outlook{cpus: runtime.NumCPU()}
	work := make([][outlookSlices]float64, o.cpus)
	var all sync.WaitGroup
	begin := time.Now()
	for i := range work {
		all.Go(func() {
			for k := range work[i] {
				for end := begin.Add(time.Duration(k+1) * outlookSlice); time.Now().Before(end); {
					work[i][k]++
				}
			}
		})
	}
	all.Wait()
	after, taken, _ := cpuTimes()
	if after > total {
		o.steal = (taken - stolen) / (after - total)
	}
	o.spread = spreadOf(work)
	return o, true
}

// spreadOf is between the tenth least and the tenth most of the slices, by the median.
func spreadOf(work [][outlookSlices]float64) float64 {
	var sums []float64
	for k := range outlookSlices {
		sum := 0.0
		for i := range work {
			sum += work[i][k]
		}
		sums = append(sums, sum)
	}
	slices.Sort(sums)
	middle := sums[outlookSlices/2]
	if middle == 0 {
		return 1
	}
	return (sums[outlookSlices-outlookSlices/10] - sums[outlookSlices/10]) / middle
}

// cpuTimes are the seconds of all CPUs, and those that the hypervisor took.
func cpuTimes() (total, stolen float64, ok bool) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, 0, false
	}
	stat, err := proc.Stat()
	if err != nil {
		return 0, 0, false
	}
	c := stat.CPUTotal
	return c.User + c.Nice + c.System + c.Idle + c.Iowait + c.IRQ + c.SoftIRQ + c.Steal, c.Steal, true
}
