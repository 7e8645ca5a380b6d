package importer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/unit"
)

// iperf is an output of iperf3 over 10 s: the flags of its test_start, its end, both
// without the outer braces, and its intervals.
func iperf(flags, end string) string {
	var intervals []string
	for range 10 {
		intervals = append(intervals, `{"sum":{"seconds":1,"bytes":1.25e8,"omitted":false}}`)
	}
	return fmt.Sprintf(`{"start":{"version":"iperf 3.12","timestamp":{"timesecs":1700000000},"test_start":{"num_streams":1,"duration":10,%s}},"intervals":[%s],"end":{%s}}`, flags, strings.Join(intervals, ","), end)
}

const (
	tcpFlags = `"protocol":"TCP","reverse":0`
	udpFlags = `"protocol":"UDP","reverse":0`
	tcpEnd   = `"sum_sent":{"seconds":10,"bytes":1.25e9,"bits_per_second":1e9,"retransmits":3},"sum_received":{"seconds":10,"bytes":1.25e9,"bits_per_second":1e9}`
	stream   = `{"event":"start","data":{"version":"iperf 3.17","timestamp":{"timesecs":1700000000},"test_start":{"protocol":"TCP","num_streams":1,"duration":10}}}
{"event":"interval","data":{"sum":{"seconds":1,"bytes":1.25e8}}}
{"event":"end","data":{` + tcpEnd + "}}\n"
)

func udpEnd(figures string) string {
	return `"sum":{"seconds":10,"bytes":1.25e9,"bits_per_second":1e9` + figures + `}`
}

