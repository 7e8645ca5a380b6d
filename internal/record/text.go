package record

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/unit"
)

// Text returns the summary for people.
func (s *Summary) Text() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	if s.Error != "" {
		fmt.Fprintf(&b, "%s did not run: %s\n", s.Command[0], s.Error)
	} else {
		fmt.Fprintf(&b, "%s ran for %v, exit code %d\n", s.Command[0], unit.Seconds(s.Seconds), s.ExitCode)
	}
	if s.CommandCPU != nil {
		user, system := s.CommandCPU["user"], s.CommandCPU["system"]
		line("command", "%v of CPU time (user %v, system %v)", unit.Seconds(user+system), unit.Seconds(user), unit.Seconds(system))
	}
	if cpu := s.Means["cpu_mean_seconds"]; len(cpu) > 0 {
		busy, modes := 0.0, []string{}
		for _, mode := range []string{"user", "nice", "system", "irq", "softirq", "iowait", "steal"} {
			if cpu[mode] > 0 {
				modes = append(modes, fmt.Sprintf("%s %.2f", mode, cpu[mode]))
			}
			if mode != "iowait" && mode != "steal" {
				busy += cpu[mode]
			}
		}
		if len(modes) == 0 {
			modes = []string{"less than one clock tick"}
		}
		line("CPU", "%.2f of %.0f busy (%s)", busy, s.Means["cpu_cores"][""], strings.Join(modes, ", "))
	}
	if used, ok := s.Means["memory_used_bytes"][""]; ok {
		line("memory", "%v used of %v", unit.Bytes(used), unit.Bytes(s.Means["memory_total_bytes"][""]))
	}
	for _, device := range s.devices("network_mean_received_bytes_per_second", "network_mean_sent_bytes_per_second") {
		line(device, "%v in, %v out; %.0f and %.0f packets/s; %.1f and %.1f dropped/s",
			unit.BitRate(8*s.Means["network_mean_received_bytes_per_second"][device]),
			unit.BitRate(8*s.Means["network_mean_sent_bytes_per_second"][device]),
			s.Means["network_mean_received_packets_per_second"][device], s.Means["network_mean_sent_packets_per_second"][device],
			s.Means["network_mean_received_drops_per_second"][device], s.Means["network_mean_sent_drops_per_second"][device])
	}
	for _, device := range s.devices("disk_mean_read_bytes_per_second", "disk_mean_write_bytes_per_second") {
		line(device, "%v/s read, %v/s written", unit.Bytes(s.Means["disk_mean_read_bytes_per_second"][device]),
			unit.Bytes(s.Means["disk_mean_write_bytes_per_second"][device]))
	}
	for _, group := range s.devices("process_group_cpu_mean_seconds", "process_group_resident_memory_bytes") {
		line(group, "%.2f CPU, %v resident", s.Means["process_group_cpu_mean_seconds"][group],
			unit.Bytes(s.Means["process_group_resident_memory_bytes"][group]))
	}
	for _, zone := range s.devices("power_watts") {
		line(zone, "%.1f W", s.Means["power_watts"][zone])
	}
	for _, fault := range s.Faults {
		line("fault", "%s", fault)
	}
	for _, note := range s.Notes {
		line("note", "%s", note)
	}
	if len(s.Missing) > 0 {
		line("not here", "%s", strings.Join(s.Missing, ", "))
	}
	if s.File != "" {
		line("file", "%s, %v, %d snapshots", s.File, unit.Bytes(s.FileBytes), s.Snapshots)
	}
	return b.String()
}

// devices returns the devices (or groups, or zones) for which one of the named means is
// not zero.
func (s *Summary) devices(names ...string) []string {
	found := map[string]bool{}
	for _, name := range names {
		for device, v := range s.Means[name] {
			if v > 0 {
				found[device] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
