package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// iperf3Test is the output of `iperf3 --json` or `--json-stream` at the client, as far as it
// is used (iperf3 3.1 to 3.19). What a version does not give is nil or zero.
// (Package workload reads the reports of its own iperf3, with other needs.)
type iperf3Test struct {
	Start     iperf3Start      `json:"start"`
	Intervals []iperf3Interval `json:"intervals"`
	End       iperf3End        `json:"end"`
	Error     string           `json:"error"`

	text  around // of the file
	twice string // a key that End has more than once
}

type iperf3Start struct {
	Version    string `json:"version"`
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
		Bidir     int     `json:"bidir"`
	} `json:"test_start"`
}

type iperf3Interval struct {
	Sum struct {
		Seconds float64 `json:"seconds"`
		Bytes   float64 `json:"bytes"`
		Omitted bool    `json:"omitted"`
	} `json:"sum"`
}

type iperf3End struct {
	Sent     *iperf3Sum `json:"sum_sent"`
	Received *iperf3Sum `json:"sum_received"`
	Sum      *iperf3Sum `json:"sum"`
	Back     *iperf3Sum `json:"sum_received_bidir_reverse"`
	CPU      struct {
		Host   float64 `json:"host_total"`   // % of one CPU, of the client's iperf3
		Remote float64 `json:"remote_total"` // of the server's
	} `json:"cpu_utilization_percent"`
}

// iperf3Sum is the whole test over all streams.
type iperf3Sum struct {
	Seconds     float64  `json:"seconds"`
	Bytes       float64  `json:"bytes"`
	BitsPerSec  *float64 `json:"bits_per_second"`
	Retransmits *float64 `json:"retransmits"`
	JitterMs    *float64 `json:"jitter_ms"`
	LostPackets *float64 `json:"lost_packets"`
	Packets     *float64 `json:"packets"`
	LostPercent *float64 `json:"lost_percent"`
}

// decodeIperf3 reads a client's report. Errors are *lineError; one that iperf3
// itself wrote into its report is none: see Error.
func decodeIperf3(data []byte) (*iperf3Test, error) {
	t := &iperf3Test{}
	if stream, err := t.decodeStream(data); stream {
		return t, err
	}
	var err error
	t.text, err = decodeJSON(data, t)
	switch text := string(firstLine(data)); {
	case err == nil:
		value, _, _, _ := cutJSON(data)
		var raw struct {
			End json.RawMessage `json:"end"`
		}
		if json.Unmarshal(value, &raw) == nil {
			t.twice = findDuplicate(raw.End)
		}
		return t, nil
	case strings.HasPrefix(text, "Connecting to host") || strings.HasPrefix(text, "Server listening") || strings.HasPrefix(text, "-----------"):
		return nil, &lineError{1, errors.New("text: iperf3 ran without --json")}
	case strings.HasPrefix(text, "iperf3: error"):
		return nil, &lineError{1, fmt.Errorf("iperf3 says: %s", strings.TrimPrefix(text, "iperf3: error - "))}
	}
	return nil, err
}

// decodeStream reads the output of --json-stream: an object a line, with its event and
// data. It returns false if the data is no such output.
func (t *iperf3Test) decodeStream(data []byte) (bool, error) {
	type event struct {
		Event string          `json:"event"`
		Data  json.RawMessage `json:"data"`
	}
	var first event
	if json.Unmarshal(firstLine(data), &first) != nil || first.Event == "" {
		return false, nil
	}
	var text []string
	ended := false
	defer func() { t.text = around(strings.Join(text, " ")) }()
	for n, line := range bytes.Split(data, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if !startsJSON(line) {
			text = append(text, string(bytes.TrimSpace(line)))
			continue
		}
		var e event
		err := unmarshal(line, n, &e)
		if err != nil {
			return true, err
		}
		switch e.Event {
		case "start":
			if n > 0 && t.Start.Version+t.Start.Cookie != "" {
				return true, &lineError{n + 1, errTwoValues}
			}
			err = unmarshal(e.Data, n, &t.Start)
		case "interval":
			t.Intervals = append(t.Intervals, iperf3Interval{})
			err = unmarshal(e.Data, n, &t.Intervals[len(t.Intervals)-1])
		case "end":
			ended = true
			t.twice = findDuplicate(e.Data)
			err = unmarshal(e.Data, n, &t.End)
		case "error":
			err = unmarshal(e.Data, n, &t.Error)
		}
		if err != nil {
			return true, err
		}
	}
	if !ended && t.Error == "" {
		return true, &lineError{0, errors.New("a JSON stream (--json-stream) without its end: cut off")}
	}
	return true, nil
}

