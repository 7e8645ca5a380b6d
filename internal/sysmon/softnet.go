package sysmon

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// softnetColumns are the first columns of /proc/net/softnet_stat.
var softnetColumns = []Metric{
	{"node_softnet_processed", "counter", "", "Packets that the CPU took from its receive queues; wraps at 2³² (/proc/net/softnet_stat).", []string{"cpu"}},
	{"node_softnet_dropped", "counter", "", "Packets dropped because the CPU's backlog (net.core.netdev_max_backlog) was full; wraps at 2³² (/proc/net/softnet_stat).", []string{"cpu"}},
	{"node_softnet_times_squeezed", "counter", "", "Times the CPU stopped receiving with work left, out of budget or time; wraps at 2³² (/proc/net/softnet_stat).", []string{"cpu"}},
}

// softnet is of the machine: the file is the same in every network namespace.
func softnet() Sampler {
	return Sampler{Name: "softnet", Scope: ScopeNode, Metrics: softnetColumns,
		sample: fromFile("net/softnet_stat", parseSoftnet)}
}

// parseSoftnet reads /proc/net/softnet_stat: one line a CPU that is online,
// columns in hexadecimal. Since Linux 5.14 the 13th is the CPU's number;
// before, lines are counted.
func parseSoftnet(r io.Reader, out *frame) error {
	all, err := out.text(r)
	if err != nil {
		return err
	}
	line := 0
	for columns := range strings.Lines(all) {
		fields := strings.Fields(columns)
		if len(fields) < len(softnetColumns) {
			return fmt.Errorf("line %d: %d columns", line+1, len(fields))
		}
		cpu := uint64(line)
		if len(fields) >= 13 {
			if cpu, err = strconv.ParseUint(fields[12], 16, 32); err != nil {
				return fmt.Errorf("line %d: %w", line+1, err)
			}
		}
		for i, m := range softnetColumns {
			n, err := strconv.ParseUint(fields[i], 16, 32)
			if err != nil {
				return fmt.Errorf("line %d: %w", line+1, err)
			}
			out.add(m.Name, float64(n), strconv.FormatUint(cpu, 10))
		}
		line++
	}
	if line == 0 {
		return fmt.Errorf("empty")
	}
	return nil
}
