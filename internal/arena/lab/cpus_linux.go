package lab

import "golang.org/x/sys/unix"

// CPUs returns the CPUs that this process may run on (sched_getaffinity(2)). In a
// container or under taskset, CPU 0 may not be among them.
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
