package bench

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// disturbanceDetector tells whether something else used the machine during a cycle.
type disturbanceDetector interface {
	begin()
	// end returns what disturbed the time since begin, "" if nothing did, and who used
	// the CPUs in that time.
	end() (why string, usage cpuUsage)
	close()
}

// localMachine is the detector of the machine that this program runs on; it knows nothing of other
// machines. It looks at the CPU time of other processes, at the pressure on the CPUs in a
// pause before the cycle, and at canaries, whose threads have priority over any load. It
// can't favour a contender: the load changes none of these, the limits are fixed, and no
// measured figure is used.
type localMachine struct {
	proc     procfs.FS
	blind    bool // /proc can't be read, or another machine is measured
	canaries []*canary
	crowded  float64 // share of the pause before the cycle in which tasks waited for a CPU
	from     reading
}

// reading is what the CPUs of the machine have done so far, seconds.
type reading struct {
	total, steal float64
	// foreign is the user time of processes that this one does not see. The lab has a
	// PID namespace, so there these are the processes that are not the run's. Kernel
	// threads, which also work for contenders, have no user time and do not count.
	foreign float64
	cpus    int
	memory  float64 // time in which some task waited for memory; 0 where the kernel does not count it
	at      time.Time
}

// cpuUsage says who used the CPUs between two readings.
type cpuUsage struct {
	wall    float64       // seconds
	foreign float64       // CPU-seconds of processes that are not the run's
	absence time.Duration // the longest of any canary
}

func (u *cpuUsage) add(o cpuUsage) {
	u.wall, u.foreign, u.absence = u.wall+o.wall, u.foreign+o.foreign, max(u.absence, o.absence)
}

// foreignRate returns the CPU-seconds per second of processes that are not the run's; nil
// is unknown. Kernels that count by ticks can find more time of the run's processes than
// of all processes together; the rate is 0 then.
func (u cpuUsage) foreignRate() *float64 {
	if u.wall <= 0 {
		return nil
	}
	rate := max(0, u.foreign/u.wall)
	return &rate
}

// Above these limits a cycle is disturbed. maxSteal and maxForeign are shares of the
// cycle's CPU time, maxCrowded is a share of the pause before the cycle, maxMemory a share
// of the cycle's duration, and maxAbsent is a quarter of a slice of the default length. A process
// that used 15 % of two CPUs made bulk TCP slower by a fifth, and the baseline more than
// others. Counting by ticks makes the share of a cycle uncertain by some 1 %.
const (
	maxSteal   = result.MaxSteal
	maxForeign = 0.05
	maxCrowded = 0.50
	maxMemory  = 0.10
	maxAbsent  = 25 * time.Millisecond

	pauseBefore = 3 * time.Millisecond
)

// newLocalMachine returns the detector of this machine with a canary on each of the CPUs.
func newLocalMachine(cpus ...int) disturbanceDetector {
	g := &localMachine{}
	var err error
	g.proc, err = procfs.NewDefaultFS()
	if g.blind = err != nil || !inLab(); g.blind {
		return g
	}
	for _, cpu := range cpus {
		g.canaries = append(g.canaries, startCanary(cpu))
	}
	return g
}

func (g *localMachine) close() {
	for _, c := range g.canaries {
		c.stop()
	}
	g.canaries = nil
}

func (g *localMachine) begin() {
	if g.blind {
		return
	}
	waited, known := g.pressure("cpu")
	begun := time.Now()
	time.Sleep(pauseBefore)
	after, _ := g.pressure("cpu")
	if g.crowded = 0; known {
		g.crowded = (after - waited) / time.Since(begun).Seconds()
	}
	for _, c := range g.canaries {
		c.takeAbsence()
	}
	g.from = g.read()
}

func (g *localMachine) end() (why string, usage cpuUsage) {
	if g.blind {
		return "", cpuUsage{}
	}
	now := g.read()
	why, usage = g.from.disturbance(now), g.from.usage(now)
	var longest time.Duration // absence that may disturb a cycle
	for _, c := range g.canaries {
		absence, disturbs := c.takeAbsence()
		usage.absence = max(usage.absence, absence)
		if disturbs {
			longest = max(longest, absence)
		}
	}
	switch {
	case why != "":
	case g.crowded > maxCrowded:
		why = fmt.Sprintf("tasks waited for a CPU in %.0f %% of the pause before the cycle", 100*g.crowded)
	case longest > maxAbsent:
		why = fmt.Sprintf("a CPU was away for %v", longest.Round(time.Millisecond))
	}
	return why, usage
}

// pressure returns how long some task has waited for the resource since the machine
// started, in seconds.
func (g *localMachine) pressure(resource string) (seconds float64, known bool) {
	p, err := g.proc.PSIStatsForResource(resource)
	if err != nil || p.Some == nil {
		return 0, false
	}
	return float64(p.Some.Total) / 1e6, true
}

// usage returns who used the CPUs between two readings.
func (from reading) usage(to reading) cpuUsage {
	if from.cpus == 0 || to.cpus == 0 {
		return cpuUsage{}
	}
	return cpuUsage{wall: (to.total - from.total) / float64(to.cpus), foreign: to.foreign - from.foreign}
}

// disturbance returns what disturbed the time between two readings, "" if nothing did.
func (from reading) disturbance(to reading) string {
	total := to.total - from.total
	if total <= 0 {
		return ""
	}
	steal, foreign := (to.steal-from.steal)/total, (to.foreign-from.foreign)/total
	memory := (to.memory - from.memory) / max(to.at.Sub(from.at).Seconds(), pauseBefore.Seconds())
	switch {
	case steal > maxSteal:
		return fmt.Sprintf("the hypervisor took %.0f %% of the CPUs", 100*steal)
	case foreign > maxForeign:
		return fmt.Sprintf("other processes took %.0f %% of the CPUs", 100*foreign)
	case memory > maxMemory:
		return fmt.Sprintf("tasks waited for memory in %.0f %% of the time", 100*memory)
	}
	return ""
}

func (g *localMachine) read() reading {
	stat, err := g.proc.Stat()
	if err != nil {
		return reading{}
	}
	c := stat.CPUTotal
	r := reading{
		total: c.User + c.Nice + c.System + c.Idle + c.Iowait + c.IRQ + c.SoftIRQ + c.Steal,
		steal: c.Steal, foreign: c.User + c.Nice, cpus: len(stat.CPU), at: time.Now(),
	}
	r.memory, _ = g.pressure("memory")
	processes, err := g.proc.AllProcs()
	if err != nil {
		return reading{}
	}
	for _, p := range processes {
		if s, err := p.Stat(); err == nil { // a process that has just ended is counted in its parent
			r.foreign -= (float64(s.UTime) + float64(s.CUTime)) / unit.UserHZ
		}
	}
	return r
}
