package bench

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// canary is a thread on one CPU that wakes every canaryBeat and notes how much later than
// planned it woke. A real-time thread waits only for the hypervisor and for the kernel's
// interrupts, so that the load does not cause its long absences. Where the thread may not
// have real-time priority, its absences are recorded and disturb no cycle.
type canary struct {
	realTime bool
	ended    chan struct{}
	thread   sync.WaitGroup
	absent   atomic.Int64 // nanoseconds, the longest absence since takeAbsence was called
}

// canaryBeat costs some 0.1 % of the CPU.
const canaryBeat = 2 * time.Millisecond

func startCanary(cpu int) *canary {
	c := &canary{ended: make(chan struct{})}
	// Two of Go's processors (GOMAXPROCS) more than needed: when the thread wakes, it takes
	// an idle one. The others may belong to threads that the load keeps off the CPU.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 2)
	ready := make(chan struct{})
	c.thread.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		var set unix.CPUSet
		set.Set(cpu)
		bound := unix.SchedSetaffinity(0, &set) == nil
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
		c.realTime = bound && unix.SchedSetAttr(0, &attr, 0) == nil
		close(ready)
		c.run()
	})
	<-ready
	return c
}

// run sleeps for canaryBeat again and again, and notes the longest delay.
func (c *canary) run() {
	beat := unix.NsecToTimespec(int64(canaryBeat))
	for last := time.Now(); ; {
		select {
		case <-c.ended:
			return
		default:
		}
		_ = unix.Nanosleep(&beat, nil) // a signal ends the sleep early, which does no harm
		now := time.Now()
		c.absent.Store(max(c.absent.Load(), int64(now.Sub(last)-canaryBeat)))
		last = now
	}
}

// takeAbsence returns the longest absence since the last call, and whether it may
// disturb a cycle.
func (c *canary) takeAbsence() (absence time.Duration, disturbs bool) {
	return time.Duration(c.absent.Swap(0)), c.realTime
}

func (c *canary) stop() {
	close(c.ended)
	c.thread.Wait()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) - 2)
}
