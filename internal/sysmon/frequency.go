package sysmon

import (
	"fmt"
	"io"
	"io/fs"
	"strings"
)

const cpuFolder = "devices/system/cpu"

// frequency returns what the CPUs' drivers say of their clocks. Virtual machines
// mostly have none.
func frequency() Sampler {
	const metric = "node_cpu_scaling_frequency_hertz"
	var cpus []string // of the first snapshot
	var none error    // or why there are none
	return Sampler{
		Name:     "frequency",
		Scope:    ScopeNode,
		Optional: true,
		Metrics: []Metric{
			{metric, "gauge", "hertz", "Frequency of the CPU as its driver reports it (cpufreq/scaling_cur_freq).", []string{"cpu"}},
		},
		sample: func(root Root, out *frame) error {
			if cpus == nil && none == nil {
				cpus, none = cpusWithFrequency(root.Sys)
			}
			if none != nil {
				return none
			}
			for _, cpu := range cpus {
				// A CPU that was taken offline has none for a while.
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
