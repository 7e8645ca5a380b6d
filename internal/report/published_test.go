package report

import (
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
)

// withPublished is the quick sample beside two studies.
func withPublished() *analysis.Report {
	r := sample(6)
	for _, res := range r.Results {
		if res.Contender == "flannel-vxlan" && res.VsBaseline != nil && (res.Metric == "goodput" || res.Metric == "latency_p99") {
			r.Published = append(r.Published, analysis.PublishedFigure{
				Contender: res.Contender, Kernel: res.Kernel, Underlay: res.Underlay, Step: res.Step, Metric: res.Metric, Better: res.Better,
				Ours: *res.VsBaseline, Ratio: 1.25, Study: "study-" + res.Step, Table: "Table of | " + res.Step, Name: "Flannel <0.24>", Read: "pixels",
			})
		}
	}
	return r
}

func TestPublished(t *testing.T) {
	r := withPublished()
	if len(r.Published) != 3 {
		t.Fatalf("%d figures", len(r.Published))
	}
	text := write(t, "text", r, Options{})
	for _, want := range []string{
		"\n" + layout.PublishedTitle + "\n",
		"dts Goodput           flannel-vxlan  0.55× (0.55–0.56)   1.25×  study-dts\n",
		"http-350 Latency p99  flannel-vxlan  1.79× (1.76–1.82)   1.25×  study-http-350\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("text: no %q in\n%s", want, text)
		}
	}
	if i, j := strings.Index(text, layout.PublishedTitle), strings.Index(text, "\nFindings"); i > j {
		t.Error("the table does not come before the findings")
	}
	want := `| flannel-vxlan | dts | Goodput | 0.55× (0.55–0.56) | 1.25× | study-dts | Table of \| dts, as Flannel \<0.24\> (pixels) |` + "\n"
	if got := write(t, "md", r, Options{}); !strings.Contains(got, want) {
		t.Errorf("md: no %q in\n%s", want, got)
	}
	r.Agreements = []analysis.Agreement{{
		Study: "study-dts", Table: "T", Step: "dts", Metric: "goodput", Kernel: "6.18.0", N: 6, LineLimited: 2, Tau: 0.6, CI: &analysis.Interval{0.1, 0.9},
		Among:    []float64{0.43, 0.71},
		Outliers: []analysis.Outlier{{Contender: "cilium", Ours: 0.5, Theirs: 0.7, OurPlace: 5, TheirPlace: 1.5}},
	}}
	r.Differences = []analysis.Difference{{Study: "study-dts", What: "kernel", Ours: "6.18 | ours", Theirs: "5.15"}}
	for format, wants := range map[string][]string{
		"text": {"dts Goodput  study-dts  0.60 (0.10 to 0.90)", "cilium (5, 1.5)", "kernel   study-dts  6.18 | ours  5.15"},
		"md":   {`| dts Goodput | study-dts | 0.60 (0.10 to 0.90) | 0.43 to 0.71 | 6, 2 at the study's line rate left out | cilium (5, 1.5) |`, `| kernel | study-dts | 6.18 \| ours | 5.15 |`},
		"html": {"How far the orders agree", "<td>0.60 (0.10 to 0.90)</td>", "chart-agreement-1", "What differs"},
	} {
		got := write(t, format, r, Options{})
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", format, want, got[:min(len(got), 6000)])
			}
		}
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(write(t, "json", r, Options{})))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema(t).Validate(doc); err != nil {
		t.Error(err)
	}
	for _, format := range Formats() {
		if got := write(t, format, sample(6), Options{}); strings.Contains(got, layout.PublishedTitle) {
			t.Errorf("%s: the table is there without being asked for", format)
		}
	}
	r.Published[0].LineLimited = true
	for _, format := range []string{"text", "md", "html"} {
		if got := write(t, format, r, Options{}); !strings.Contains(got, "1.25× (link)") {
			t.Errorf("%s: does not mark what a link limited", format)
		}
	}
	r.Published = []analysis.PublishedFigure{}
	for _, format := range []string{"text", "md"} {
		if got := write(t, format, r, Options{}); !strings.Contains(got, "No published figure") {
			t.Errorf("%s: does not say that nothing is comparable", format)
		}
	}
}
