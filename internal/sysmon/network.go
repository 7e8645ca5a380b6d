package sysmon

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// deviceColumns are the columns of /proc/net/dev that are recorded, by their
// position after the colon.
var deviceColumns = []struct {
	column int
	metric Metric
}{
	{0, Metric{"node_network_receive_bytes", "counter", "bytes", "Bytes received by the interface.", []string{"device"}}},
	{1, Metric{"node_network_receive_packets", "counter", "", "Packets received by the interface; with GRO, as they came from the driver.", []string{"device"}}},
	{2, Metric{"node_network_receive_errs", "counter", "", "Bad packets received by the interface.", []string{"device"}}},
	{3, Metric{"node_network_receive_drop", "counter", "", "Packets received by the interface and dropped, also for want of room (rx_missed).", []string{"device"}}},
	{8, Metric{"node_network_transmit_bytes", "counter", "bytes", "Bytes sent by the interface.", []string{"device"}}},
	{9, Metric{"node_network_transmit_packets", "counter", "", "Packets sent by the interface; a segmented packet (GSO) over a virtual interface counts once.", []string{"device"}}},
	{10, Metric{"node_network_transmit_errs", "counter", "", "Packets that the interface failed to send.", []string{"device"}}},
	{11, Metric{"node_network_transmit_drop", "counter", "", "Packets dropped on their way out of the interface.", []string{"device"}}},
}

func network() Sampler {
	s := Sampler{Name: "network", Scope: ScopePod, sample: fromFile("net/dev", parseNetDev)}
	for _, c := range deviceColumns {
		m := c.metric
		m.Help += " Of the recorder's own network namespace (/proc/net/dev)."
		s.Metrics = append(s.Metrics, m)
	}
	return s
}

// parseNetDev reads /proc/net/dev: two lines of headings, then one line an
// interface.
func parseNetDev(r io.Reader, out *frame) error {
	all, err := out.text(r)
	if err != nil {
		return err
	}
	headings := 0
	for line := range strings.Lines(all) {
		if headings < 2 {
			headings++
			continue
		}
		// The counters hold no colon; a name in an odd old file might.
		colon := strings.LastIndexByte(line, ':')
		if colon < 0 {
			return fmt.Errorf("line without a colon: %q", line)
		}
		// The kernel lets a name be any bytes; labels are UTF-8.
		device := strings.ToValidUTF8(strings.TrimSpace(line[:colon]), "\uFFFD")
		i, wanted := 0, deviceColumns
		for column := range strings.FieldsSeq(line[colon+1:]) {
			if len(wanted) > 0 && wanted[0].column == i {
				n, err := strconv.ParseUint(column, 10, 64)
				if err != nil {
					return fmt.Errorf("%s: %w", device, err)
				}
				out.add(wanted[0].metric.Name, float64(n), device)
				wanted = wanted[1:]
			}
			i++
		}
		if len(wanted) > 0 {
			return fmt.Errorf("%s: %d columns, want 16", device, i)
		}
	}
	if headings < 2 {
		return fmt.Errorf("no headings")
	}
	return nil
}
