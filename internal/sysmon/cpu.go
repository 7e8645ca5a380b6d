package sysmon

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/unit"
)

// cpuModes are the columns of a cpu line of /proc/stat; older kernels have fewer. Two
// further columns, guest and guest_nice, are left out, because the kernel also counts them
// in user and nice.
var cpuModes = []string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"}

func cpu() Sampler {
	return Sampler{
		Name:  "cpu",
		Scope: ScopeNode,
		Metrics: []Metric{
			{"node_cpu_seconds", "counter", "seconds", "Seconds that the CPUs of the machine spent in each mode since boot, in steps of 10 ms (/proc/stat).", []string{"cpu", "mode"}},
			{"node_context_switches", "counter", "", "Context switches of the machine since boot (/proc/stat ctxt).", nil},
			{"node_intr", "counter", "", "Interrupts serviced by the machine since boot (/proc/stat intr).", nil},
		},
		sample: fromFile("stat", parseStat),
	}
}

// parseStat reads /proc/stat.
func parseStat(r io.Reader, out *frame) error {
	all, err := out.text(r)
	if err != nil {
		return err
	}
	cpus := 0
	for line := range strings.Lines(all) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case name == "ctxt":
			err = addFirst(out, "node_context_switches", rest)
		case name == "intr":
			err = addFirst(out, "node_intr", rest)
		case len(name) > 3 && strings.HasPrefix(name, "cpu"):
			cpus++
			err = addCPU(out, name[3:], rest)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if cpus == 0 {
		return errors.New("no line of a CPU")
	}
	return nil
}

func addCPU(out *frame, cpu, columns string) error {
	if _, err := strconv.ParseUint(cpu, 10, 32); err != nil {
		return fmt.Errorf("CPU number: %w", err)
	}
	i := 0
	for column := range strings.FieldsSeq(columns) {
		if i == len(cpuModes) {
			break
		}
		ticks, err := strconv.ParseUint(column, 10, 64)
		if err != nil {
			return err
		}
		out.add("node_cpu_seconds", float64(ticks)/unit.UserHZ, cpu, cpuModes[i])
		i++
	}
	if i == 0 {
		return errors.New("no columns")
	}
	return nil
}

// addFirst adds the first number of a line. In the line intr it is the sum of the others.
func addFirst(out *frame, metric, columns string) error {
	for column := range strings.FieldsSeq(columns) {
		n, err := strconv.ParseUint(column, 10, 64)
		if err != nil {
			return err
		}
		out.add(metric, float64(n))
		return nil
	}
	return errors.New("no number")
}
