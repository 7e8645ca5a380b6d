package workload

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The fixtures were recorded on loopback with iperf3 3.12: -i 0.1 -t 2
// (intervals), and -i 1 -O 1 -t 2 (whole).

func fixture(t testing.TB, elem ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func iperf3Fixture(t testing.TB, name string) *iperf3Report {
	t.Helper()
	r, err := parseIperf3(bytes.NewReader(fixture(t, "iperf3", name+".json")))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// What the intervals add up to over a whole test is iperf3's own summary.
func TestIntervalsEqualSummary(t *testing.T) {
	all := iperf3Window{from: 0, to: 2.5}
	for _, protocol := range []string{"tcp", "udp"} {
		server := iperf3Fixture(t, protocol+"-intervals-server")
		sum, err := server.receivedSum(all)
		if err != nil {
			t.Fatal(err)
		}
		near := cmpopts.EquateApprox(0, 1e-6)
		if diff := cmp.Diff(*server.End.Received, sum, near); diff != "" {
			t.Errorf("%s, received:\n%s", protocol, diff)
		}
		client := iperf3Fixture(t, protocol+"-intervals-client")
		sum, err = client.sentSum(all)
		if err != nil {
			t.Fatal(err)
		}
		// The client's summary gives a jitter and losses of 0; its intervals have none.
		unknown := cmpopts.IgnoreFields(iperf3Sum{}, "JitterMs", "LostPackets")
		if diff := cmp.Diff(*client.End.Sent, sum, near, unknown); diff != "" {
			t.Errorf("%s, sent:\n%s", protocol, diff)
		}
	}
}

// Whole times take iperf3's summary, which leaves the warm-up out.
func TestWholeWindow(t *testing.T) {
	server := iperf3Fixture(t, "tcp-whole-server")
	sum, err := server.receivedSum(iperf3Window{whole: true})
	if err != nil {
		t.Fatal(err)
	}
	var unomitted float64
	for _, i := range server.Intervals {
		if !i.Sum.Omitted {
			unomitted += i.Sum.Bytes
		}
	}
	if sum.Bytes != unomitted || sum.Bytes <= 0 || math.Abs(sum.Seconds-2) > 0.1 {
		t.Errorf("%.0f bytes in %v s; the intervals after the warm-up have %.0f", sum.Bytes, sum.Seconds, unomitted)
	}
	// Both sides must agree on what was received.
	if diff := cmp.Diff(sum.Bytes, iperf3Fixture(t, "tcp-whole-client").End.Received.Bytes); diff != "" {
		t.Error(diff)
	}
}

func TestWithin(t *testing.T) {
	number := func(v float64) *float64 { return &v }
	interval := func(start, end, bytes float64) iperf3Sum {
		return iperf3Sum{Start: start, End: end, Seconds: end - start, Bytes: bytes}
	}
	tests := []struct {
		name      string
		intervals []iperf3Sum
		want      iperf3Sum
		err       string
	}{
		{"the nearest whole intervals", []iperf3Sum{
			interval(0, 0.1, 1), interval(0.1, 0.2003, 2), interval(0.2003, 0.2998, 4), interval(0.2998, 0.4, 8), interval(0.4, 0.5, 16),
		}, iperf3Sum{Start: 0.1, End: 0.4, Seconds: 0.3, Bytes: 14}, ""},
		{"one that stretches over the edge is left out with its time", []iperf3Sum{
			interval(0, 0.2, 1), interval(0.2, 0.3, 2), interval(0.3, 0.6, 4),
		}, iperf3Sum{Start: 0.2, End: 0.3, Seconds: 0.1, Bytes: 2}, ""},
		{"omitted ones are left out", []iperf3Sum{
			{Start: 0.1, End: 0.2, Bytes: 1, Omitted: true}, interval(0.2, 0.3, 2),
		}, iperf3Sum{Start: 0.2, End: 0.3, Seconds: 0.1, Bytes: 2}, ""},
		{"counts add up, jitter is the last", []iperf3Sum{
			{Start: 0.1, End: 0.2, Retransmits: number(1), LostPackets: number(-1), Packets: number(10), JitterMs: number(3)},
			{Start: 0.2, End: 0.3, Retransmits: number(2), LostPackets: number(4), Packets: number(20), JitterMs: number(5)},
		}, iperf3Sum{Start: 0.1, End: 0.3, Seconds: 0.2, Retransmits: number(3), LostPackets: number(3), Packets: number(30), JitterMs: number(5)}, ""},
		{"none", []iperf3Sum{interval(0, 0.7, 1)}, iperf3Sum{}, "no whole interval"},
		{"empty", nil, iperf3Sum{}, "no whole interval"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r iperf3Report
			for _, i := range tt.intervals {
				r.Intervals = append(r.Intervals, struct {
					Sum iperf3Sum `json:"sum"`
				}{i})
			}
			got, err := r.within(iperf3Window{from: 0.1, to: 0.4})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestScheduleIperf3(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	tests := []struct {
		warmup, duration, spare time.Duration
		want                    iperf3Schedule
	}{
		{1 * s, 10 * s, 0, iperf3Schedule{1, 10, "1", iperf3Window{whole: true}, 0}},
		{0, 60 * s, 0, iperf3Schedule{0, 60, "1", iperf3Window{whole: true}, 0}},
		{400 * ms, 1500 * ms, 0, iperf3Schedule{0, 2, "0.1", iperf3Window{from: 0.4, to: 1.9}, 0}},
		{0, 300 * ms, 0, iperf3Schedule{0, 1, "0.1", iperf3Window{from: 0, to: 0.3}, 0}},
		{500 * ms, 1500 * ms, 0, iperf3Schedule{0, 2, "0.1", iperf3Window{from: 0.5, to: 2}, 0}},
		{61 * s, 10 * s, 0, iperf3Schedule{0, 71, "0.1", iperf3Window{from: 61, to: 71}, 0}}, // -O takes no more than 60
		{1 * s, 2 * s, 2500 * ms, iperf3Schedule{0, 6, "0.1", iperf3Window{from: 1, to: 3}, 2500 * ms}},
	}
	for _, tt := range tests {
		got := scheduleIperf3(tt.warmup, tt.duration, tt.spare)
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(iperf3Schedule{}, iperf3Window{})); diff != "" {
			t.Errorf("%v after %v: %s", tt.duration, tt.warmup, diff)
		}
	}
}

func TestParseIperf3Errors(t *testing.T) {
	whole := string(fixture(t, "iperf3", "tcp-whole-server.json"))
	tests := []struct{ name, in, want string }{
		{"refused", string(fixture(t, "iperf3", "refused-client.json")), "unable to connect to server: Connection refused"},
		{"no such address", string(fixture(t, "iperf3", "unbound-server.json")), "unable to start listener for connections: Cannot assign requested address"},
		{"the server was killed", string(fixture(t, "iperf3", "killed-client.json")), "Connection reset by peer"},
		{"empty", "", "iperf3 printed no report"},
		{"blank", " \n", "iperf3 printed no report"},
		{"cut off", whole[:len(whole)/2], "iperf3's report is cut off"},
		{"something follows", whole + "{}", "followed by other output"},
		{"text", "iperf3: error - unable to connect", "iperf3's report: invalid character"},
		{"another JSON", `{"schema": "x"}`, "no end.sum_sent"},
		{"a list", `[1]`, "iperf3's report: json: cannot unmarshal array"},
		{"no number", `{"intervals": [{"sum": {"bytes": "many"}}]}`, "iperf3's report: json"},
		{"too large a number", `{"end": {"sum_sent": {"bytes": 1e999}}}`, "iperf3's report: json"},
		{"null", "null", "no end.sum_sent"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := parseIperf3(strings.NewReader(tt.in))
			if err == nil {
				t.Fatalf("parsed as %+v", r)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	var said *iperf3Error
	if _, err := parseIperf3(bytes.NewReader(fixture(t, "iperf3", "refused-client.json"))); !errors.As(err, &said) {
		t.Errorf("%T is no *iperf3Error", err)
	}
}

func TestUDPMetrics(t *testing.T) {
	server := iperf3Fixture(t, "udp-whole-server")
	received := *server.End.Received
	got, err := udpMetrics([]iperf3Result{{received: received}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"goodput": 8 * received.Bytes / received.Seconds,
		"loss":    *received.LostPackets / *received.Packets,
		"jitter":  *received.JitterMs / 1000,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	number := func(v float64) *float64 { return &v }
	udp := func(lost, packets float64) []iperf3Result {
		return []iperf3Result{{received: iperf3Sum{Bytes: 1, Seconds: 1, LostPackets: number(lost), Packets: number(packets), JitterMs: number(1)}}}
	}
	if got, err := udpMetrics(udp(-3, 100)); err != nil || got["loss"] != 0 {
		t.Errorf("late arrivals: loss %v, %v", got["loss"], err)
	}
	for name, results := range map[string][]iperf3Result{
		"more lost than sent": udp(101, 100),
		"no packets":          udp(0, 0),
		"TCP's summary":       {{received: iperf3Sum{Bytes: 1, Seconds: 1}}},
	} {
		if got, err := udpMetrics(results); err == nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestParseIperf3Version(t *testing.T) {
	tests := []struct {
		in           string
		major, minor int
	}{
		{string(fixture(t, "iperf3", "version.txt")), 3, 12},
		{"iperf 3.16 (cJSON 1.7.15)\n", 3, 16},
		{"iperf 3.17.1+ (cJSON 1.7.15)\n", 3, 17},
		{"iperf 3.19-beta1\n", 0, 0},
		{"iperf 3.20+\n", 3, 20},
		{"iperf 3.9rc1\n", 0, 0},
		{"iperf version 2.1.8 (12 August 2022) pthreads\n", 0, 0},
		{"", 0, 0},
	}
	for _, tt := range tests {
		major, minor, err := parseIperf3Version(strings.NewReader(tt.in))
		if major != tt.major || minor != tt.minor || (err == nil) != (tt.major > 0) {
			t.Errorf("%.20q: %d.%d, %v; want %d.%d", tt.in, major, minor, err, tt.major, tt.minor)
		}
	}
}

func FuzzParseIperf3(f *testing.F) {
	files, err := filepath.Glob("testdata/iperf3/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal("no fixtures", err)
	}
	for _, file := range files {
		f.Add(string(fixture(f, "iperf3", filepath.Base(file))))
	}
	f.Fuzz(func(t *testing.T, in string) {
		r, err := parseIperf3(strings.NewReader(in))
		if err != nil {
			return
		}
		for _, w := range []iperf3Window{{whole: true}, {from: 0.4, to: 1.9}} {
			if received, err := r.receivedSum(w); err == nil {
				_, _ = udpMetrics([]iperf3Result{{received: received}})
			}
			_, _ = r.sentSum(w)
		}
	})
}
