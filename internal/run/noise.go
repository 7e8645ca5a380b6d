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

// This file predicts, before a long run, how small a difference between contenders this
// machine can show. Every CPU counts for half a second in short slices. The more the
// counts of the slices differ, the less exact the run's figures will be.

const (
	noiseSlices = 20
	noiseSlice  = 25 * time.Millisecond
	longRun     = time.Minute // of load; a shorter run needs no prediction

	// The load generator's threads each need a CPU beside the server's. Percentiles of
	// latency show every wait for a CPU.
	cpusForLatency  = 4
	stealForLatency = 0.02
)

// noise is what the CPUs did while all of them worked.
type noise struct {
	cpus   int
	steal  float64 // share of the CPUs' time that the hypervisor took
	spread float64 // of the slices' counts: from the 10th to the 90th percentile, by the median
}

// WarnOfNoise writes which figures of the run will be usable, and a hint if there is no
// self-test of this machine. It writes nothing for a short run, for a cluster, and where
// /proc can't be read.
func (j *Job) WarnOfNoise(w io.Writer) {
	names, _ := j.listPlanned()
	load := time.Duration(len(j.Record.Plan.Steps)*min(cmp.Or(j.Record.Plan.Rounds, SelfTestRounds), SelfTestRounds)*len(names)) * (j.Record.Plan.Duration.Duration() + j.Record.Plan.Warmup.Duration())
	if !j.Venue.Traits().ThisMachine || load < longRun {
		return
	}
	if o, ok := measureNoise(); ok {
		fmt.Fprintln(w, o.sentence(j.Record.Plan.Slice > 0))
		if j.SelfTest == nil {
			fmt.Fprintln(w, "This machine never had a self-test with this version and kernel: `cnibench selftest` takes 2 minutes and shows what it can tell apart.")
		}
	}
}

// sentence returns the prediction. turns says that contenders are measured slice by
// slice in turns, so that a slow phase of the CPUs affects all contenders alike.
func (o noise) sentence(turns bool) string {
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

// measureNoise keeps all CPUs busy and counts.
func measureNoise() (noise, bool) {
	total, stolen, ok := cpuTimes()
	if !ok {
		return noise{}, false
	}
	o := noise{cpus: runtime.NumCPU()}
	work := make([][noiseSlices]float64, o.cpus)
	var all sync.WaitGroup
	begin := time.Now()
	for i := range work {
		all.Go(func() {
			for k := range work[i] {
				for end := begin.Add(time.Duration(k+1) * noiseSlice); time.Now().Before(end); {
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

// spreadOf returns the distance from the 10th to the 90th percentile of the slices'
// counts, as a share of the median.
func spreadOf(work [][noiseSlices]float64) float64 {
	var sums []float64
	for k := range noiseSlices {
		sum := 0.0
		for i := range work {
			sum += work[i][k]
		}
		sums = append(sums, sum)
	}
	slices.Sort(sums)
	middle := sums[noiseSlices/2]
	if middle == 0 {
		return 1
	}
	return (sums[noiseSlices-noiseSlices/10] - sums[noiseSlices/10]) / middle
}

// cpuTimes returns the seconds of all CPUs, and those that the hypervisor took.
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
