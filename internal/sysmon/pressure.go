package sysmon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
)

// pressureLines are the lines of the files below /proc/pressure that mean
// something for a whole machine ("full" of the CPU is zero there).
var pressureLines = []struct {
	file, line string
	metric     Metric
}{
	{"cpu", "some", Metric{"node_pressure_cpu_waiting_seconds", "counter", "seconds", "Time in which some task waited for a CPU (/proc/pressure/cpu some).", nil}},
	{"io", "some", Metric{"node_pressure_io_waiting_seconds", "counter", "seconds", "Time in which some task waited for I/O (/proc/pressure/io some).", nil}},
	{"io", "full", Metric{"node_pressure_io_stalled_seconds", "counter", "seconds", "Time in which every task that could have run waited for I/O (/proc/pressure/io full).", nil}},
	{"memory", "some", Metric{"node_pressure_memory_waiting_seconds", "counter", "seconds", "Time in which some task waited for memory (/proc/pressure/memory some).", nil}},
	{"memory", "full", Metric{"node_pressure_memory_stalled_seconds", "counter", "seconds", "Time in which every task that could have run waited for memory (/proc/pressure/memory full).", nil}},
	{"irq", "full", Metric{"node_pressure_irq_stalled_seconds", "counter", "seconds", "Time that interrupts took from a task (/proc/pressure/irq full; Linux 6.1 with CONFIG_IRQ_TIME_ACCOUNTING).", nil}},
}

// pressure returns the kernel's pressure stall information.
func pressure() Sampler {
	s := Sampler{Name: "pressure", Scope: ScopeNode, Optional: true}
	for _, l := range pressureLines {
		s.Metrics = append(s.Metrics, l.metric)
	}
	s.sample = func(root Root, out *frame) error {
		for _, file := range []string{"cpu", "io", "memory", "irq"} {
			err := readFile(root.Proc, "pressure/"+file, func(r io.Reader, out *frame) error {
				return parsePressure(r, file, out)
			}, out)
			if file == "irq" && errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return s
}

// parsePressure reads one file below /proc/pressure: lines such as
// "some avg10=0.00 avg60=0.00 avg300=0.00 total=12", in µs.
func parsePressure(r io.Reader, file string, out *frame) error {
	all, err := out.text(r)
	if err != nil {
		return err
	}
	found := false
	for line := range strings.Lines(all) {
		kind, _, _ := strings.Cut(line, " ")
		_, total, ok := strings.Cut(strings.TrimSpace(line), "total=")
		if !ok {
			return fmt.Errorf("%q has no total", strings.TrimSpace(line))
		}
		microseconds, err := strconv.ParseUint(total, 10, 64)
		if err != nil {
			return err
		}
		for _, l := range pressureLines {
			if l.file == file && l.line == kind {
				out.add(l.metric.Name, float64(microseconds)/1e6)
				found = true
			}
		}
	}
	if !found {
		return errors.New("no line that is known")
	}
	return nil
}
