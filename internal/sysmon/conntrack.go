package sysmon

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// conntrack samples the number of tracked connections in the recorder's own network
// namespace, and their limit, which is the machine's.
func conntrack() Sampler {
	files := []struct{ file, metric string }{
		{"sys/net/netfilter/nf_conntrack_count", "node_nf_conntrack_entries"},
		{"sys/net/netfilter/nf_conntrack_max", "node_nf_conntrack_entries_limit"},
	}
	return Sampler{
		Name:     "conntrack",
		Scope:    ScopePod,
		Optional: true,
		Metrics: []Metric{
			{files[0].metric, "gauge", "", "Connections that the recorder's own network namespace tracks (net.netfilter.nf_conntrack_count).", nil},
			{files[1].metric, "gauge", "", "Connections that a network namespace may track (net.netfilter.nf_conntrack_max); at it, packets of new ones are dropped.", nil},
		},
		sample: func(root Root, out *frame) error {
			for _, f := range files {
				err := readFile(root.Proc, f.file, func(r io.Reader, out *frame) error {
					return parseNumber(r, f.metric, 1, out)
				}, out)
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// conntrackCounters are the columns of /proc/net/stat/nf_conntrack that are recorded.
var conntrackCounters = []struct{ column, metric, help string }{
	{"insert_failed", "node_nf_conntrack_stat_insert_failed", "Packets dropped because another one had made the same entry first"},
	{"drop", "node_nf_conntrack_stat_drop", "Packets dropped because their connection could not be tracked: the table was full, or memory was"},
	{"early_drop", "node_nf_conntrack_stat_early_drop", "Tracked connections removed to make room in a full table"},
}

// conntrackStat samples the counters of connection tracking, summed over the CPUs.
func conntrackStat() Sampler {
	s := Sampler{Name: "conntrackstat", Scope: ScopePod, Optional: true, sample: fromFile("net/stat/nf_conntrack", parseConntrackStat)}
	for _, c := range conntrackCounters {
		s.Metrics = append(s.Metrics, Metric{c.metric, "counter", "", c.help + "; of the recorder's own network namespace (/proc/net/stat/nf_conntrack).", nil})
	}
	return s
}

// parseConntrackStat reads a line of names, then a line of hexadecimal numbers for each CPU.
func parseConntrackStat(r io.Reader, out *frame) error {
	all, err := out.text(r)
	if err != nil {
		return err
	}
	heading, lines, _ := strings.Cut(all, "\n")
	names := strings.Fields(heading)
	for _, c := range conntrackCounters {
		at := slices.Index(names, c.column)
		if at < 0 {
			return fmt.Errorf("no column %s", c.column)
		}
		sum := uint64(0)
		for line := range strings.Lines(lines) {
			fields := strings.Fields(line)
			if len(fields) <= at {
				return fmt.Errorf("a line of %d columns", len(fields))
			}
			n, err := strconv.ParseUint(fields[at], 16, 32)
			if err != nil {
				return fmt.Errorf("%s: %w", c.column, err)
			}
			sum += n
		}
		out.add(c.metric, float64(sum))
	}
	return nil
}

// parseNumber reads a file that holds one whole number, and adds it in units
// of unit, with labels.
func parseNumber(r io.Reader, metric string, unit float64, out *frame, labels ...string) error {
	n, err := readNumber(r, out)
	if err == nil {
		out.add(metric, float64(n)*unit, labels...)
	}
	return err
}

func readNumber(r io.Reader, out *frame) (uint64, error) {
	all, err := out.text(r)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(all), 10, 64)
}
