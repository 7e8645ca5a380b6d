package sysmon

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// diskColumns are the columns of /proc/diskstats that are recorded, by their
// position after the device's name; their unit is a
// divisor, or sectors of 512 bytes.
var diskColumns = []struct {
	column  int
	divisor float64
	metric  Metric
}{
	{0, 1, Metric{"node_disk_reads_completed", "counter", "", "Reads that the device completed.", []string{"device"}}},
	{2, 1 / 512.0, Metric{"node_disk_read_bytes", "counter", "bytes", "Bytes read from the device.", []string{"device"}}},
	{3, 1e3, Metric{"node_disk_read_time_seconds", "counter", "seconds", "Time that all reads took together.", []string{"device"}}},
	{4, 1, Metric{"node_disk_writes_completed", "counter", "", "Writes that the device completed.", []string{"device"}}},
	{6, 1 / 512.0, Metric{"node_disk_written_bytes", "counter", "bytes", "Bytes written to the device.", []string{"device"}}},
	{7, 1e3, Metric{"node_disk_write_time_seconds", "counter", "seconds", "Time that all writes took together.", []string{"device"}}},
	{9, 1e3, Metric{"node_disk_io_time_seconds", "counter", "seconds", "Time in which the device had work.", []string{"device"}}},
}

func disk() Sampler {
	s := Sampler{Name: "disk", Scope: ScopeNode, Optional: true, sample: fromFile("diskstats", parseDiskstats)}
	for _, c := range diskColumns {
		m := c.metric
		m.Help += " Partitions count in their device too (/proc/diskstats)."
		s.Metrics = append(s.Metrics, m)
	}
	return s
}

// parseDiskstats reads /proc/diskstats: major, minor, name, counters. Devices
// that never did anything are left out.
func parseDiskstats(r io.Reader, out *frame) error {
	all, err := out.text(r)
	if err != nil {
		return err
	}
	for line := range strings.Lines(all) {
		fields := strings.Fields(line)
		if len(fields) < 3+10 {
			return fmt.Errorf("%d columns, want 13 or more: %q", len(fields), line)
		}
		device, counters := strings.ToValidUTF8(fields[2], "\uFFFD"), fields[3:]
		if counters[0] == "0" && counters[4] == "0" {
			continue
		}
		for _, c := range diskColumns {
			n, err := strconv.ParseUint(counters[c.column], 10, 64)
			if err != nil {
				return fmt.Errorf("%s: %w", device, err)
			}
			out.add(c.metric.Name, float64(n)/c.divisor, device)
		}
	}
	return nil
}
