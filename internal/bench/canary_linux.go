package bench

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// canary is a thread on one CPU that wakes every canaryBeat and notes for how long it
// could not. As a real-time thread it waits for nobody but the hypervisor and the
// kernel's own interrupts, so that a long absence is not the load's doing; where it may
// not be one, its absences are noted and judge nothing.
type canary struct {
	realTime bool
	stop     chan struct{}
	all      sync.WaitGroup
	away     atomic.Int64 // nanoseconds, the longest since the last look
}

// canaryBeat costs some 0.1 % of the CPU.
const canaryBeat = 2 * time.Millisecond

func startCanary(cpu int) *canary {
	c := &canary{stop: make(chan struct{})}
	// Processors of Go's to spare: back from its sleep the thread takes an idle one, and
	// must not wait for one that a thread holds which the load keeps from the CPU.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 2)
	ready := make(chan struct{})
	c.all.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		var set unix.CPUSet
		set.Set(cpu)
		bound := unix.SchedSetaffinity(0, &set) == nil
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
		c.realTime = bound && unix.SchedSetAttr(0, &attr, 0) == nil
		close(ready)
		c.sing()
	})
	<-ready
	return c
}

func (c *canary) sing() {
	beat := unix.NsecToTimespec(int64(canaryBeat))
	for last := time.Now(); ; {
		select {
		case <-c.stop:
			return
		default:
		}
		_ = unix.Nanosleep(&beat, nil) // interrupted, it wakes early
		now := time.Now()
		c.away.Store(max(c.away.Load(), int64(now.Sub(last)-canaryBeat)))
		last = now
	}
}

// look returns the longest absence since the last look, and whether it judges.
func (c *canary) look() (away time.Duration, judges bool) {
	return time.Duration(c.away.Swap(0)), c.realTime
}

func (c *canary) end() {
	close(c.stop)
	c.all.Wait()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) - 2)
}
