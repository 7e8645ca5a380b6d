package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// iperf3Test is what `iperf3 --json` printed at the client, as far as it is
// used (iperf3 3.1 to 3.19). What a version does not give is nil or zero.
// (Package workload reads the reports of its own iperf3, with other needs.)
type iperf3Test struct {
	Start struct {
		SystemInfo string `json:"system_info"` // uname -a of the client
		Timestamp  struct {
			Seconds int64 `json:"timesecs"`
		} `json:"timestamp"`
		Cookie string `json:"cookie"` // different for every test
		MSS    int    `json:"tcp_mss_default"`
		Test   struct {
			Protocol  string  `json:"protocol"`
			Streams   int     `json:"num_streams"`
			BlockSize int     `json:"blksize"`
			Omit      float64 `json:"omit"`     // s
			Duration  float64 `json:"duration"` // s
			Reverse   int     `json:"reverse"`
		} `json:"test_start"`
	} `json:"start"`
	Intervals []struct {
		Sum struct {
			Seconds float64 `json:"seconds"`
			Bytes   float64 `json:"bytes"`
			Omitted bool    `json:"omitted"`
		} `json:"sum"`
	} `json:"intervals"`
	End struct {
		Sent     *iperf3Sum `json:"sum_sent"`
		Received *iperf3Sum `json:"sum_received"`
		Sum      *iperf3Sum `json:"sum"`
		CPU      struct {
			Host   float64 `json:"host_total"`   // % of one CPU, of the client's iperf3
			Remote float64 `json:"remote_total"` // of the server's
		} `json:"cpu_utilization_percent"`
	} `json:"end"`
	Error string `json:"error"`
}

// iperf3Sum is the whole test over all streams.
type iperf3Sum struct {
	Seconds     float64  `json:"seconds"`
	Bytes       float64  `json:"bytes"`
	BitsPerSec  *float64 `json:"bits_per_second"`
	Retransmits *float64 `json:"retransmits"`
	JitterMs    *float64 `json:"jitter_ms"`
	LostPercent *float64 `json:"lost_percent"`
}

// lineError is an error at a place in a file.
type lineError struct {
	line int // from 1; 0 is the whole file
	err  error
}

func (e *lineError) Error() string {
	if e.line == 0 {
		return e.err.Error()
	}
	return fmt.Sprintf("line %d: %v", e.line, e.err)
}

func (e *lineError) Unwrap() error { return e.err }

var errEmpty = errors.New("empty")

// decodeIperf3 reads a client's report. Errors are *lineError; one that iperf3
// itself wrote into its report is none: see Error.
func decodeIperf3(data []byte) (*iperf3Test, error) {
	t := &iperf3Test{}
	if err := decodeJSON(data, t); err != nil {
		return nil, err
	}
	return t, nil
}

// decodeJSON decodes one JSON value and knows the line of what is wrong.
func decodeJSON(data []byte, into any) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return &lineError{0, errEmpty}
	}
	err := json.Unmarshal(data, into)
	if err == nil {
		return nil
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	offset := int64(-1)
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
		if strings.Contains(err.Error(), "unexpected end") {
			err = errors.New("cut off")
		}
	case errors.As(err, &kind):
		offset = kind.Offset
		err = fmt.Errorf("%s: %s where something else belongs", cmp.Or(kind.Field, "the whole"), kind.Value)
	}
	if offset < 0 {
		return &lineError{0, err}
	}
	return &lineError{1 + bytes.Count(data[:min(offset, int64(len(data)))], []byte("\n")), err}
}

// started is when the test began; zero where the report has no time.
func (t *iperf3Test) started() time.Time {
	if at := time.Unix(t.Start.Timestamp.Seconds, 0).UTC(); plausibleTime(at) {
		return at
	}
	return time.Time{}
}

// kernel is the release in the client's uname, "" where there is none.
func (t *iperf3Test) kernel() string {
	if fields := strings.Fields(t.Start.SystemInfo); len(fields) > 2 && kernelRelease.MatchString(fields[2]) {
		return fields[2]
	}
	return ""
}

// metrics are the values under the catalogue's names; what is absent is not
// in it.
func (t *iperf3Test) metrics(udp bool) map[string]float64 {
	m := map[string]float64{}
	set := func(name string, v *float64, factor float64) {
		if v != nil {
			m[name] = *v * factor
		}
	}
	if got := t.End.Received; got != nil {
		set(result.Goodput, got.BitsPerSec, 1)
		if udp {
			set(result.Jitter, got.JitterMs, 1e-3)
			set(result.Loss, got.LostPercent, 1e-2)
		}
	}
	if sent := t.End.Sent; sent != nil && !udp {
		set(result.Retransmits, sent.Retransmits, 1)
	}
	return m
}

// silent counts the intervals of the window in which nothing was sent.
func (t *iperf3Test) silent() int {
	n := 0
	for i := range t.Intervals {
		if sum := &t.Intervals[i].Sum; !sum.Omitted && sum.Bytes == 0 && sum.Seconds > 0 {
			n++
		}
	}
	return n
}

// ownCPUs is what iperf3 itself used at the busier side, CPUs.
func (t *iperf3Test) ownCPUs() float64 {
	return math.Max(t.End.CPU.Host, t.End.CPU.Remote) / 100
}

// apply puts the report into the sample and says what in it can't be right.
func (t *iperf3Test) apply(s *sample, file string, streams int, udp bool) {
	s.cookie, s.release, s.mss = t.Start.Cookie, t.kernel(), t.Start.MSS
	s.Started = t.started()
	if t.Error != "" {
		s.invalidate("workload_failed", "%s: iperf3 says: %s", file, t.Error)
		return
	}
	want := map[bool]string{true: "UDP", false: "TCP"}[udp]
	if p := t.Start.Test.Protocol; p != "" && p != want {
		s.invalidate("wrong_test", "%s is a test of %s, the step is of %s", file, p, want)
	}
	if n := t.Start.Test.Streams; n > 0 && n != streams {
		s.invalidate("wrong_test", "%s: streams are %d, the step has %d", file, n, streams)
	}
	if t.Start.Test.Reverse != 0 {
		s.invalidate("wrong_test", "%s ran in reverse, from server to client", file)
	}
	maps.Copy(s.Metrics, t.metrics(udp))
	if got := t.End.Received; got != nil {
		s.Elapsed = unit.Seconds(got.Seconds)
		if rate := got.BitsPerSec; rate != nil && got.Seconds > 0 && math.Abs(got.Bytes*8/got.Seconds-*rate) > 0.01**rate {
			s.invalidate("inconsistent_result", "%s: %g bytes in %g s are not the %g bit/s that it says", file, got.Bytes, got.Seconds, *rate)
		}
	}
	s.planned = unit.Seconds(t.Start.Test.Duration)
	if len(t.Intervals) == 0 {
		s.note("no_series", "%s has no intervals: what happened within the test is unknown", file)
	}
	if n := t.silent(); n > 0 {
		s.note("silent_seconds", "nothing was sent in %d of %d intervals", n, len(t.Intervals))
	}
	if own := t.ownCPUs(); own >= 0.95*float64(streams) && own < 1e4 {
		s.note("iperf3_cpu_limit", "iperf3 itself used %.2f CPUs at its busier side, streams being %d: the tool may have been the limit", own, streams)
	}
}
