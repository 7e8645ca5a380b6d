package report

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/nearest"
	"github.com/cnibench/cnibench/internal/report/layout"
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

func TestGolden(t *testing.T) {
	extension := map[string]string{"text": "txt", "openmetrics": "om", "benchstat": "bench"}
	for name, r := range samples {
		for _, format := range Formats() {
			t.Run(name+"/"+format, func(t *testing.T) {
				ext := extension[format]
				if ext == "" {
					ext = format
				}
				got := write(t, format, r, Options{})
				if format == "html" {
					got = bare(got)
				}
				golden(t, name+"."+ext, got)
			})
		}
	}
	golden(t, "full.html", bare(write(t, "html", full(), Options{})))
	golden(t, "quick-color.txt", write(t, "text", samples["quick"], Options{Color: true}))
	golden(t, "quick-wide.txt", write(t, "text", samples["quick"], Options{Wide: true, Width: 120}))
	golden(t, "quick-60.txt", write(t, "text", samples["quick"], Options{Width: 60}))
}

// bare is a page without the bundle and the loader, which are files of their own, with its
// data to be read; the hashes are tested apart.
func bare(page string) string {
	page = strings.Replace(readable(page), pageLoader, "LOADER", 1)
	page = strings.Replace(page, pageStyle, "STYLE", 1)
	return policyHash.ReplaceAllString(page, "sha256-HASH")
}

var carried = regexp.MustCompile(`<script type="text/plain" id="([a-z-]+)">([A-Za-z0-9+/=]*)</script>`)

// readable is a page without its bundle and with its data unpacked.
func readable(page string) string {
	return carried.ReplaceAllStringFunc(page, func(one string) string {
		parts := carried.FindStringSubmatch(one)
		content, err := unpacked(parts[2])
		if err != nil {
			panic(err)
		}
		if parts[1] == "bundle" {
			content = strings.Replace(content, pageScript, "BUNDLE", 1)
		}
		content = strings.NewReplacer("},{", "},\n{", "],[", "],\n[").Replace(content) // a diff of lines
		return `<script type="text/plain" id="` + parts[1] + `">` + content + "</script>"
	})
}

// unpacked is what packed.Text packed.
func unpacked(packed string) (string, error) {
	gz, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed)))
	if err != nil {
		return "", err
	}
	content, err := io.ReadAll(gz)
	return string(content), err
}

func TestUnknownFormat(t *testing.T) {
	err := Write(&bytes.Buffer{}, "htlm", sample(3), Options{})
	var unknown *nearest.Error
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
