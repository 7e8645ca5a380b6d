package workload

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/result"
)

const (
	qperfPort     = 19765 // qperf's default, the first port that is tried
	qperfPatience = 10 * time.Second
	// qperfMaxSize keeps a message in one UDP datagram.
	qperfMaxSize = maxDatagram
)

// Qperf is one of qperf's tests with the flags of Kube-OVN's tuning page.
type Qperf struct {
	test    string // name of qperf's test and of the workload
	summary string
	metrics []string
	figures func(qperfReport) (map[string]float64, error)
}

// TCPLat is qperf's tcp_lat: messages to and fro on one TCP connection.
func TCPLat() Qperf { return latencyTest("tcp_lat", "TCP") }

// UDPLat is qperf's udp_lat: messages to and fro on one UDP socket.
func UDPLat() Qperf { return latencyTest("udp_lat", "UDP") }

func latencyTest(test, protocol string) Qperf {
	return Qperf{
		test:    test,
		summary: protocol + " messages to and fro with qperf; one-way latency as qperf reports it: half a round trip, closed loop; not to be compared with http_rate's latency",
		metrics: []string{result.LatencyMean},
		figures: func(r qperfReport) (map[string]float64, error) {
			v, err := r.quantity("latency", secondsOf)
			return map[string]float64{result.LatencyMean: v}, err
		},
	}
}

// TCPBW is qperf's tcp_bw: messages one way on one TCP connection.
func TCPBW() Qperf {
	return Qperf{
		test:    "tcp_bw",
		summary: "TCP messages one way with qperf; goodput is what the server received",
		metrics: []string{result.Goodput},
		figures: func(r qperfReport) (map[string]float64, error) {
			v, err := r.quantity("bw", bitsPerSecondOf)
			return map[string]float64{result.Goodput: v}, err
		},
	}
}

// UDPBW is qperf's udp_bw: messages one way from one UDP socket.
func UDPBW() Qperf {
	return Qperf{
		test:    "udp_bw",
		summary: "UDP messages one way with qperf, as fast as they can be sent; goodput is what the server received, and loss belongs to it",
		metrics: []string{result.Goodput, result.Loss},
		figures: func(r qperfReport) (map[string]float64, error) {
			received, err1 := r.quantity("recv_bw", bitsPerSecondOf)
			sent, err2 := r.quantity("send_bw", bitsPerSecondOf)
			if err := errors.Join(err1, err2); err != nil {
				return nil, err
			}
			// The clocks of the sides start at different times, so the server may count a little more than was sent.
			return map[string]float64{result.Goodput: received, result.Loss: max(0, 1-received/sent)}, nil
		},
	}
}

// Info implements Workload.
func (q Qperf) Info() Info {
	return Info{
		Name: q.test, Summary: q.summary,
		Params:  []Param{{"size", 1, "bytes in a message; the study has 1, 1024 and 4096"}},
		Metrics: q.metrics,
	}
}

// Drive implements Workload. qperf takes whole seconds and knows no warm-up:
// times are rounded up, and the warm-up is a run of its own before the
// measured one.
func (q Qperf) Drive(ctx context.Context, s *Session) (out Outcome, err error) {
	size := s.Params.Int("size")
	if size < 1 || size > qperfMaxSize {
		return out, fmt.Errorf("%s: size %d; want 1 to %d bytes", q.test, size, qperfMaxSize)
	}
	if s.Duration <= 0 {
		return out, fmt.Errorf("%s: a window of %v; it must be above 0", q.test, s.Duration)
	}
	run := time.Duration(math.Ceil(s.Duration.Seconds())) * time.Second
	if run != s.Duration {
		out.Notes = append(out.Notes, result.Reason{Code: "whole_seconds",
			Text: fmt.Sprintf("qperf takes whole seconds only: the window is %v instead of %v", run, s.Duration)})
	}
	if strings.HasSuffix(q.test, "_lat") {
		out.Notes = append(out.Notes, result.Reason{Code: "one_way_latency",
			Text: "one-way latency as qperf reports it: half of the mean round trip of a message, in a closed loop, which hides stalls; it is not the latency of http_rate"})
	}
	c := newProgramGroup(ctx, s)
	defer func() { err = errors.Join(err, c.stopAll()) }()
	report, err := c.qperf(q.test, size, run)
	if err != nil {
		return out, fmt.Errorf("%s: %w", q.test, err)
	}
	metrics, err := q.figures(report)
	if err != nil {
		return out, fmt.Errorf("%s: %w", q.test, err)
	}
	out.Metrics = metrics
	return out, nil
}