// TestIperf3Cases: outputs whose figures contradict each other, and text around them.
func TestIperf3Cases(t *testing.T) {
	tcp := iperf(tcpFlags, tcpEnd)
	for name, c := range map[string]struct {
		output  string
		udp     bool
		goodput float64 // 0: none
		loss    float64 // -1: none
		jitter  bool
		code    string // of the reason or note
		fault   string
	}{
		"whole":                   {output: tcp, goodput: 1e9, loss: -1},
		"both directions by flag": {output: iperf(tcpFlags+`,"bidir":1`, tcpEnd), loss: -1, code: "wrong_test"},
		"both directions by sums": {output: iperf(tcpFlags, tcpEnd+`,"sum_received_bidir_reverse":{"bits_per_second":8e8}`), loss: -1, code: "wrong_test"},
		"both directions, 3.7":    {output: iperf(tcpFlags, tcpEnd+`,`+strings.ReplaceAll(tcpEnd, "1e9", "8e8")), loss: -1, code: "wrong_test"},
		"negative lost":           {output: iperf(udpFlags, udpEnd(`,"jitter_ms":0.02,"lost_packets":-1284,"packets":0,"lost_percent":0`)), udp: true, loss: -1, jitter: true, code: "missing_result"},
		"negative percent":        {output: iperf(udpFlags, `"sum_received":{"seconds":10,"bytes":1.25e9,"bits_per_second":1e9,"jitter_ms":0.02,"lost_percent":-3}`), udp: true, goodput: 1e9, loss: -1, jitter: true, code: "inconsistent_result"},
		"negative lost, 3.7":      {output: iperf(udpFlags, `"sum_received":{"seconds":10,"bytes":1.25e9,"bits_per_second":1e9,"jitter_ms":0.02,"lost_packets":-1284,"packets":0,"lost_percent":0}`), udp: true, goodput: 1e9, loss: -1, jitter: true, code: "inconsistent_result"},
		"percent contradicts":     {output: iperf(udpFlags, udpEnd(`,"jitter_ms":0.02,"lost_packets":600000,"packets":900000,"lost_percent":0`)), udp: true, goodput: 1e9 / 3, loss: 2. / 3, jitter: true, code: "inconsistent_result"},
		"long jitter":             {output: iperf(udpFlags, udpEnd(`,"jitter_ms":4100000.5,"lost_packets":0,"packets":863,"lost_percent":0`)), udp: true, goodput: 1e9, loss: 0, code: "jitter_left_out"},
		"sender only":             {output: iperf(udpFlags, udpEnd("")), udp: true, loss: -1, code: "missing_result"},
		"more arrived than sent":  {output: iperf(tcpFlags, strings.Replace(tcpEnd, `"bytes":1.25e9,"bits_per_second":1e9,"re`, `"bytes":1e9,"bits_per_second":8e8,"re`, 1)), goodput: 1e9, loss: -1, code: "inconsistent_result"},
		"intervals contradict":    {output: iperf(tcpFlags, strings.ReplaceAll(tcpEnd, `"bytes":1.25e9,"bits_per_second":1e9`, `"bytes":2.5e9,"bits_per_second":2e9`)), goodput: 2e9, loss: -1, code: "inconsistent_result"},
		"rate of the sender":      {output: iperf(tcpFlags, strings.Replace(tcpEnd, `1e9,"re`, `3e9,"re`, 1)), goodput: 1e9, loss: -1, code: "inconsistent_result"},
		"a line before":           {output: "Unable to use a TTY\n" + tcp, goodput: 1e9, loss: -1, code: "text_around_json"},
		"a line after":            {output: tcp + "\niperf3: error - unable to send control message: Broken pipe\n", goodput: 1e9, loss: -1, code: "text_around_json"},
		"two values":              {output: tcp + "\n" + tcp, loss: -1, code: "missing_result", fault: "dts-client.stdout:2: a second JSON value: two tests in one file"},
		"a stream":                {output: stream, goodput: 1e9, loss: -1},
		"a stream without end":    {output: stream[:strings.Index(stream, `{"event":"end"`)], loss: -1, code: "missing_result", fault: "--json-stream) without its end: cut off"},
		"two streams":             {output: stream + stream, loss: -1, code: "missing_result", fault: "dts-client.stdout:4: a second JSON value"},
		"text":                    {output: "Connecting to host 192.0.2.9, port 5201\n", loss: -1, code: "missing_result", fault: "dts-client.stdout:1: text: iperf3 ran without --json"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			step := map[bool]string{false: "dts", true: "dus"}[c.udp]
			writeText(t, filepath.Join(dir, "calico", "1", step+"-client.stdout"), c.output)
			writeText(t, filepath.Join(dir, "calico", "1", step+".results"), "")
			rec, _ := load(t, "infrabuilder", dir)
			s := rec.Samples[0]
			goodput, has := s.Metrics[result.Goodput]
			if (c.goodput > 0) != has || differBy(goodput, c.goodput, 1e-6) {
				t.Errorf("goodput %v, %v; want %v", goodput, has, c.goodput)
			}
			if loss, has := s.Metrics[result.Loss]; has != (c.loss >= 0) || has && differBy(loss, c.loss, 1e-6) {
				t.Errorf("loss %v, %v; want %v", loss, has, c.loss)
			}
			if _, has := s.Metrics[result.Jitter]; has != c.jitter {
				t.Errorf("jitter %v, want %v", has, c.jitter)
			}
			reasons := slices.Concat(s.Reasons, s.Notes)
			if c.code != "" && !slices.ContainsFunc(reasons, func(r result.Reason) bool { return r.Code == c.code }) {
				t.Errorf("no %s in %v", c.code, reasons)
			}
			if valid := !slices.Contains([]string{"wrong_test", "missing_result", "inconsistent_result"}, c.code); (s.Verdict == result.Valid) != valid {
				t.Errorf("%s: %v", s.Verdict, s.Reasons)
			}
			if text := describe(rec); !strings.Contains(text, c.fault) {
				t.Errorf("no fault %q in:\n%s", c.fault, text)
			}
		})
	}
}

