package load

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/linux"
	"github.com/cnibench/cnibench/internal/unit"
)

// thread reads the CPU time, waiting time and preemptions of the calling thread. It must
// be made and used on that thread.
type thread struct {
	sched int // /proc/thread-self/schedstat, or -1
	buf   [64]byte
	usage unix.Rusage
}

func newThread() *thread {
	fd, err := unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		fd = -1 // this kernel does not count how long threads wait
	}
	return &thread{sched: fd}
}

func (t *thread) close() {
	if t.sched >= 0 {
		unix.Close(t.sched)
	}
}

// cpu returns the CPU time that the thread has used.
func (t *thread) cpu() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// waitTime returns how long the thread has been runnable without a CPU: the second
// number of schedstat (Documentation/scheduler/sched-stats.rst).
func (t *thread) waitTime() time.Duration {
	if t.sched < 0 {
		return 0
	}
	n, err := unix.Pread(t.sched, t.buf[:], 0)
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(t.buf[:n], []byte(" "))
	number, _, _ := bytes.Cut(rest, []byte(" "))
	ns, _ := decimal(number) // 0 if malformed
	return time.Duration(ns)
}

// countPreemptions returns how often the thread lost its CPU while it could run.
func (t *thread) countPreemptions() int64 {
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &t.usage); err != nil {
		return 0
	}
	return t.usage.Nivcsw
}

// yieldToOthers gives the calling goroutine a thread of its own with the lowest
// priority. Merging the histograms of a second takes milliseconds; a client that is bound
// to one CPU would lose them between two sends.
func yieldToOthers() {
	runtime.LockOSThread()
	// Lowering one's own priority is always allowed.
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 19)
}

// pin binds the calling thread to one CPU.
func pin(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("load: pin a thread to CPU %d: %w; is it online, and in this cgroup's cpuset?", cpu, os.NewSyscallError("sched_setaffinity", err))
	}
	return nil
}

// usableCPUs returns the CPUs that this process may run on.
func usableCPUs() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	var cpus []int
	for cpu := 0; len(cpus) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// maySpin says whether that many threads can spin and leave a CPU to everything else,
// such as the server and this program's other threads. A thread that is bound to a CPU
// may spin if the machine has other CPUs; if other processes use that CPU, the guard
// sees that they interrupt the spinning.
func maySpin(threads int) bool {
	cpus := float64(onlineCPUs())
	if quota := cpuQuota(); quota > 0 {
		cpus = min(cpus, quota)
	}
	return cpus > float64(threads)
}

func onlineCPUs() int {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return runtime.NumCPU()
	}
	cpus, err := linux.ParseCPUs(string(text), math.MaxInt32)
	if err != nil {
		return runtime.NumCPU()
	}
	return len(cpus)
}

// cpuQuota returns how many CPUs the quota of the cgroup allows; 0 is no quota. It finds
// the quota only if the process's own cgroup is the root of /sys/fs/cgroup, as in
// containers.
func cpuQuota() float64 {
	number := func(path string) float64 {
		text, err := os.ReadFile(path)
		if err != nil {
			return 0
		}
		v, _ := strconv.ParseFloat(strings.TrimSpace(string(text)), 64) // "max" is no quota
		return v
	}
	if text, err := os.ReadFile("/sys/fs/cgroup/cpu.max"); err == nil {
		var quota, period float64
		if _, err := fmt.Sscan(string(text), &quota, &period); err != nil || period <= 0 {
			return 0
		}
		return quota / period
	}
	quota, period := number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), number("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
	if quota <= 0 || period <= 0 {
		return 0
	}
	return quota / period
}

// readStolenTime returns the time that the hypervisor has taken from all these CPUs together; 0
// if /proc/stat can't be read.
func readStolenTime(cpus []int) time.Duration {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return 0
	}
	defer f.Close()
	wanted := map[string]bool{}
	for _, cpu := range cpus {
		wanted["cpu"+strconv.Itoa(cpu)] = true
	}
	var ticks int64
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// cpuN user nice system idle iowait irq softirq steal …
		if fields := strings.Fields(lines.Text()); len(fields) > 8 && wanted[fields[0]] {
			n, _ := strconv.ParseInt(fields[8], 10, 64) // 0 if malformed
			ticks += n
		}
	}
	return time.Duration(ticks) * time.Second / unit.UserHZ
}
