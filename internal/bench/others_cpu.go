package bench

import (
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// othersCPU counts the CPU time that a contender's processes use while others have their
// slices: its daemons, its recorders, and its own load, which then waits. Work that the
// kernel does on other threads is not in it.
type othersCPU struct {
	pids  []int
	from  map[int]time.Duration // CPU time of each process when counting began
	begun time.Time
	used  time.Duration // CPU time counted so far
	wall  time.Duration // time counted so far
}

// begin starts counting, or continues after end.
func (u *othersCPU) begin() {
	u.from, u.begun = map[int]time.Duration{}, time.Now()
	for _, pid := range u.pids {
		if used, ok := cpuTime(pid); ok {
			u.from[pid] = used
		}
	}
}

// end pauses counting. A process that has ended since begin is left out.
func (u *othersCPU) end() {
	for pid, from := range u.from {
		if used, ok := cpuTime(pid); ok {
			u.used += max(0, used-from)
		}
	}
	u.wall += time.Since(u.begun)
}

// rate returns CPU-seconds per second; nil is unknown.
func (u *othersCPU) rate() *float64 {
	if len(u.pids) == 0 || u.wall <= 0 {
		return nil
	}
	rate := u.used.Seconds() / u.wall.Seconds()
	return &rate
}

// netNamespaces returns the network namespace of each process that this process sees, by
// PID. Outside of the lab contenders have processes on other machines, and it returns none.
func netNamespaces() map[int]string {
	all := map[int]string{}
	if !inLab() {
		return all
	}
	links, _ := filepath.Glob("/proc/[0-9]*/ns/net") // the pattern is right
	for _, link := range links {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(link))))
		if namespace, err := os.Readlink(link); err == nil { // a process may have ended
			all[pid] = namespace
		}
	}
	return all
}

// listAddedNamespaces returns the namespaces that are in after and not in before.
func listAddedNamespaces(before, after map[int]string) map[string]bool {
	out := map[string]bool{}
	for _, namespace := range after {
		out[namespace] = true
	}
	for _, namespace := range before {
		delete(out, namespace)
	}
	return out
}

// countOthers begins to count what each contender does while others have their slices.
func countOthers(turns []*slicedRun) {
	all := netNamespaces()
	for _, t := range turns {
		for pid, namespace := range all {
			if t.namespaces[namespace] {
				t.others.pids = append(t.others.pids, pid)
			}
		}
		t.others.begin()
	}
}
