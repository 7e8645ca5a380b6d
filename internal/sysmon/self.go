package sysmon

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// self samples the recorder's own cost, which is contained in the node's figures.
func self() Sampler {
	return Sampler{
		Name:  "self",
		Scope: ScopePod,
		Metrics: []Metric{
			{"cnibench_recorder_cpu_seconds", "counter", "seconds", "CPU time of the process that records (getrusage).", []string{"mode"}},
			{"cnibench_recorder_resident_memory_bytes", "gauge", "bytes", "Resident memory of the process that records (/proc/self/statm).", nil},
		},
		sample: func(root Root, out *frame) error {
			var usage unix.Rusage
			if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
				return fmt.Errorf("getrusage: %w", err)
			}
			out.add("cnibench_recorder_cpu_seconds", float64(usage.Utime.Nano())/1e9, "user")
			out.add("cnibench_recorder_cpu_seconds", float64(usage.Stime.Nano())/1e9, "system")
			// Without statm (not on Linux) only the memory is absent.
			if file, err := root.Proc.Open("self/statm"); err == nil {
				defer file.Close()
				return parseStatm(file, out)
			}
			return nil
		},
	}
}

// parseStatm reads /proc/self/statm: sizes in pages, the second is resident.
func parseStatm(r io.Reader, out *frame) error {
	all, err := out.text(r)
	if err != nil {
		return err
	}
	_, rest := nextField(all)
	resident, _ := nextField(rest)
	pages, err := strconv.ParseUint(resident, 10, 64)
	if err != nil {
		return fmt.Errorf("self/statm: %w", err)
	}
	out.add("cnibench_recorder_resident_memory_bytes", float64(pages)*float64(os.Getpagesize()))
	return nil
}
