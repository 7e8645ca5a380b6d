package importer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// readPerfTests reads netperf.csv of kubernetes/perf-tests (network/benchmarks/netperf): a
// row a test, a column a segment size, in Mbit/s (its README says Gbit/s; its regular
// expressions take what iperf3 and netperf print as Mbits/sec). A figure of 0 is a test
// whose output was not understood. The column Maximum is of segment sizes and no result.
func readPerfTests(ctx context.Context, src *source, opt Options) (*imported, error) {
	return readFigures(ctx, src, opt, "perf-tests-netperf", []string{".csv"}, parsePerfTests)
}

func parsePerfTests(data []byte) ([]figure, error) {
	var figures []figure
	var sizes []string
	rows := 0
	err := eachLine(strings.NewReader(string(data)), func(n int, line string) {
		cells := strings.Split(strings.TrimSuffix(strings.TrimSpace(line), ","), ",")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		_, label, numbered := strings.Cut(cells[0], " ")
		switch {
		case cells[0] == "MSS":
			sizes = cells[min(2, len(cells)):]
			return
		case !numbered || whole(strings.Fields(cells[0])[0]) == 0 || len(cells) < 3:
			return // around the table: "GENERATING CSV OUTPUT", "END CSV DATA"
		}
		rows++
		tool, where, _ := strings.Cut(label, ". ")
		test := map[string]string{"iperf TCP": "TCP_STREAM", "iperf UDP": "UDP_STREAM", "netperf": "TCP_STREAM", "iperf SCTP": "SCTP_STREAM"}[tool]
		for i, cell := range cells[2:] {
			f := figure{line: n, test: test, metrics: map[string]float64{}, unknown: []string{"loss", "retransmits", "CPU", "kernel", "the time"}}
			if f.test == "" {
				f.test = tool
			}
			f.setPath(false, strings.Contains(where, "Same VM"), strings.Contains(where, "Virtual IP"))
			if strings.Contains(where, "Hairpin") {
				break // a pod to itself is no path of ours
			}
			if tool == "netperf" {
				f.streams = 1
			} else {
				f.streams = 8
			}
			if i < len(sizes) && len(cells) > 3 {
				f.variant = "mss" + clean(sizes[i]) // segments of so many bytes
			}
			if v := parseNumber(cell); v.known && v.number > 0 {
				f.set(result.Goodput, cell, 1e6)
			} else {
				f.problems = append(f.problems, result.Reason{Code: "missing_result", Text: fmt.Sprintf("the file says %s, which stands for an output that was not understood", strconv.Quote(cell))})
			}
			figures = append(figures, f)
		}
	})
	if err != nil {
		return figures, &lineError{0, err}
	}
	if rows == 0 {
		return nil, &lineError{0, errors.New(`no row such as "1 iperf TCP. Same VM using Pod IP"; it is no netperf.csv of perf-tests`)}
	}
	return figures, nil
}
