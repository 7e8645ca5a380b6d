package sysmon

import (
	"io"
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
