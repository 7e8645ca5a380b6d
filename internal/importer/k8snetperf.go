package importer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// readK8sNetperf reads results of cloud-bulldozer/k8s-netperf: result-*.csv, or what --json
// prints. Throughput is Mb/s or OP/s, latency the mean of the tests' p99 in microseconds.
// Counts that it has not measured are 0 there, so that a 0 is unknown.
func readK8sNetperf(ctx context.Context, src *source, opt Options) (*imported, error) {
	return readFigures(ctx, src, opt, "k8s-netperf", []string{".csv", ".json"}, parseK8sNetperf)
}

func parseK8sNetperf(data []byte) ([]figure, error) {
	if text := bytes.TrimSpace(data); len(text) > 0 && (text[0] == '[' || text[0] == '{') {
		return parseK8sNetperfJSON(text)
	}
	return parseK8sNetperfCSV(data)
}

// parseK8sNetperfCSV goes by the names of columns, which differ between versions.
func parseK8sNetperfCSV(data []byte) ([]figure, error) {
	var figures []figure
	err := eachRecord(data, func(line int, row map[string]string) error {
		if _, has := row["Profile"]; !has {
			return errors.New("no column Profile; it is no result of k8s-netperf")
		}
		throughput, has := row["Avg Throughput"]
		if !has {
			return errors.New("no column Avg Throughput: CPU, pods and losses of k8s-netperf are in files of their own, which import does not read")
		}
		f := figure{line: line, test: row["Profile"], metrics: map[string]float64{}, elapsed: unit.Seconds(whole(row["Duration"])),
			streams: whole(row["Parallelism"]), message: whole(row["Message Size"]), mean: whole(row["# of Samples"])}
		f.setPath(row["Host Network"] == "true", row["Same node"] == "true", row["Service"] == "true")
		f.throughput(throughput, cmp.Or(row["Throughput Metric"], row["Metric"]))
		if row["Latency Metric"] == "usec" {
			f.latency99(row["99%tile Observed Latency"])
		}
		f.unknown = []string{"loss", "retransmits", "CPU", "kernel"}
		low, high, value := parseNumber(row["Confidence metric - low"]), parseNumber(row["Confidence metric - high"]), parseNumber(throughput)
		if low.known && high.known && value.known && low.number < high.number && (value.number < low.number || value.number > high.number) {
			f.contradict("the mean %s is outside of its own interval from %s to %s", throughput, low.text, high.text)
		} else if low.known && high.known && low.number < high.number {
			f.notes = append(f.notes, result.Reason{Code: "interval_of_source", Text: fmt.Sprintf("the file gives the mean's interval: %s to %s", low.text, high.text)})
		}
		figures = append(figures, f)
		return nil
	})
	return figures, err
}

func parseK8sNetperfJSON(data []byte) ([]figure, error) {
	var docs []struct {
		Timestamp   time.Time `json:"timestamp"`
		Host        bool      `json:"hostNetwork"`
		Streams     int       `json:"parallelism"`
		Profile     string    `json:"profile"`
		Duration    float64   `json:"duration"`
		Service     bool      `json:"service"`
		Local       bool      `json:"local"`
		Samples     int       `json:"samples"`
		Message     int       `json:"messageSize"`
		Throughput  float64   `json:"throughput"`
		Latency     float64   `json:"latency"`
		Unit        string    `json:"tputMetric"`
		LatencyUnit string    `json:"ltcyMetric"`
		Retransmits float64   `json:"tcpRetransmits"`
		Lost        float64   `json:"udpLossPercent"`
	}
	if data[0] == '{' {
		data = append(append([]byte("["), data...), ']')
	}
	if err := unmarshal(data, 0, &docs); err != nil {
		return nil, err
	}
	var figures []figure
	for _, d := range docs {
		if d.Profile == "" {
			return figures, &lineError{0, errors.New("a document without a profile; it is no result of k8s-netperf")}
		}
		f := figure{test: d.Profile, metrics: map[string]float64{}, streams: d.Streams, message: d.Message, mean: d.Samples, elapsed: unit.Seconds(d.Duration)}
		if plausibleTime(d.Timestamp) {
			f.started = d.Timestamp.UTC()
		}
		f.setPath(d.Host, d.Local, d.Service)
		f.throughput(fmt.Sprint(d.Throughput), d.Unit)
		if d.LatencyUnit == "usec" {
			f.latency99(fmt.Sprint(d.Latency))
		}
		if d.Lost != 0 && d.Profile == "UDP_STREAM" {
			f.metrics[result.Loss] = d.Lost / 100
		}
		if d.Retransmits != 0 && d.Profile == "TCP_STREAM" {
			f.metrics[result.Retransmits] = d.Retransmits
		}
		f.unknown = []string{"kernel", "losses and retransmits of 0, which stand for none and for not measured"}
		figures = append(figures, f)
	}
	return figures, nil
}

// setPath sets whose test it is, and its path.
func (f *figure) setPath(host, sameNode, service bool) {
	f.host, f.path = host, "pod"
	switch {
	case service:
		f.path = "service"
	case sameNode:
		f.path = "same-node"
	}
	if service && sameNode {
		f.notes = append(f.notes, result.Reason{Code: "same_node", Text: "client and server of the Service were on one node"})
	}
}

// throughput takes a throughput over by its unit.
func (f *figure) throughput(number, unit string) {
	switch unit {
	case "Mb/s", "10^6bits/s":
		f.set(result.Goodput, number, 1e6)
	case "OP/s", "ops/s", "Trans/s":
		f.set(result.Rate, number, 1)
	default:
		f.contradict("the unit %.20q of the throughput is not known", unit)
	}
}

func (f *figure) latency99(microseconds string) {
	if v := parseNumber(microseconds); v.known && v.number > 0 && f.test != "TCP_STREAM" && f.test != "UDP_STREAM" {
		f.set("latency_p99", microseconds, 1e-6)
	}
}

// whole is a whole number from 0 to a million, 0 for anything else.
func whole(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1_000_000 {
		return 0
	}
	return n
}

// eachRecord calls do for every row of a table with a head, by column. Errors are
// *lineError; rows before it have been taken.
func eachRecord(data []byte, do func(line int, row map[string]string) error) error {
	r := csv.NewReader(bytes.NewReader(data))
	r.FieldsPerRecord, r.TrimLeadingSpace = -1, true
	head, err := r.Read()
	if errors.Is(err, io.EOF) {
		return &lineError{0, errEmpty}
	}
	for err == nil {
		var cells []string
		if cells, err = r.Read(); err != nil {
			break
		}
		line, _ := r.FieldPos(0)
		if len(cells) != len(head) {
			return &lineError{line, fmt.Errorf("%d cells below %d names of columns: cut off?", len(cells), len(head))}
		}
		row := map[string]string{}
		for i, name := range head {
			row[name] = cells[i]
		}
		if err := do(line, row); err != nil {
			return &lineError{line, err}
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		return &lineError{bad.Line, bad.Err}
	}
	return &lineError{0, err}
}
