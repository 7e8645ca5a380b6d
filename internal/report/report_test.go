package report

import (
	"bytes"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/text"
)

var update = flag.Bool("update", false, "write the golden files")

func write(t *testing.T, format string, r *analysis.Report, opt Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, format, r, opt); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); if that is meant, run go test ./internal/report -update\n%s", file, diff)
	}
}

var samples = map[string]*analysis.Report{
	"quick": sample(6), "few": sample(3), "hostile": hostile(), "ladder": ladder(),
	"empty": {Schema: analysis.ReportSchema, Baseline: "host"},
}

// What people read on a terminal and in a merge request is held word by word; of what
// programs read, one report as JSON, and the other formats are read back.
func TestGolden(t *testing.T) {
	for _, name := range []string{"quick.txt", "quick.md", "few.txt", "hostile.txt", "hostile.md", "ladder.txt", "empty.txt", "brief.json"} {
		t.Run(name, func(t *testing.T) {
			of, format, _ := strings.Cut(name, ".")
			r := samples[of]
			if of == "brief" {
				r = brief()
			}
			golden(t, name, write(t, map[string]string{"txt": "text", "md": "md", "json": "json"}[format], r, Options{}))
		})
	}
	golden(t, "quick-wide.txt", write(t, "text", samples["quick"], Options{Wide: true, Width: 120}))
	golden(t, "quick-60.txt", write(t, "text", samples["quick"], Options{Width: 60}))
}

// brief is the full report with few of each kind.
func brief() *analysis.Report {
	r := full()
	r.Results = slices.DeleteFunc(r.Results, func(f analysis.Result) bool {
		return f.Contender != "host" && f.Contender != "canal" || f.Metric != "goodput" && f.Metric != "latency_p99_9"
	})
	r.Efficiency, r.Capabilities, r.Advice = r.Efficiency[:2], r.Capabilities[:2], r.Advice[:1]
	r.Published = r.Published[:min(1, len(r.Published))]
	return r
}

func TestUnknownFormat(t *testing.T) {
	err := Write(&bytes.Buffer{}, "htlm", sample(3), Options{})
	var unknown *text.UnknownError
	if !errors.As(err, &unknown) || !strings.Contains(err.Error(), `"html"`) {
		t.Errorf("error %v, want one that names html", err)
	}
}

func TestNotFinite(t *testing.T) {
	nan := math.NaN()
	r := sample(6)
	r.Results[0].Median = nan
	r.Results[1].VsBaseline.Ratio = math.Inf(1)
	r.Results[2].VsBaseline.CI = &analysis.Interval{0, nan}
	r.Results[3].VsBaseline.P = &nan
	r.Results[4].CI = &analysis.Interval{nan, 1}
	r.Results[5].Values = []float64{nan, 1}
	findings := len(r.Findings)
	for _, format := range Formats() {
		got := write(t, format, r, Options{})
		if format == "html" {
			got = readable(got)
		}
		for _, bad := range []string{"NaN", "Inf", "nan"} {
			if strings.Contains(got, bad) {
				t.Errorf("%s holds %s", format, bad)
			}
		}
	}
	clean := finite(r)
	if got, want := len(clean.Results), len(r.Results)-1; got != want {
		t.Errorf("%d results, want %d", got, want)
	}
	var texts []string
	for _, f := range clean.Findings[findings:] {
		texts = append(texts, f.Text)
	}
	want := []string{
		"the median of setup_time is not a finite number and is left out",
		"the ratio to the baseline of setup_time is not a finite number and is left out",
		"the ratio's interval of setup_time is not a finite number and is left out",
		"the p-value of setup_time is not a finite number and is left out",
		"the interval of setup_time is not a finite number and is left out",
		"a round's value of setup_time is not a finite number and is left out",
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
	if !math.IsNaN(r.Results[0].Median) || len(r.Findings) != findings || r.Results[1].VsBaseline == nil {
		t.Error("the report that was given has changed")
	}
}

func TestMetricLabel(t *testing.T) {
	for name, want := range map[string]string{
		"goodput": "Goodput", "latency_p50": "Latency p50", "latency_p99_9": "Latency p99.9", "latency_p99_999": "Latency p99.999",
		"send_lag_max": "Send lag max", "cpu_client_softirq": "CPU client softirq", "cpu_per_gbit": "CPU per Gbit/s", "": "",
	} {
		if got := layout.MetricLabel(name); got != want {
			t.Errorf("metricLabel(%q) = %q, want %q", name, got, want)
		}
	}
}
