//go:build !amd64

package vm

// rdtsc returns 0: this CPU has no time stamp counter.
func rdtsc() uint64 { return 0 }
