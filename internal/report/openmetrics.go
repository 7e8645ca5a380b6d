package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/layout"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text"
)

// openUnits maps units to those of OpenMetrics, in which a family's name must end.
var openUnits = map[string]string{
	"bit/s": "bits_per_second", "s": "seconds", "1/s": "per_second", "bytes": "bytes", "1": "ratio",
	"CPU-s/s": "cpus", "CPU-s/Gbit": "cpu_seconds_per_gigabit", "1/GiB": "", "count": "",
}

// openWriter writes families of gauges. OpenMetrics requires that all lines of a family are
// together.
type openWriter struct {
	*bufio.Writer
	*analysis.Report
}

// label is a name and a value.
type label struct{ name, value string }

// writeOpenMetrics writes the report's medians, intervals, ratios and tiers with the time
// at which the run began. Then follow the values of single rounds (opt.Samples), each with
// the time at which its step began, and the families of opt.Recordings.
func writeOpenMetrics(w io.Writer, r *analysis.Report, opt Options) error {
	o := openWriter{bufio.NewWriter(text.SafeWriter(w)), r}
	o.figures()
	o.samples(opt.Samples)
	if opt.Recordings != nil {
		if err := opt.Recordings(o); err != nil {
			return err
		}
	}
	o.WriteString("# EOF\n")
	return o.Flush()
}

// figures writes the report: cnibench_run_info, a family for each metric, and
// two for ratios and tiers of all metrics.
func (o *openWriter) figures() {
	r := o.Report
	if r.Run.ID != "" {
		fmt.Fprintf(o.Writer, "# TYPE cnibench_run info\n# HELP cnibench_run The run that the other families are of.\n")
		o.sample("cnibench_run_info", 1, r.Run.Started, o.labels([]label{{"arena", r.Run.Arena}, {"suite", r.Run.Suite}, {"baseline", r.Baseline}})...)
	}
	var metrics []string
	ratios, tiers := false, false
	for _, res := range r.Results {
		if !slices.Contains(metrics, res.Metric) {
			metrics = append(metrics, res.Metric)
		}
		ratios, tiers = ratios || res.VsBaseline != nil, tiers || res.Tier > 0
	}
	for _, metric := range metrics {
		first := true
		for _, res := range r.Results {
			if res.Metric != metric {
				continue
			}
			name, unit := openFamily("", res.Metric, res.Unit)
			if first {
				o.family(name, unit, help(metric))
				first = false
			}
			o.estimate(name, "median", res.Median, res.CI, r.Run.Started, o.place(res))
		}
	}
	if ratios {
		o.family("cnibench_vs_baseline_ratio", "ratio", "A metric's ratio to the baseline, paired by round; below 1 is less.")
		for _, res := range r.Results {
			if c := res.VsBaseline; c != nil {
				o.estimate("cnibench_vs_baseline_ratio", "ratio", c.Ratio, c.CI, r.Run.Started, append(o.place(res), label{"metric", res.Metric}))
			}
		}
	}
	if tiers {
		o.family("cnibench_tier", "", "Tier of a metric: 1 is best, contenders of a tier can't be told apart.")
		for _, res := range r.Results {
			if res.Tier > 0 {
				o.sample("cnibench_tier", float64(res.Tier), r.Run.Started, append(o.place(res), label{"metric", res.Metric})...)
			}
		}
	}
}

// samples writes a family for each metric of the catalogue and two that say
// when a sample was taken.
func (o *openWriter) samples(list []result.Sample) {
	each := func(name, unit, help string, valueOf func(result.Sample) (float64, bool)) {
		first := true
		for _, s := range list {
			v, known := valueOf(s)
			if !known || !layout.IsFinite(v) {
				continue
			}
			if first {
				o.family(name, unit, help)
				first = false
			}
			o.sample(name, v, s.Started, o.labels([]label{
				{"contender", s.Contender}, {"step", s.Step}, {"path", s.Path}, {"kernel", s.Kernel}, {"underlay", s.Underlay},
				{"round", strconv.Itoa(s.Round)}, {"verdict", string(s.Verdict)},
			})...)
		}
	}
	each("cnibench_sample_start_time_seconds", "seconds", "When the step of the sample began, Unix time.", func(s result.Sample) (float64, bool) {
		return float64(s.Started.UnixMilli()) / 1000, !s.Started.IsZero()
	})
	each("cnibench_sample_elapsed_seconds", "seconds", "Length of the measured window, which lies behind the warm-up.", func(s result.Sample) (float64, bool) {
		return float64(s.Elapsed), true
	})
	for _, m := range result.Metrics() {
		name, unit := openFamily("sample_", m.Name, m.Unit)
		each(name, unit, help(m.Name), func(s result.Sample) (float64, bool) {
			v, known := s.Metrics[m.Name]
			return v, known
		})
	}
}

// family begins a family of gauges.
func (o *openWriter) family(name, unit, help string) {
	fmt.Fprintf(o.Writer, "# TYPE %s gauge\n", name)
	if unit != "" {
		fmt.Fprintf(o.Writer, "# UNIT %s %s\n", name, unit)
	}
	fmt.Fprintf(o.Writer, "# HELP %s %s\n", name, openEscape(help))
}

// estimate writes a figure and its interval, which differ in the label stat.
func (o *openWriter) estimate(name, stat string, v float64, ci *analysis.Interval, at time.Time, labels []label) {
	o.sample(name, v, at, append(labels, label{"stat", stat})...)
	if ci != nil {
		o.sample(name, ci[0], at, append(labels, label{"stat", "low"})...)
		o.sample(name, ci[1], at, append(labels, label{"stat", "high"})...)
	}
}

// sample writes a line. Its timestamp is in seconds with milliseconds, as databases store
// it, and is left out if the time is not known.
func (o *openWriter) sample(name string, v float64, at time.Time, labels ...label) {
	fmt.Fprintf(o.Writer, "%s{run=\"%s\"", name, openEscape(o.Run.ID))
	for _, l := range labels {
		fmt.Fprintf(o.Writer, ",%s=\"%s\"", l.name, openEscape(l.value))
	}
	fmt.Fprintf(o.Writer, "} %s", layout.Exact(v))
	if ms := at.UnixMilli(); ms > 0 {
		fmt.Fprintf(o.Writer, " %d.%03d", ms/1000, ms%1000)
	}
	o.WriteByte('\n')
}

func (o *openWriter) place(r analysis.Result) []label {
	return o.labels([]label{{"contender", r.Contender}, {"step", r.Step}, {"path", r.Path}, {"kernel", r.Kernel}, {"underlay", r.Underlay}})
}

// labels adds the label emulated to a list, if it applies.
func (o *openWriter) labels(list []label) []label {
	if o.Run.Environment.Emulated() {
		list = append(list, label{"emulated", "true"})
	}
	return list
}

// openFamily returns the family's name and unit, such as cnibench_goodput_bits_per_second.
func openFamily(kind, metric, unitName string) (name, unit string) {
	name = "cnibench_" + kind + openName(metric)
	unit, known := openUnits[unitName]
	if !known {
		unit = openName(unitName)
	}
	if unit != "" {
		name += "_" + unit
	}
	return name, unit
}

func openName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, s)
}

func help(metric string) string {
	m, known := result.LookupMetric(metric)
	if !known {
		return metric
	}
	return m.Help + "; " + m.Better + " is better"
}

var openEscaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func openEscape(s string) string { return openEscaper.Replace(strings.ToValidUTF8(s, "\uFFFD")) }
