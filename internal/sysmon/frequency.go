package sysmon

import (
	"fmt"
	"io"
	"io/fs"
	"strings"
)

const cpuFolder = "devices/system/cpu"

// frequency samples the CPUs' clock frequencies as their drivers report them. Most virtual
// machines have no such driver.
func frequency() Sampler {
	const metric = "node_cpu_scaling_frequency_hertz"
	var cpus []string // found by the first snapshot
	var findErr error // why the first snapshot found none
	return Sampler{
		Name:     "frequency",
		Scope:    ScopeNode,
		Optional: true,
		Metrics: []Metric{
			{metric, "gauge", "hertz", "Frequency of the CPU as its driver reports it (cpufreq/scaling_cur_freq).", []string{"cpu"}},
		},
		sample: func(root Root, out *frame) error {
			if cpus == nil && findErr == nil {
				cpus, findErr = cpusWithFrequency(root.Sys)
			}
			if findErr != nil {
				return findErr
			}
			for _, cpu := range cpus {
				// A CPU that is offline has no frequency, which is no error.
				_ = readFile(root.Sys, cpuFolder+"/cpu"+cpu+"/cpufreq/scaling_cur_freq", func(r io.Reader, out *frame) error {
					return parseNumber(r, metric, 1e3, out, cpu)
				}, out)
			}
			return nil
		},
	}
}

func cpusWithFrequency(sys fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(sys, cpuFolder)
	if err != nil {
		return nil, err
	}
	cpus := []string{}
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), "cpu")
		if !ok || !isDigits(number) || number == "" {
			continue
		}
		if _, err := fs.Stat(sys, cpuFolder+"/"+e.Name()+"/cpufreq/scaling_cur_freq"); err == nil {
			cpus = append(cpus, number)
		}
	}
	if len(cpus) == 0 {
		return nil, fmt.Errorf("%s: no CPU has cpufreq: %w", cpuFolder, fs.ErrNotExist)
	}
	return cpus, nil
}