// qperf starts a server, warms up, measures and reads the result.
func (c *programGroup) qperf(test string, size int, run time.Duration) (qperfReport, error) {
	ports, err := freePorts(c.ctx, c.s.Server, qperfPort, 1)
	if err != nil {
		return qperfReport{}, err
	}
	port := strconv.Itoa(ports[0])
	server, err := c.start(c.s.Server, "server", ".txt", "qperf", "--listen_port", port)
	if err != nil {
		return qperfReport{}, err
	}
	if err := awaitListening(c.ctx, c.s.Server, []*program{server}, ports); err != nil {
		return qperfReport{}, errors.Join(c.qperfFailure(server), err)
	}
	client := func(role string, run time.Duration, mark bool) (*program, error) {
		// -uu and -e set only how figures are printed: in one unit, with six digits.
		start := time.Now()
		p, err := c.start(c.s.Client, role, ".txt", "qperf", "-t", strconv.Itoa(int(run/time.Second)), c.s.Target.String(),
			"--listen_port", port, "-ub", "-oo", "msg_size:"+strconv.Itoa(size), "-vu", "-uu", "-e", "6", test)
		if err != nil {
			return nil, err
		}
		if mark {
			measure(c.ctx, c.s, start, 0, run, 0, p, server)
		}
		return p, errors.Join(c.await(start.Add(run+qperfPatience), p), c.qperfFailure(server, p))
	}
	if c.s.Warmup > 0 {
		if _, err := client("warm-up", time.Duration(math.Ceil(c.s.Warmup.Seconds()))*time.Second, false); err != nil {
			return qperfReport{}, err
		}
	}
	p, err := client("client", run, true)
	if err != nil {
		return qperfReport{}, err
	}
	// If the server is killed, its child, which serves the client, goes on and keeps the
	// output open. The server's end may then show only in stop.
	if err := c.stop(server, 128+int(syscall.SIGTERM)); err != nil {
		return qperfReport{}, err
	}
	report, err := parseQperf(bytes.NewReader(p.stdout.Bytes()))
	if err == nil {
		err = report.check(test, size, run)
	}
	return report, err
}

// qperfFailure returns the errors of the server, if it has ended, which it does not do by
// itself, and of clients that have ended; nil if none failed.
func (c *programGroup) qperfFailure(server *program, clients ...*program) error {
	if c.ctx.Err() != nil {
		return nil // the end of the context killed them
	}
	var failures []error
	for _, p := range clients {
		if p.ended() {
			// qperf prints its errors on standard output.
			if err := p.failureWith(p.stdout.String() + p.stderr.String()); err != nil {
				failures = append(failures, err)
			}
		}
	}
	if server.ended() {
		failures = append([]error{server.explainEnd()}, failures...)
	}
	return errors.Join(failures...)
}

// qperfReport is the output of one test.
type qperfReport struct {
	test   string
	fields map[string]string // value and unit, as printed
}

// parseQperf reads the output of one test: its name with a colon, then lines
// of "name = value unit".
func parseQperf(r io.Reader) (qperfReport, error) {
	report := qperfReport{fields: map[string]string{}}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		name, value, field := strings.Cut(line, "=")
		switch {
		case line == "":
		case field && report.test != "":
			name = strings.TrimSpace(name)
			if _, twice := report.fields[name]; twice {
				return report, fmt.Errorf("qperf's output has %s twice", name)
			}
			report.fields[name] = strings.TrimSpace(value)
		case strings.HasSuffix(line, ":") && report.test == "":
			report.test = strings.TrimSuffix(line, ":")
		default:
			return report, fmt.Errorf("qperf's output: unexpected line %.80q", line)
		}
	}
	if err := lines.Err(); err != nil {
		return report, fmt.Errorf("qperf's output: %w", err)
	}
	if report.test == "" {
		return report, errors.New("qperf printed no result")
	}
	return report, nil
}

// check returns an error if the report is of another test, size or time than was asked for.
func (r qperfReport) check(test string, size int, run time.Duration) error {
	if r.test != test {
		return fmt.Errorf("qperf ran %q instead of %s", r.test, test)
	}
	for _, f := range []struct {
		name  string
		want  float64
		units map[string]float64
	}{{"msg_size", float64(size), bytesOf}, {"time", run.Seconds(), secondsOf}} {
		v, err := r.quantity(f.name, f.units)
		if err != nil {
			return err
		}
		if math.Abs(v-f.want) > 0.01*f.want {
			return fmt.Errorf("qperf's %s is %s instead of %v", f.name, r.fields[f.name], f.want)
		}
	}
	return nil
}

// Units as qperf prints them: times, sizes and speeds. "b" is a bit and "B" a byte; K, M
// and G are decimal, and binary in KiB, MiB and GiB.
var (
	secondsOf = map[string]float64{"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "sec": 1, "min": 60, "hour": 3600, "hours": 3600}
	bytesOf   = map[string]float64{
		"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "KB": 1e3, "MB": 1e6, "GB": 1e9,
	}
	bitsPerSecondOf = map[string]float64{
		"bits/sec": 1, "Kb/sec": 1e3, "Mb/sec": 1e6, "Gb/sec": 1e9, "Tb/sec": 1e12,
		"bytes/sec": 8, "KB/sec": 8e3, "MB/sec": 8e6, "GB/sec": 8e9, "TB/sec": 8e12,
	}
)

// quantity returns a field in its base unit. Errors: it is missing, has another
// unit, or is not above zero.
func (r qperfReport) quantity(name string, units map[string]float64) (float64, error) {
	text, found := r.fields[name]
	if !found {
		return 0, fmt.Errorf("qperf's output for %s has no %s", r.test, name)
	}
	number, unit, _ := strings.Cut(text, " ")
	unit, _, _ = strings.Cut(unit, "(") // "1 KiB (1,024)" gives the size twice
	factor, known := units[strings.TrimSpace(unit)]
	v, err := strconv.ParseFloat(strings.ReplaceAll(number, ",", ""), 64)
	if !known || err != nil {
		return 0, fmt.Errorf("qperf's %s is %q, which is no number with one of its units", name, text)
	}
	if v *= factor; !(v > 0) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("qperf's %s is %q: nothing was measured", name, text)
	}
	return v, nil
}
