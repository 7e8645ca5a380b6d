package sysmon

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

func softirqs() Sampler {
	return Sampler{
		Name:   "softirqs",
		Scope:  ScopeNode,
		Sparse: true,
		Metrics: []Metric{
			{"node_softirqs", "counter", "", "Times that the CPU ran the soft interrupt (/proc/softirqs); NET_RX and NET_TX are the network's.", []string{"cpu", "softirq"}},
		},
		sample: fromFile("softirqs", func(r io.Reader, out *frame) error {
			return parsePerCPU(r, "node_softirqs", func(name, _ string) string { return name }, out)
		}),
	}
}

func interrupts() Sampler {
	return Sampler{
		Name:   "interrupts",
		Scope:  ScopeNode,
		Sparse: true,
		Metrics: []Metric{
			{"node_interrupts", "counter", "", "Interrupts that the CPU took, by the device's name or the kernel's for those without one, such as LOC for the timer (/proc/interrupts).", []string{"cpu", "interrupt"}},
		},
		sample: fromFile("interrupts", func(r io.Reader, out *frame) error {
			return parsePerCPU(r, "node_interrupts", interruptName, out)
		}),
	}
}

// interruptName returns the device's name for a numbered interrupt: the part of the
// description after the controller, the pin and the kind of trigger. An interrupt without
// a number has a name of its own.
func interruptName(name, description string) string {
	if _, err := strconv.ParseUint(name, 10, 32); err != nil {
		return name
	}
	fields := strings.Fields(description)
	for i, field := range fields {
		// "IO-APIC 5-edge ACPI:Ged", "GICv3 27 Level arch_timer"
		lower := strings.ToLower(field)
		if (strings.HasSuffix(lower, "edge") || strings.HasSuffix(lower, "level") || strings.HasSuffix(lower, "fasteoi")) && i+1 < len(fields) {
			return strings.Join(fields[i+1:], " ")
		}
	}
	if len(fields) > 0 {
		return fields[len(fields)-1]
	}
	return name
}

// parsePerCPU reads /proc/softirqs and /proc/interrupts: a line that names the
// CPUs, then lines of a name, a counter for each CPU and a description.
// Counters that are zero are left out; counters of one kind are summed. Lines with fewer
// counters than CPUs (ERR, MIS) belong to no CPU and are skipped.
func parsePerCPU(r io.Reader, metric string, kindOf func(name, description string) string, out *frame) error {
	all, err := out.text(r)
	if err != nil {
		return err
	}
	heading, rest, _ := strings.Cut(all, "\n")
	cpus := strings.Fields(heading)
	if len(cpus) == 0 {
		return errors.New("no line of CPUs")
	}
	for i, cpu := range cpus {
		cpus[i] = strings.TrimPrefix(cpu, "CPU")
		if _, err := strconv.ParseUint(cpus[i], 10, 32); err != nil {
			return fmt.Errorf("CPU number: %w", err)
		}
	}
	first, seen := len(out.rows), make(map[string]bool)
	for line := range strings.Lines(rest) {
		name, columns, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		if !ok {
			return fmt.Errorf("line without a colon: %q", line)
		}
		begin := len(out.rows)
		for _, cpu := range cpus {
			var column string
			column, columns = nextField(columns)
			n, err := strconv.ParseUint(column, 10, 64)
			if err != nil {
				out.rows = out.rows[:begin]
				break
			}
			if n > 0 {
				out.add(metric, float64(n), cpu)
			}
		}
		if len(out.rows) == begin {
			continue
		}
		kind := strings.ToValidUTF8(kindOf(strings.TrimSpace(name), columns), "\uFFFD")
		for i := begin; i < len(out.rows); i++ {
			out.rows[i].key.labels[1] = kind
		}
		if seen[kind] {
			out.merge(first, begin)
		}
		seen[kind] = true
	}
	return nil
}

// merge sums rows with the same key, because devices with the same name are one kind. It
// adds the rows from index begin on to those from index first on.
func (f *frame) merge(first, begin int) {
	added := f.rows[begin:]
	f.rows = f.rows[:begin]
	for _, r := range added {
		i := first + slices.IndexFunc(f.rows[first:begin], func(old row) bool { return old.key == r.key })
		if i < first {
			f.rows = append(f.rows, r)
		} else {
			f.rows[i].value += r.value
		}
	}
}
