package bench

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"

	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/verdict"
)

// gate tells whether something else used the machine during a cycle.
type gate interface {
	begin()
	// end says what disturbed the time since begin, "" if nothing did, and what
	// happened in it.
	end() (why string, took use)
	close()
}

// machine is the gate of the machine that it runs on; of other machines it says nothing.
// Its limits are fixed and it never sees a figure. Nor does it look at what the load
// itself makes: CPU time is that of other processes, pressure on the CPUs is that of a
// pause before the cycle, and the canaries wait for no load. So it can't favour a
// contender, whatever that one causes.
type machine struct {
	proc     procfs.FS
	blind    bool // /proc can't be read, or it is not this machine that is measured
	canaries []*canary
	crowded  float64 // share of the pause before the cycle in which tasks waited for a CPU
	from     reading
}

// reading is what the CPUs of the machine have done so far, seconds.
type reading struct {
	total, steal float64
	// foreign is the user time of processes that this one does not see: in the lab,
	// which has a PID namespace, those that are not the run's. Kernel threads have
	// no user time, so that what they do for a contender is not held against it.
	foreign float64
	cpus    int
	memory  float64 // in which some task waited for memory, where the kernel says so
	at      time.Time
}

// use is what happened between two readings.
type use struct {
	wall   float64       // seconds
	others float64       // CPU-seconds that processes other than the run's took
	away   time.Duration // the longest that a canary was away
}

func (u *use) add(o use) {
	u.wall, u.others, u.away = u.wall+o.wall, u.others+o.others, max(u.away, o.away)
}

// foreign is CPU-seconds per second of other processes; nil where it is unknown. The
// ticks in which a kernel counts can make the run's own processes seem to have used more
// than all together: that is none.
func (u use) foreign() *float64 {
	if u.wall <= 0 {
		return nil
	}
	rate := max(0, u.others/u.wall)
	return &rate
}

// What counts as disturbed: shares of all CPU time of a cycle, of the pause before it,
// and of its time; and an absence that is half of a slice of the default length.
const (
	mostSteal   = verdict.MostSteal
	mostForeign = 0.10
	mostCrowded = 0.50
	mostMemory  = 0.10
	mostAway    = 25 * time.Millisecond

	pauseBefore = 3 * time.Millisecond
)

// newMachine is the gate of this machine with a canary on each of the CPUs.
func newMachine(cpus ...int) gate {
	g := &machine{}
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

func (g *machine) close() {
	for _, c := range g.canaries {
		c.end()
	}
	g.canaries = nil
}

func (g *machine) begin() {
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
		c.look()
	}
	g.from = g.read()
}

func (g *machine) end() (why string, took use) {
	if g.blind {
		return "", use{}
	}
	now := g.read()
	why, took = g.from.until(now), g.from.use(now)
	var judged time.Duration
	for _, c := range g.canaries {
		away, judges := c.look()
		took.away = max(took.away, away)
		if judges {
			judged = max(judged, away)
		}
	}
	switch {
	case why != "":
	case g.crowded > mostCrowded:
		why = fmt.Sprintf("tasks waited for a CPU in %.0f %% of the pause before", 100*g.crowded)
	case judged > mostAway:
		why = fmt.Sprintf("a CPU was away for %v", judged.Round(time.Millisecond))
	}
	return why, took
}

// pressure is the time in which some task waited for the resource, in seconds.
func (g *machine) pressure(resource string) (seconds float64, known bool) {
	p, err := g.proc.PSIStatsForResource(resource)
	if err != nil || p.Some == nil {
		return 0, false
	}
	return float64(p.Some.Total) / 1e6, true
}

func (from reading) use(to reading) use {
	if from.cpus == 0 || to.cpus == 0 {
		return use{}
	}
	return use{wall: (to.total - from.total) / float64(to.cpus), others: to.foreign - from.foreign}
}

func (from reading) until(to reading) string {
	total := to.total - from.total
	if total <= 0 {
		return ""
	}
	steal, foreign := (to.steal-from.steal)/total, (to.foreign-from.foreign)/total
	memory := (to.memory - from.memory) / max(to.at.Sub(from.at).Seconds(), pauseBefore.Seconds())
	switch {
	case steal > mostSteal:
		return fmt.Sprintf("the hypervisor took %.0f %% of the CPUs", 100*steal)
	case foreign > mostForeign:
		return fmt.Sprintf("other processes took %.0f %% of the CPUs", 100*foreign)
	case memory > mostMemory:
		return fmt.Sprintf("tasks waited for memory in %.0f %% of the time", 100*memory)
	}
	return ""
}

func (g *machine) read() reading {
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
		if s, err := p.Stat(); err == nil { // else it has just ended, and its parent has its time
			r.foreign -= (float64(s.UTime) + float64(s.CUTime)) / unit.UserHZ
		}
	}
	return r
}
