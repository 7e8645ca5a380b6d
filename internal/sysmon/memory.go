package sysmon

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// memoryFields are the lines of /proc/meminfo that are recorded, under the
// names of node_exporter.
var memoryFields = []string{"MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "SReclaimable"}

func memory() Sampler {
	s := Sampler{Name: "memory", Scope: ScopeNode, sample: fromFile("meminfo", parseMeminfo)}
	for _, field := range memoryFields {
		s.Metrics = append(s.Metrics, Metric{
			"node_memory_" + field + "_bytes", "gauge", "bytes", field + " of the machine (/proc/meminfo).", nil})
	}
	s.Metrics = append(s.Metrics, Metric{
		"node_memory_used_bytes", "gauge", "bytes",
		"Memory of the machine in use by programs and the kernel: MemTotal − MemFree − Buffers − Cached − SReclaimable (/proc/meminfo).", nil})
	return s
}

// parseMeminfo reads /proc/meminfo. node_memory_used_bytes is absent on a kernel that lacks
// one of its terms.
func parseMeminfo(r io.Reader, out *frame) error {
	all, err := out.text(r)
	if err != nil {
		return err
	}
	var values [6]float64 // as memoryFields
	var seen [6]bool
	for line := range strings.Lines(all) {
		name, rest, _ := strings.Cut(line, ":")
		for i, field := range memoryFields {
			if name != field {
				continue
			}
			kib, isKiB := strings.CutSuffix(strings.TrimSpace(rest), " kB")
			n, err := strconv.ParseUint(strings.TrimSpace(kib), 10, 64)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if !isKiB {
				return fmt.Errorf("%s: %q is not in kB", name, strings.TrimSpace(rest))
			}
			values[i], seen[i] = float64(n)*1024, true
			break
		}
	}
	for i, field := range memoryFields {
		if seen[i] {
			out.add("node_memory_"+field+"_bytes", values[i])
		}
	}
	const total, free, buffers, cached, reclaimable = 0, 1, 3, 4, 5
	if !seen[total] {
		return fmt.Errorf("no MemTotal")
	}
	if seen[free] && seen[buffers] && seen[cached] && seen[reclaimable] {
		used := values[total] - values[free] - values[buffers] - values[cached] - values[reclaimable]
		out.add("node_memory_used_bytes", used)
	}
	return nil
}

// ReadUsedMemory returns the node_memory_used_bytes of the machine now; 0 if it can't be read.
func ReadUsedMemory() float64 {
	var f frame
	if err := readFile(os.DirFS("/proc"), "meminfo", parseMeminfo, &f); err != nil {
		return 0
	}
	for _, r := range f.rows {
		if r.key.metric == "node_memory_used_bytes" {
			return r.value
		}
	}
	return 0
}