func writeText(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRunsOf: which numbers at the end of names are runs.
func TestRunsOf(t *testing.T) {
	for name, c := range map[string]struct {
		names []string
		want  string
	}{
		"versions":          {[]string{"cilium-1.14", "cilium-1.15", "calico-3.26", "calico-3.27"}, "[cilium-1.14 cilium-1.15 calico-3.26 calico-3.27] [1 1 1 1]"},
		"words":             {[]string{"Linux 22.04 - default - calico - Run 1", "Linux 22.04 - default - calico - Run 2", "a-run12"}, "[Linux 22.04 - default - calico Linux 22.04 - default - calico a] [1 2 12]"},
		"bare numbers":      {[]string{"calico-2", "calico-1", "cilium_1", "cilium_2", "cilium_3"}, "[calico calico cilium cilium cilium] [2 1 1 2 3]"},
		"a lone number":     {[]string{"calico-2", "flannel"}, "[calico-2 flannel] [1 1]"},
		"versions in words": {[]string{"kernel-5", "kernel-6"}, "[kernel-5 kernel-6] [1 1]"},
		"a word with run":   {[]string{"kuberun1", "run-1"}, "[kuberun1 unnamed] [1 1]"},
	} {
		configs, runs := runsOf(c.names)
		if got := fmt.Sprint(configs, runs); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func knbText(name string, mbits int) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"generator":"knb"},"data":{"kernel":"5.4.0","mtu":"1440","pod2pod":{"tcp":{"bandwidth":%d,"client":{"ram":500},"server":{"ram":500}}}}}`, name, mbits)
}

// TestKnbCases: names, carriage returns, and what is no report.
func TestKnbCases(t *testing.T) {
	dir := t.TempDir()
	for run := 1; run <= 3; run++ {
		writeText(t, filepath.Join(dir, fmt.Sprintf("c%d.json", run)), knbText(fmt.Sprintf("Ubuntu 20.04 - default - calico - Run %d", run), 9000+run))
		writeText(t, filepath.Join(dir, fmt.Sprintf("f%d.json", run)), knbText(fmt.Sprintf("Ubuntu 20.04 - default - flannel - Run %d", run), 7000+run))
	}
	writeText(t, filepath.Join(dir, "cr.json"), strings.Replace(knbText("canal", 8000), "5.4.0", "5.4.0\r", 1))
	rec, sum := load(t, "knb", dir)
	var entries []string
	for _, e := range rec.Run.Plan.Contenders {
		entries = append(entries, e.ID)
	}
	want := []string{"Ubuntu 20.04 - default - calico", "Ubuntu 20.04 - default - flannel", "canal"}
	if diff := cmp.Diff(want, entries); diff != "" || rec.Run.Plan.Rounds != 3 || sum.Invalid != 0 || len(rec.Faults) != 0 {
		t.Errorf("%d rounds, %d invalid, %v\n%s", rec.Run.Plan.Rounds, sum.Invalid, rec.Faults, diff)
	}
	broken := t.TempDir()
	writeText(t, filepath.Join(broken, "a.json"), "{\"metadata\":{}\n\"b\":1}")
	writeText(t, filepath.Join(broken, "b.json"), `{"data":{"idle":{"bandwidth":0,}}}`)
	writeText(t, filepath.Join(broken, "c.knbdata"), "\x1f\x8b\x08rest")
	writeText(t, filepath.Join(broken, "d.knbdata"), "=====\n Benchmark Results\n")
	_, err := Import(context.Background(), "knb", broken, filepath.Join(t.TempDir(), "run"), Options{})
	if !errors.Is(err, ErrNothing) {
		t.Fatal(err)
	}
	for _, want := range []string{"a.json:2: ", "b.json:1: ", "c.knbdata: knb's archive; `knb -fd c.knbdata -o json`", "d.knbdata: knb's text"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
}

// TestAssumed: a baseline and a line rate that were named, mistyped, or assumed.
func TestAssumed(t *testing.T) {
	dir := t.TempDir()
	study{configs: []string{"calico", "flannel"}, rounds: 1, intervals: 1}.write(t, dir)
	run := func(opt Options) (*result.Record, error) {
		out := filepath.Join(t.TempDir(), "run")
		if _, err := Import(context.Background(), "infrabuilder", dir, out, opt); err != nil {
			return nil, err
		}
		return result.Load(out)
	}
	for _, name := range []string{"flannel", "flannel-vxlan"} {
		if rec, err := run(Options{Baseline: name}); err != nil || rec.Run.Baseline != "flannel-vxlan" {
			t.Errorf("--baseline %s: %v, %+v", name, err, rec)
		}
	}
	var unknown *text.UnknownError
	if _, err := run(Options{Baseline: "calcio"}); !errors.As(err, &unknown) || !strings.Contains(err.Error(), `"calico"`) {
		t.Errorf("a mistyped baseline: %v", err)
	}
	rec, err := run(Options{})
	if err != nil || rec.Run.Environment["import.line-rate"] != "assumed" {
		t.Errorf("%v, %v", err, rec.Run.Environment)
	}
	given, err := run(Options{LineRate: 2 * unit.BitRate(1e9)})
	if err != nil || given.Run.Environment["import.line-rate"] != "" {
		t.Errorf("%v, %v", err, given.Run.Environment)
	}
	said := regexp.MustCompile("is what import assumes: import again with --line-rate")
	for _, s := range given.Samples {
		for _, r := range s.Reasons {
			if said.MatchString(r.Text) {
				t.Errorf("a given line rate is said to be assumed: %s", r.Text)
			}
		}
	}
}
