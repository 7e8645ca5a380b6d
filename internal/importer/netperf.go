package importer

import (
	"context"
	"encoding/csv"
	"errors"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// readNetperf reads what netperf's omni tests print: KEY=VALUE lines (-k), or a head and a
// row of values (-o), a test a file.
func readNetperf(ctx context.Context, src *source, opt Options) (*imported, error) {
	return readFigures(ctx, src, opt, "netperf", []string{".txt", ".out", ".csv", ".netperf", ".log"}, parseNetperf)
}

// netperfBanners are what netperf prints above the results of its tests.
var netperfBanners = []struct{ words, test string }{
	{"TCP CONNECT/REQUEST/RESPONSE", "TCP_CRR"}, {"TCP REQUEST/RESPONSE", "TCP_RR"}, {"UDP REQUEST/RESPONSE", "UDP_RR"},
	{"TCP STREAM", "TCP_STREAM"}, {"UDP STREAM", "UDP_STREAM"},
}

// netperfHeads are the heads of -o under the keys of -k.
var netperfHeads = map[string]string{
	"Throughput": "THROUGHPUT", "Throughput Units": "THROUGHPUT_UNITS", "Elapsed Time (sec)": "ELAPSED_TIME", "Protocol": "PROTOCOL", "Direction": "DIRECTION",
	"Mean Latency Microseconds": "MEAN_LATENCY", "50th Percentile Latency Microseconds": "P50_LATENCY", "90th Percentile Latency Microseconds": "P90_LATENCY",
	"99th Percentile Latency Microseconds": "P99_LATENCY", "Transaction Rate Tran/s": "TRANSACTION_RATE", "Local Transport Retransmissions": "LOCAL_TRANSPORT_RETRANS",
	"Remote Recv Throughput": "REMOTE_RECV_THROUGHPUT", "Command Line": "COMMAND_LINE",
}

// netperfUnits are the units of THROUGHPUT in bit/s (format_units and calc_thruput in
// netperf's netlib.c). 10^0bits is not among them: -f b prints bytes under that name.
var netperfUnits = map[string]float64{
	"10^3bits/s": 1e3, "10^6bits/s": 1e6, "10^9bits/s": 1e9, "Bytes/s": 8, "KBytes/s": 8 << 10, "MBytes/s": 8 << 20, "GBytes/s": 8 << 30,
}

func parseNetperf(data []byte) ([]figure, error) {
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	keys, test := map[string]string{}, ""
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if key, v, has := strings.Cut(strings.TrimSpace(line), "="); has && key == strings.ToUpper(key) && !strings.ContainsAny(key, ", ") {
			if _, again := keys[key]; again && key == "THROUGHPUT" {
				return nil, &lineError{i + 1, errors.New("a second test in one file")}
			}
			keys[key] = strings.Trim(v, `"`)
			continue
		}
		for _, b := range netperfBanners {
			if test == "" && strings.Contains(strings.ToUpper(line), b.words+" TEST") {
				test = b.test
			}
		}
		if head := strings.Split(strings.TrimSpace(line), ","); slices.Contains(head, "Throughput") && i+1 < len(lines) {
			cells, err := csv.NewReader(strings.NewReader(lines[i+1])).Read()
			if err != nil || len(cells) != len(head) {
				return nil, &lineError{i + 2, errors.New("the values do not fit the head above: cut off?")}
			}
			for k, name := range head {
				if key := netperfHeads[strings.TrimSpace(name)]; key != "" {
					keys[key] = cells[k]
				}
			}
		}
	}
	if keys["THROUGHPUT"] == "" || keys["THROUGHPUT_UNITS"] == "" {
		return nil, &lineError{0, errors.New("no THROUGHPUT with its THROUGHPUT_UNITS; run netperf with -- -k or -o and these selectors")}
	}
	if test == "" {
		test = netperfTest(keys)
	}
	f := figure{test: test, path: "pod", metrics: map[string]float64{}, unknown: []string{"path", "loss", "CPU by mode", "kernel", "the time"}}
	if v := parseNumber(keys["ELAPSED_TIME"]); v.known && v.number > 0 {
		f.elapsed = unit.Seconds(v.number)
	}
	if strings.HasSuffix(test, "RR") {
		f.netperfRates(keys)
	} else {
		f.netperfStream(keys)
	}
	return []figure{f}, nil
}

// netperfStream takes the figures of a stream. THROUGHPUT is of the bytes that the receiver
// counted, UDP's, too (send_omni_inner in nettest_omni.c); without a control connection
// (-N) nobody knows them, and it is of the bytes sent.
func (f *figure) netperfStream(keys map[string]string) {
	factor, known := netperfUnits[keys["THROUGHPUT_UNITS"]]
	received := parseNumber(keys["REMOTE_RECV_THROUGHPUT"])
	options, _, _ := strings.Cut(keys["COMMAND_LINE"], " -- ")
	switch {
	case !known:
		f.contradict("the unit %.20q of the throughput is not known", keys["THROUGHPUT_UNITS"])
	case slices.Contains(strings.Fields(options), "-N"), received.known && received.number == 0 && keys["DIRECTION"] != "Receive":
		f.unknown = append(f.unknown, "what arrived: without a control connection netperf counts what was sent")
	default:
		f.set(result.Goodput, keys["THROUGHPUT"], factor)
	}
	if v := parseNumber(keys["LOCAL_TRANSPORT_RETRANS"]); v.known && v.number >= 0 {
		f.metrics[result.Retransmits] = v.number
	}
}

// netperfRates takes the figures of requests. In units of bits or bytes THROUGHPUT is of
// both directions together, which is no figure of ours; the rate is TRANSACTION_RATE then.
func (f *figure) netperfRates(keys map[string]string) {
	f.set(result.Rate, keys["TRANSACTION_RATE"], 1)
	if v := parseNumber(keys["THROUGHPUT"]); keys["THROUGHPUT_UNITS"] == "Trans/s" && v.known {
		if rate, has := f.metrics[result.Rate]; has && differBy(rate, v.number, 0.01) {
			f.contradict("a throughput of %g a second, and a transaction rate of %s", v.number, keys["TRANSACTION_RATE"])
		}
		f.metrics[result.Rate] = v.number
	}
	for key, metric := range map[string]string{"P50_LATENCY": "latency_p50", "P90_LATENCY": "latency_p90", "P99_LATENCY": "latency_p99", "MEAN_LATENCY": "latency_mean"} {
		if v := parseNumber(keys[key]); v.known && v.number > 0 {
			f.set(metric, keys[key], 1e-6)
		}
	}
}

// netperfTest is the test by the keys, where no banner names it.
func netperfTest(keys map[string]string) string {
	if _, after, has := strings.Cut(keys["COMMAND_LINE"], "-t "); has {
		if fields := strings.Fields(after); len(fields) > 0 && workloads[strings.ToUpper(fields[0])] != "" {
			return strings.ToUpper(fields[0])
		}
	}
	kind := "_STREAM"
	if keys["THROUGHPUT_UNITS"] == "Trans/s" || keys["DIRECTION"] == "Send|Recv" {
		kind = "_RR"
	}
	return keys["PROTOCOL"] + kind
}

func differBy(a, b, share float64) bool { return a < b*(1-share) || a > b*(1+share) }
