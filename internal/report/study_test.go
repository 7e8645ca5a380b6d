package report

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/analysis"
)

// withStudy is the quick sample as the repetition of a study.
func withStudy() *analysis.Report {
	r := sample(6)
	r.Study = &analysis.Study{ID: "x|1", Title: "A <study>", By: "somebody", Pictures: []analysis.Picture{
		{Kind: analysis.PictureMatrix, Title: "Summary", Steps: []string{"dts", "http-*"}, Bands: []analysis.Band{
			{Color: "green", Word: "very fast", AtLeast: 0.95}, {Color: "orange", Word: "slow", AtLeast: 0.5}, {Color: "red", Word: "very slow"},
		}},
		{Kind: analysis.PictureFigures, Title: "Before and after", Steps: []string{"dts"}, Contenders: []string{"flannel-vxlan", "host"}, Note: "As printed."},
		{Kind: analysis.PictureLoad, Title: "Tail by rate", Steps: []string{"http-*"}, Metric: "latency_p99"},
		{Kind: analysis.PictureFigures, Title: "Of another suite", Steps: []string{"max-*"}},
	}}
	return r
}

func TestStudyPictures(t *testing.T) {
	r := withStudy()
	text := write(t, "text", r, Options{})
	for _, want := range []string{
		"Study x|1: A <study> (somebody)", "\nSummary\n", "   55 slow       65 slow\n",
		"very fast, green: 95 % and more; slow,\norange: 50 % and more; very slow, red: less.",
		"\nBefore and after\n", "As printed.", "\nTail by rate\n", "The rate is the one achieved",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("text: no %q in\n%s", want, text)
		}
	}
	if i, j := strings.Index(text, "\nflannel-vxlan  "), strings.LastIndex(text, "\nhost  "); i < 0 || i > j {
		t.Errorf("the rows are not in the picture's order:\n%s", text)
	}
	if colored := write(t, "text", r, Options{Color: true}); !strings.Contains(colored, "\x1b[33;1m55 slow\x1b[0m") {
		t.Errorf("no colour in\n%s", colored)
	}
	if strings.Contains(text, "Of another suite") {
		t.Error("a picture without figures is shown")
	}
	got := write(t, "md", r, Options{})
	for _, want := range []string{`### Study x\|1: A \<study\>`, "#### Summary\n\n| contender | dts |", "| flannel-vxlan | 🟠 55 slow |"} {
		if !strings.Contains(got, want) {
			t.Errorf("md: no %q in\n%s", want, got)
		}
	}
	page := write(t, "html", r, Options{})
	for _, want := range []string{`<section class="view" id="study"`, "A &lt;study&gt;", `<td class="num band-orange" data-s="`, `<small>slow</small>`, `href="#study"`} {
		if !strings.Contains(page, want) {
			t.Errorf("html: no %q", want)
		}
	}
	for _, format := range Formats() {
		if got := write(t, format, sample(6), Options{}); strings.Contains(got, "Study x|1") || strings.Contains(got, `id="study"`) {
			t.Errorf("%s shows the pictures of no study", format)
		}
	}
}

// Where contenders are installed one after the other, the baseline is a cluster without a
// pod network, as in the 2019 study.
func TestOverAClusterWithoutACNI(t *testing.T) {
	const said = "over a cluster without a CNI"
	r := sample(6)
	r.Run.Arena, r.Plan.Settings = "kube", map[string]string{"install": "true"}
	for _, format := range []string{"text", "md", "html"} {
		if got := write(t, format, r, Options{}); !strings.Contains(got, said) {
			t.Errorf("%s does not say what memory is over:\n%s", format, got)
		}
		if got := write(t, format, sample(6), Options{}); strings.Contains(got, said) {
			t.Errorf("%s says it of a lab", format)
		}
	}
}
