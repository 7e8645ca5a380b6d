package report

import (
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
)

var (
	openMeta   = regexp.MustCompile(`^# (TYPE|UNIT|HELP) (cnibench_[a-zA-Z0-9_]+) (.+)$`)
	openSample = regexp.MustCompile(`^(cnibench_[a-zA-Z0-9_]+)\{(?:[a-z]+="(?:[^"\\]|\\[\\n"])*",?)+\} (\S+)(?: \d+\.\d{3})?$`)
)

// checkOpenMetrics reads the text by the grammar of the specification, as far
// as gauges need it, then with Prometheus's parser, and returns the number of
// gauges.
func checkOpenMetrics(t *testing.T, text string) int {
	t.Helper()
	body, ended := strings.CutSuffix(text, "# EOF\n")
	if !ended {
		t.Error("no EOF at the end")
	}
	gauges, family, seen := 0, "", map[string]bool{}
	for _, line := range strings.Split(strings.TrimSuffix(body, "\n"), "\n") {
		if m := openMeta.FindStringSubmatch(line); m != nil {
			if m[1] == "TYPE" {
				if family = m[2]; seen[family] || m[3] != "gauge" && m[3] != "info" {
					t.Errorf("family again, or no gauge: %q", line)
				}
				seen[family] = true
			}
			if m[2] != family || m[1] == "UNIT" && !strings.HasSuffix(family, "_"+m[3]) {
				t.Errorf("of another family, or its name does not end in its unit: %q", line)
			}
			continue
		}
		m := openSample.FindStringSubmatch(line)
		if m == nil {
			if line != "" {
				t.Errorf("no sample: %q", line)
			}
			continue
		}
		if m[1] == "cnibench_run_info" && family == "cnibench_run" {
			continue
		}
		gauges++
		if m[1] != family {
			t.Errorf("sample of another family than %s: %q", family, line)
		}
		if _, err := strconv.ParseFloat(m[2], 64); err != nil {
			t.Errorf("no number: %q", line)
		}
	}
	readByPrometheus(t, text)
	return gauges
}

// readByPrometheus is the values that Prometheus's parser finds, by series.
func readByPrometheus(t *testing.T, text string) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	p := textparse.NewOpenMetricsParser([]byte(text), labels.NewSymbolTable())
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return values
		}
		if err != nil {
			t.Errorf("Prometheus: %v", err)
			return values
		}
		if entry == textparse.EntrySeries {
			var l labels.Labels
			p.Labels(&l)
			_, ts, v := p.Series()
			at := "-"
			if ts != nil {
				at = strconv.FormatInt(*ts, 10)
			}
			if _, twice := values[l.String()+at]; twice {
				t.Errorf("twice: %s", l)
			}
			values[l.String()+at] = v
		}
	}
}

func TestOpenMetricsReadsBack(t *testing.T) {
	for name, r := range samples {
		want := 0
		ends := func(i *analysis.Interval) int {
			if i == nil {
				return 0
			}
			return 2
		}
		for _, res := range r.Results {
			want += 1 + ends(res.CI)
			if res.VsBaseline != nil {
				want += 1 + ends(res.VsBaseline.CI)
			}
			if res.Tier > 0 {
				want++
			}
		}
		if got := checkOpenMetrics(t, write(t, "openmetrics", r, Options{})); got != want {
			t.Errorf("%s: %d gauges, want %d", name, got, want)
		}
	}
}

// TestOpenMetricsOfARun: rounds follow the figures, the recordings follow
// those, and everything has its time.
func TestOpenMetricsOfARun(t *testing.T) {
	at := time.Date(2026, 3, 14, 9, 15, 30, 123456789, time.UTC)
	r := sample(6)
	text := write(t, "openmetrics", r, Options{
		Samples: []result.Sample{
			{Contender: "host", Kernel: "6.18.0", Underlay: "switch", Round: 1, Step: "dts", Path: "pod", Started: at, Elapsed: 3,
				Verdict: result.Valid, Metrics: map[string]float64{"goodput": 17.25e9, "made_up": 1, "cpu_client": math.NaN()}},
			{Contender: "host", Kernel: "6.18.0", Underlay: "switch", Round: 2, Step: "dts", Path: "pod", Started: at.Add(time.Minute), Elapsed: 3,
				Verdict: result.Invalid, Metrics: map[string]float64{"goodput": 0}},
		},
		Recordings: func(w io.Writer) error {
			_, err := fmt.Fprint(w, "# TYPE cnibench_x gauge\ncnibench_x{a=\"b\"} 7\n")
			return err
		},
	})
	checkOpenMetrics(t, text)
	for _, line := range []string{
		`cnibench_run_info{run="20260314-091500-a1b2",arena="lab",suite="quick",baseline="host"} 1 1773479700.000`,
		`cnibench_sample_goodput_bits_per_second{run="20260314-091500-a1b2",contender="host",step="dts",path="pod",kernel="6.18.0",underlay="switch",round="1",verdict="valid"} 1.725e+10 1773479730.123`,
		`cnibench_sample_goodput_bits_per_second{run="20260314-091500-a1b2",contender="host",step="dts",path="pod",kernel="6.18.0",underlay="switch",round="2",verdict="invalid"} 0 1773479790.123`,
		`cnibench_x{a="b"} 7`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
	if strings.Contains(text, "made_up") || strings.Contains(text, "NaN") {
		t.Error("a metric that the catalogue lacks, or a value that is no number, was written")
	}
	if err := Write(io.Discard, "openmetrics", r, Options{Recordings: func(io.Writer) error { return io.ErrUnexpectedEOF }}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an error of the recordings is lost: %v", err)
	}
}
