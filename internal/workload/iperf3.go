package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// iperf3Report holds the used fields of what `iperf3 --json` prints at one side (iperf3
// 3.9 to 3.19).
type iperf3Report struct {
	Intervals []struct {
		Sum iperf3Sum `json:"sum"`
	} `json:"intervals"`
	End struct {
		Sent     *iperf3Sum `json:"sum_sent"`
		Received *iperf3Sum `json:"sum_received"`
	} `json:"end"`
	Error string `json:"error"`
}

// iperf3Sum is one interval, or the whole test, over all streams. A field that the
// protocol or the side does not have is nil.
type iperf3Sum struct {
	Start       float64  `json:"start"`   // s
	End         float64  `json:"end"`     // s
	Seconds     float64  `json:"seconds"` // s
	Bytes       float64  `json:"bytes"`
	Retransmits *float64 `json:"retransmits"`  // TCP, the sender's
	JitterMs    *float64 `json:"jitter_ms"`    // UDP, the receiver's; RFC 1889, smoothed
	LostPackets *float64 `json:"lost_packets"` // UDP, the receiver's
	Packets     *float64 `json:"packets"`      // UDP, at the receiver the highest number seen
	Omitted     bool     `json:"omitted"`      // within the warm-up of -O
}

// iperf3Error is an error in iperf3's report. iperf3 may still exit with status 0.
type iperf3Error struct{ text string }

func (e *iperf3Error) Error() string { return e.text }

// parseIperf3 reads the report of one side. Errors: *iperf3Error if iperf3 reports a
// failure; a report that is missing, cut off, or without an end.
func parseIperf3(r io.Reader) (*iperf3Report, error) {
	var report iperf3Report
	d := json.NewDecoder(r)
	switch err := d.Decode(&report); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("iperf3 printed no report")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("iperf3's report is cut off")
	case err != nil:
		return nil, fmt.Errorf("iperf3's report: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("iperf3's report is followed by other output")
	}
	if report.Error != "" {
		return nil, &iperf3Error{strings.TrimPrefix(report.Error, "error - ")}
	}
	if report.End.Sent == nil || report.End.Received == nil {
		return nil, errors.New("iperf3's report has no end.sum_sent and end.sum_received")
	}
	return &report, nil
}

// iperf3Window is the part of a test that is measured.
type iperf3Window struct {
	whole    bool    // the window is the whole test without its warm-up: iperf3's summary
	from, to float64 // s; without whole, the intervals between these times
}

// slack is how far an interval may reach over the edge of the window: half an interval,
// so that the nearest whole intervals are taken.
const slack = iperf3Interval / 2

// receivedSum returns what the server of the test received in the window.
func (r *iperf3Report) receivedSum(w iperf3Window) (iperf3Sum, error) {
	if w.whole {
		return *r.End.Received, nil
	}
	return r.within(w)
}

// sentSum returns what the client of the test sent in the window.
func (r *iperf3Report) sentSum(w iperf3Window) (iperf3Sum, error) {
	if w.whole {
		return *r.End.Sent, nil
	}
	return r.within(w)
}

// within adds up the intervals that lie in the window. On a busy machine iperf3's
// intervals become longer, so the sum has the time that it really covers. An interval
// that lies only partly in the window is left out, its bytes and its time.
func (r *iperf3Report) within(w iperf3Window) (iperf3Sum, error) {
	var sum iperf3Sum
	found := false
	for _, interval := range r.Intervals {
		i := interval.Sum
		if i.Omitted || i.Start < w.from-slack || i.End > w.to+slack {
			continue
		}
		if !found {
			found, sum.Start = true, i.Start
		}
		sum.End = i.End
		sum.Bytes += i.Bytes
		sum.Retransmits = plus(sum.Retransmits, i.Retransmits)
		sum.LostPackets = plus(sum.LostPackets, i.LostPackets)
		sum.Packets = plus(sum.Packets, i.Packets)
		if i.JitterMs != nil {
			sum.JitterMs = i.JitterMs // a running value: the last one counts
		}
	}
	if !found {
		return sum, fmt.Errorf("no whole interval of iperf3 lies between %.1f and %.1f s of the test; give a longer window, or use a machine that is less busy", w.from, w.to)
	}
	sum.Seconds = sum.End - sum.Start
	return sum, nil
}

func plus(a, b *float64) *float64 {
	switch {
	case b == nil:
		return a
	case a == nil:
		a = new(float64)
	}
	*a += *b
	return a
}

// parseIperf3Version reads "iperf 3.12 (cJSON 1.7.15)…", what `iperf3
// --version` prints first.
func parseIperf3Version(r io.Reader) (major, minor int, err error) {
	b, err := io.ReadAll(io.LimitReader(r, 4<<10))
	if err != nil {
		return 0, 0, err
	}
	var name, version string
	if _, err := fmt.Sscan(string(b), &name, &version); err == nil && name == "iperf" {
		first, rest, _ := strings.Cut(version, ".")
		second, _, _ := strings.Cut(rest, ".")
		major, err1 := strconv.Atoi(first)
		minor, err2 := strconv.Atoi(strings.TrimRight(second, "+-abcdefghijklmnopqrstuvwxyz"))
		if errors.Join(err1, err2) == nil && major >= 3 && minor >= 0 {
			return major, minor, nil
		}
	}
	return 0, 0, fmt.Errorf("iperf3 --version printed %.80q instead of a version", b)
}
