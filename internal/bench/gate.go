package bench

import (
	"fmt"

	"github.com/prometheus/procfs"

	"github.com/cnibench/cnibench/internal/verdict"
)

// gate tells whether something else used the machine during a cycle.
type gate interface {
	begin()
	// end says what disturbed the time since begin, "" if nothing did, and what
	// happened in it.
	end() (why string, took use)
}

// machine is the gate of the machine that it runs on; of other machines it says nothing.
// Its limits are fixed and it never sees a figure, so that it can't favour a contender.
type machine struct {
	proc  procfs.FS
	blind bool // /proc can't be read
	from  reading
}

// reading is what the CPUs of the machine have done so far, seconds.
type reading struct {
	total, steal float64
	// foreign is the user time of processes that this one does not see: in the lab,
	// which has a PID namespace, those that are not the run's. Kernel threads have
	// no user time, so that what they do for a contender is not held against it.
	foreign float64
	cpus    int
}

// use is what happened between two readings.
type use struct {
	wall   float64 // seconds
	others float64 // CPU-seconds that processes other than the run's took
}

func (u *use) add(o use) { u.wall, u.others = u.wall+o.wall, u.others+o.others }

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

// The shares of all CPU time of a cycle above which it counts as disturbed.
const (
	mostSteal   = verdict.MostSteal
	mostForeign = 0.10
)

func newMachine() gate {
	g := &machine{}
	var err error
	g.proc, err = procfs.NewDefaultFS()
	g.blind = err != nil || !inLab()
	return g
}

func (g *machine) begin() {
	if !g.blind {
		g.from = g.read()
	}
}

func (g *machine) end() (why string, took use) {
	if g.blind {
		return "", use{}
	}
	now := g.read()
	return g.from.until(now), g.from.use(now)
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
	switch {
	case steal > mostSteal:
		return fmt.Sprintf("the hypervisor took %.0f %% of the CPUs", 100*steal)
	case foreign > mostForeign:
		return fmt.Sprintf("other processes took %.0f %% of the CPUs", 100*foreign)
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
		steal: c.Steal, foreign: c.User + c.Nice, cpus: len(stat.CPU),
	}
	processes, err := g.proc.AllProcs()
	if err != nil {
		return reading{}
	}
	for _, p := range processes {
		if s, err := p.Stat(); err == nil { // else it has just ended, and its parent has its time
			r.foreign -= (float64(s.UTime) + float64(s.CUTime)) / userHZ
		}
	}
	return r
}

// userHZ is what /proc counts a second in (sysconf(_SC_CLK_TCK)): 100 wherever
// Linux runs Go.
const userHZ = 100
