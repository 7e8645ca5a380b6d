package lab

import "golang.org/x/sys/unix"

// CPUs are those that this process may run on (sched_getaffinity(2)): in a
// container or under taskset fewer than the machine has, and not the first.
func CPUs() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return []int{0}
	}
	var cpus []int
	for c := 0; len(cpus) < set.Count(); c++ {
		if set.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	return cpus
}