// startTime is when the test began; zero where the report has no time.
func (t *iperf3Test) startTime() time.Time {
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

// receivedSum is the receiver's sum, nil if the report has none. Before 3.7 a UDP test has the
// receiver's loss and jitter in its only sum, whose rate is the sender's.
func (t *iperf3Test) receivedSum(udp bool) *iperf3Sum {
	if t.End.Received == nil && udp && t.End.Sum != nil && t.End.Sum.LostPercent != nil {
		sum := *t.End.Sum
		sum.BitsPerSec = nil
		return &sum
	}
	return t.End.Received
}

// metrics are the values under the catalogue's names; what is absent is not in it.
func (t *iperf3Test) metrics(udp bool) map[string]float64 {
	m := map[string]float64{}
	set := func(name string, v *float64, factor float64) {
		if v != nil {
			m[name] = *v * factor
		}
	}
	if got := t.receivedSum(udp); got != nil {
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

// apply puts the report into the sample and says what in it can't be right.
func (t *iperf3Test) apply(s *sample, file string, streams int, udp bool) {
	s.cookie, s.release, s.mss = t.Start.Cookie, t.kernel(), t.Start.MSS
	s.Started = t.startTime()
	if t.Error != "" {
		s.invalidate("workload_failed", "%s: iperf3 says: %s", file, t.Error)
		return
	}
	if t.text != "" {
		s.note("text_around_json", "%s holds text beside its JSON: %s", file, string(t.text))
	}
	want := map[bool]string{true: "UDP", false: "TCP"}[udp]
	if p := t.Start.Test.Protocol; p != "" && p != want {
		s.invalidate("wrong_test", "%s is a test of %s, the step is of %s", file, p, want)
	}
	if n := t.Start.Test.Streams; n > 0 && streams > 0 && n != streams {
		s.invalidate("wrong_test", "%s: streams are %d, the step has %d", file, n, streams)
	}
	if t.Start.Test.Reverse != 0 {
		s.invalidate("wrong_test", "%s ran in reverse, from server to client", file)
	}
	if t.bothWays() {
		s.invalidate("wrong_test", "%s ran in both directions at once (--bidir)", file)
		return
	}
	maps.Copy(s.Metrics, t.metrics(udp))
	t.compare(s, file, udp)
	s.planned = unit.Seconds(t.Start.Test.Duration)
	if len(t.Intervals) == 0 {
		s.note("no_series", "%s has no intervals: what happened within the test is unknown", file)
	}
	if n := t.silent(); n > 0 {
		s.note("silent_seconds", "nothing was sent in %d of %d intervals", n, len(t.Intervals))
	}
	if own, n := max(t.End.CPU.Host, t.End.CPU.Remote)/100, max(streams, 1); own >= 0.95*float64(n) && own < 1e4 {
		s.note("iperf3_cpu_limit", "iperf3 itself used %.2f CPUs at its busier side, streams being %d: the tool may have been the limit", own, n)
	}
}

// bothWays is whether the test ran in both directions: by its flag, or by sums that only
// such tests have. Up to 3.10 they stand twice under the same keys.
func (t *iperf3Test) bothWays() bool {
	return t.Start.Test.Bidir != 0 || t.End.Back != nil || strings.HasPrefix(t.twice, "sum")
}

// compare holds figures of the report against those that follow from others.
func (t *iperf3Test) compare(s *sample, file string, udp bool) {
	contradict := func(text string, args ...any) {
		s.invalidate("inconsistent_result", "%s: "+text, append([]any{file}, args...)...)
	}
	for _, side := range []struct {
		name string
		sum  *iperf3Sum
	}{{"sender", t.End.Sent}, {"receiver", t.End.Received}} {
		sum := side.sum
		if sum == nil || sum.BitsPerSec == nil || sum.Seconds <= 0 {
			continue
		}
		if rate := *sum.BitsPerSec; math.Abs(sum.Bytes*8/sum.Seconds-rate) > 0.01*rate {
			contradict("the %s's %g bytes in %g s are not the %g bit/s that it says", side.name, sum.Bytes, sum.Seconds, rate)
		}
	}
	got, sent := t.receivedSum(udp), t.End.Sent
	if got == nil {
		if udp && t.End.Sum != nil {
			s.invalidate("missing_result", "%s has the sender's figures only: what arrived is unknown", file)
		}
		return
	}
	s.Elapsed = unit.Seconds(got.Seconds)
	if udp && got.BitsPerSec == nil {
		t.goodputOfCounts(s, file, got)
	}
	if sent != nil && got.Bytes > 1.05*sent.Bytes+1e6 {
		contradict("%g bytes arrived of %g that were sent", got.Bytes, sent.Bytes)
	}
	inside, seconds := 0.0, 0.0
	for i := range t.Intervals {
		if sum := &t.Intervals[i].Sum; !sum.Omitted {
			inside, seconds = inside+sum.Bytes, seconds+sum.Seconds
		}
	}
	if sent != nil && math.Abs(seconds-sent.Seconds) < 0.02*sent.Seconds && math.Abs(inside-sent.Bytes) > 0.05*sent.Bytes+1e6 {
		contradict("its intervals come to %g bytes, and its end says %g", inside, sent.Bytes)
	}
	if udp {
		t.compareLoss(s, contradict, got)
		s.leaveOutJitter(max(got.Seconds, t.Start.Test.Duration))
	}
}

// goodputOfCounts computes the goodput of a report that has the sender's rate and the
// receiver's counts only.
func (t *iperf3Test) goodputOfCounts(s *sample, file string, got *iperf3Sum) {
	if got.LostPackets == nil || got.Packets == nil || *got.LostPackets < 0 || *got.LostPackets > *got.Packets || *got.Packets == 0 || got.Seconds <= 0 {
		s.invalidate("missing_result", "%s has the sender's rate only: what arrived is unknown", file)
		return
	}
	s.Metrics[result.Goodput] = got.Bytes * 8 / got.Seconds * (1 - *got.LostPackets / *got.Packets)
	s.note("goodput_of_counts", "%s has the sender's rate only: the goodput is it without the datagrams that were lost", file)
}

// compareLoss holds counts and percent of lost datagrams against each other. Loss by
// counts that are possible counts; of what is impossible nothing stays.
func (t *iperf3Test) compareLoss(s *sample, contradict func(string, ...any), got *iperf3Sum) {
	lost, packets, percent := got.LostPackets, got.Packets, got.LostPercent
	switch {
	case percent != nil && (*percent < 0 || *percent > 100):
		delete(s.Metrics, result.Loss)
		contradict("a loss of %g %% is impossible", *percent)
	case lost == nil || packets == nil:
	case *lost < 0 || *packets < 0 || *lost > *packets:
		delete(s.Metrics, result.Loss)
		contradict("%g datagrams lost of %g is impossible: the loss is unknown", *lost, *packets)
	case *packets == 0:
		delete(s.Metrics, result.Loss)
		contradict("no datagram was counted: the loss is unknown")
	default:
		share := *lost / *packets
		said := percent != nil
		if said && math.Abs(*percent/100-share) > 0.001+0.01*share {
			contradict("%g of %g datagrams lost are %.3g %%, and it says %g %%", *lost, *packets, 100*share, *percent)
			said = false
		}
		if !said {
			s.Metrics[result.Loss] = share
		}
	}
}

// leaveOutJitter takes out a jitter that is longer than the test.
func (s *sample) leaveOutJitter(seconds float64) {
	if v, has := s.Metrics[result.Jitter]; has && v > seconds && seconds > 0 {
		delete(s.Metrics, result.Jitter)
		s.required = slices.DeleteFunc(slices.Clone(s.required), func(name string) bool { return name == result.Jitter })
		s.note("jitter_left_out", "a jitter of %g s in a test of %g s is impossible; it is left out", v, seconds)
	}
}
