package report

import (
	"math"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/cnibench/cnibench/internal/analysis"
)

func TestTextFits(t *testing.T) {
	for name, r := range samples {
		for _, width := range []int{0, 40, 60, 80, 100, 200} {
			limit := width
			if width == 0 || width > 100 {
				limit = 100
			}
			for _, color := range []bool{false, true} {
				for _, line := range strings.Split(write(t, "text", r, Options{Width: width, Color: color}), "\n") {
					if got := text.StringWidthWithoutEscSequences(line); got > limit {
						t.Errorf("%s: width %d: line of %d columns: %q", name, width, got, line)
					}
				}
			}
		}
	}
}

func TestTextHasNoControls(t *testing.T) {
	for _, format := range []string{"text", "md", "benchstat"} {
		for _, r := range write(t, format, hostile(), Options{}) {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
				t.Errorf("%s holds %U", format, r)
			}
		}
	}
}

func TestColorOnlyWhenAsked(t *testing.T) {
	if got := write(t, "text", sample(6), Options{}); strings.Contains(got, "\x1b") {
		t.Error("escape codes without Color")
	}
	if got := write(t, "text", sample(6), Options{Color: true}); !strings.Contains(got, "\x1b[31m") {
		t.Error("no red with Color, though there are worse contenders")
	}
}

// A note takes two lines at most, after all that asks for something, and names
// no next step.
func TestNotesAreShort(t *testing.T) {
	got := write(t, "text", sample(6), Options{})
	_, after, _ := strings.Cut(got, "info  flannel-vxlan")
	_, note, found := strings.Cut(after, "info  iperf3")
	note, _, _ = strings.Cut(note, "\n\n")
	if !found || strings.Count(note, "\n") != 1 || strings.Contains(note, "→") {
		t.Errorf("the note is not two lines after the other findings: %q", note)
	}
	if html := write(t, "html", sample(6), Options{}); !strings.Contains(html, "over the common window (54 samples of dtm and dum)") {
		t.Error("the page does not have the note in full")
	}
}

func TestBaselineHasNoOverheadOverItself(t *testing.T) {
	r := sample(6)
	add(r, "rest", "pod", "packets", 6, []string{"host", "macvlan"}, []float64{4.66, 2}, []int{0, 0})
	add(r, "rest", "pod", "memory_overhead", 6, []string{"host", "macvlan"}, []float64{math.NaN(), 2e6}, []int{0, 0})
	for format, want := range map[string]string{"md": "<br>baseline | – | 4.6", "html": `">–</td>`} {
		if got := write(t, format, r, Options{}); !strings.Contains(got, want) {
			t.Errorf("%s lacks %q", format, want)
		}
	}
	line := regexp.MustCompile(`(?m)^host +.*–`)
	if got := write(t, "text", sample(6), Options{}); !line.MatchString(got) {
		t.Errorf("the text has no dash for the baseline:\n%s", got)
	}
}

// What is no merit has no colour, and CPU in phase with the load no column.
func TestUnranked(t *testing.T) {
	r := &analysis.Result{Better: "lower", VsBaseline: &analysis.Comparison{Ratio: 0.5, CI: &analysis.Interval{0.4, 0.6}}}
	if got := standing(r); got != "" {
		t.Errorf("an unranked figure is %s", got)
	}
	r.Ranked = true
	if got := standing(r); got != "better" {
		t.Errorf("a ranked figure is %q, want better", got)
	}
	l := ladder()
	l.Findings = append(l.Findings, analysis.Finding{Severity: "warn", Code: analysis.TickAliased, Step: "http-350-10k"})
	v := newView(l)
	for _, c := range headline(&v.Groups[0], v.Steps) {
		if c.Metric == "cpu_per_request" {
			t.Error("CPU sampled in phase with the load is in the headline")
		}
	}
	if _, there := v.Groups[0].has("http-350-20k", "cpu_per_request"); !there {
		t.Error("CPU of the other step is gone too")
	}
}
