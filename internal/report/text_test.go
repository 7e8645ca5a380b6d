package report

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/result"
)

func TestTextFits(t *testing.T) {
	for name, r := range samples {
		for _, width := range []int{0, 40, 60, 80, 100, 200} {
			limit := width
			switch {
			case width == 0:
				limit = 100
			case width > 140:
				limit = 140
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

// Notes on how something was measured are on the page, not on the terminal.
func TestNotesAreOnThePage(t *testing.T) {
	if got := write(t, "text", sample(6), Options{}); strings.Contains(got, "iperf3 3.12 drives") || !strings.Contains(got, "All 4 findings are on the page") {
		t.Errorf("the terminal tells the note, or does not say where it is:\n%s", got)
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
	if got := write(t, "text", sample(6), Options{Wide: true}); !line.MatchString(got) {
		t.Errorf("the text has no dash for the baseline:\n%s", got)
	}
}

// What is no merit has no colour, and CPU in phase with the load no column.
func TestUnranked(t *testing.T) {
	r := &analysis.Result{Better: "lower", VsBaseline: &analysis.Comparison{Ratio: 0.5, CI: &analysis.Interval{0.4, 0.6}}}
	if got := layout.SideOfBaseline(r); got != "" {
		t.Errorf("an unranked figure is %s", got)
	}
	r.Ranked = true
	if got := layout.SideOfBaseline(r); got != "better" {
		t.Errorf("a ranked figure is %q, want better", got)
	}
	l := ladder()
	l.Findings = append(l.Findings, analysis.Finding{Severity: "warn", Code: analysis.TickAliased, Step: "http-350-10k"})
	v := layout.New(l)
	for _, c := range layout.Headline(&v.Groups[0], v.Steps) {
		if c.Metric == "cpu_per_request" {
			t.Error("CPU sampled in phase with the load is in the headline")
		}
	}
	if _, there := v.Groups[0].Has("http-350-20k", "cpu_per_request"); !there {
		t.Error("CPU of the other step is gone too")
	}
}

// A tail is no headline where the rounds show large differences only.
func TestCoarseTailIsNoHeadline(t *testing.T) {
	for mdd, want := range map[float64]bool{0.25: true, 0.45: false} {
		r := sample(6)
		for i := range r.Results {
			if f := &r.Results[i]; f.Metric == "latency_p99" {
				f.MDD = &mdd
			}
		}
		v := layout.New(r)
		head := layout.Headline(&v.Groups[0], v.Steps)
		if got := slices.ContainsFunc(head, func(c layout.Column) bool { return c.Metric == "latency_p99" }); got != want {
			t.Errorf("a p99 whose rounds show differences of %.0f %%: in the headline: %v, want %v", 100*mdd, got, want)
		}
	}
}

// A contender of one pair has its figure, and no ratio.
func TestNoRatioFromFewerThanThreePairs(t *testing.T) {
	r := sample(6)
	for i := range r.Results {
		if f := &r.Results[i]; f.Contender == "canal" && f.Metric == "latency_p99" {
			f.N, f.Median, f.VsBaseline = 1, 2.09e-3, &analysis.Comparison{Ratio: 0.301, Pairs: 1}
		}
	}
	for format, ratio := range map[string]string{"text": "0.30×", "md": "0.30×", "html": "0.30×"} {
		got := write(t, format, r, Options{})
		if strings.Contains(readable(got), ratio) || !strings.Contains(got, "2.09 ms") {
			t.Errorf("%s: the ratio of one pair is shown, or its figure is not", format)
		}
	}
	if got := write(t, "text", r, Options{}); !strings.Contains(got, "2.09 ms (1 of 6)") {
		t.Errorf("no 1 of 6:\n%s", got)
	}
	if r.Results[0].VsBaseline == nil && r.Results[1].VsBaseline == nil {
		t.Error("the report itself was changed")
	}
}

// The first lines say who is best, how sure that is, and what to do next.
func TestAnswerComesFirst(t *testing.T) {
	r := sample(6)
	r.Capabilities = []analysis.Capability{{Contender: "canal", Name: "encryption", Value: "wireguard"}}
	for round := range 6 {
		for _, c := range []string{"host", "canal"} {
			m := analysis.Mark{Contender: c, Step: "dts", Round: round + 1}
			if round < 2 {
				m.Dropped = "load_generator_late"
			}
			r.Marks = append(r.Marks, m)
		}
	}
	for _, c := range []string{"host", "canal"} {
		r.Findings = append(r.Findings, analysis.Finding{Severity: "error", Code: "load_generator_late", Contender: c, Step: "dts", Excluded: true, Text: "left out in rounds 1 and 2 of 6", Next: "Stop other work."})
	}
	small, large := 0.072, 0.4
	for i := range r.Results {
		switch f := &r.Results[i]; f.Metric {
		case "goodput":
			f.MDD = &small
		case "latency_p50":
			f.MDD = &large
		}
	}
	got := write(t, "text", r, Options{})
	for _, want := range []string{
		"Goodput (TCP, one stream): macvlan is best (0.99 of host). No difference from host was found. Other routes 0.55–0.92 of host. WireGuard 0.55.",
		"Precision: 4 of 12 samples dropped; Goodput: differences under 8 % would be missed; Latency p50: not usable here.",
	} {
		if !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if first, _, _ := strings.Cut(got, "\n"); !strings.HasPrefix(first, "Goodput") {
		t.Errorf("the first line is %q", first)
	}
}

// There is one number of rounds.
func TestOneNumberOfRounds(t *testing.T) {
	r := sample(6)
	r.Findings = nil
	r.Wanted = &analysis.Wanted{Rounds: 48, Shows: 0.05, Minutes: 18}
	got := strings.Join(strings.Fields(write(t, "text", r, Options{})), " ")
	if want := "Next: About 48 rounds (18 min) would show 5 %: cnibench run --suite quick --rounds 48"; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}

// A step that collapsed is the first line, whatever the columns are.
func TestAlarmsComeFirst(t *testing.T) {
	r := sample(6)
	r.Findings = append(r.Findings, analysis.Finding{Severity: "error", Code: "step_collapsed", Title: "Steps collapsed", Contender: "canal", Step: "tcp-crr-1", Text: "5/s of host's 4 495/s", Next: "cnibench check mtu", Count: 1})
	if first, _, _ := strings.Cut(write(t, "text", r, Options{}), "\n"); first != "Steps collapsed: canal, tcp-crr-1: 5/s of host's 4 495/s." {
		t.Errorf("the first line is %q", first)
	}
}

// The first lines answer what a reader asks, in that order: which is best, whether that is sure
// and holds elsewhere, the best encrypted one and its cost, goodput, latency. Nodes are named.
func TestFirstScreen(t *testing.T) {
	r := sample(6)
	r.Run.Environment = result.Environment{"kube.node1.name": "worker-a", "kube.node2.name": "worker-b"}
	r.Recommendation = &analysis.Recommendation{Firmness: analysis.Leaning, Elsewhere: "Elsewhere: first in these 3 runs: canal in 3.",
		Weights: []analysis.Weight{{Criterion: "capacity", Weight: 1}}, Ranked: []analysis.Choice{{Contender: "flannel-host-gw"}, {Contender: "canal"}}}
	r.Advice = []analysis.Advice{{Scenario: "encryption", Chief: []string{"capacity"}, Recommendation: &analysis.Recommendation{Firmness: analysis.Firm, Ranked: []analysis.Choice{{Contender: "canal"}}}}}
	r.Capabilities = []analysis.Capability{{Contender: "canal", Name: "encryption", Value: "wireguard"}}
	got := strings.Join(strings.Fields(write(t, "text", r, Options{})), " ")
	at := 0
	for _, want := range []string{
		"Best by capacity: leaning to flannel-host-gw, canal follows.", "Elsewhere: first in these 3 runs: canal in 3.",
		"Encrypted: canal, and firmly; encryption costs 40 % of the goodput (9.39 of 15.6 Gbit/s of flannel-host-gw).",
		"Goodput (TCP, one stream):", "Latency p50", "between worker-a (node1) and worker-b (node2)",
	} {
		i := strings.Index(got[at:], want)
		if i < 0 {
			t.Fatalf("no %q after the first %d characters of\n%s", want, at, got)
		}
		at += i
	}
}

// --wide says how certain the headline's figures are.
func TestCertainty(t *testing.T) {
	r := sample(6)
	seven := 0.07
	for i := range r.Results {
		f := &r.Results[i]
		if f.Step != "dts" || f.Metric != "goodput" {
			continue
		}
		f.Errors = []analysis.ErrorPart{{Source: analysis.ErrorTick, Relative: 0.031}, {Source: analysis.ErrorRounds, Relative: 0.01}}
		if f.Contender == "calico-vxlan" {
			f.Closest = &analysis.Closest{Contender: "flannel-vxlan", MDD: &seven, RoundsFor5: 11}
		}
	}
	got := strings.Join(strings.Fields(write(t, "text", r, Options{Wide: true})), " ")
	for _, want := range []string{
		"most of the error is the ticks by which the kernel counts CPU time, ±3.1 % for a typical contender",
		"calico-vxlan and flannel-vxlan are", "and these rounds show a difference of 7 %.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if page := write(t, "html", r, Options{}); !strings.Contains(page, "the ticks by which the kernel counts CPU time") {
		t.Error("not on the page")
	}
	if narrow := write(t, "text", r, Options{}); strings.Contains(narrow, "How certain") {
		t.Error("told although nobody asked")
	}
}

// A metric that too few rounds carry is a line, no column.
func TestUnusableMetricIsALine(t *testing.T) {
	r := sample(6)
	for i := range r.Results {
		if f := &r.Results[i]; f.Step == "http-350" {
			f.N = i % 3
		}
	}
	got := write(t, "text", r, Options{})
	if !strings.Contains(got, "not usable here, 0 to 2 of 6 rounds valid") || strings.Contains(got, "310 µs") {
		t.Errorf("latency is not a line:\n%s", got)
	}
	said := 0
	for line := range strings.Lines(got) {
		if strings.Contains(line, "Latency p50") && strings.Contains(line, "not usable here") {
			said++
		}
	}
	if said != 1 {
		t.Errorf("that there is no latency is said %d times:\n%s", said, got)
	}
}

// A run that was stopped in its first round shows the figures of that round.
func TestStoppedInItsFirstRound(t *testing.T) {
	r := sample(1)
	r.Run.Rounds, r.Plan.Rounds = 7, 7
	for i := range r.Results {
		r.Results[i].Of = 1
	}
	got := strings.Join(strings.Fields(write(t, "text", r, Options{})), " ")
	for _, want := range []string{"1 of 7 rounds, run", "1 round can't tell contenders apart; macvlan has the best median (16.7 Gbit/s)", "16.7 Gbit/s"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "not usable") {
		t.Errorf("its figures are called unusable:\n%s", got)
	}
	if md := write(t, "md", r, Options{}); !strings.Contains(md, "1 of 7 rounds can't tell") {
		t.Errorf("the legend is of seven rounds:\n%s", md)
	}
}

// TestNotRunHere: the head of the list counts what is in it.
func TestNotRunHere(t *testing.T) {
	contender, step := result.Unsupported{Contender: "vpp", Reason: "no"}, result.Unsupported{Contender: "macvlan", Step: "sts", Reason: "no"}
	for want, list := range map[string][]result.Unsupported{
		"1 contender":                   {contender},
		"2 steps":                       {step, step},
		"1 contender, 1 step of others": {contender, step},
	} {
		r := sample(6)
		r.Unsupported = list
		if text := write(t, "text", r, Options{}); !strings.Contains(text, fmt.Sprintf("Not run here (%s)\n", want)) {
			t.Errorf("%v: the head is not %s", list, want)
		}
	}
}
