package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
)

// openUnits spells units as OpenMetrics does; a family's name must end in its
// unit where it has one.
var openUnits = map[string]string{
	"bit/s": "bits_per_second", "s": "seconds", "1/s": "per_second", "bytes": "bytes", "1": "ratio",
	"CPU-s/s": "cpus", "CPU-s/Gbit": "cpu_seconds_per_gigabit", "count": "",
}

// writeOpenMetrics writes gauges: the medians, and their intervals where there
// are any. They carry no timestamp: a run's start is in the other formats.
func writeOpenMetrics(w io.Writer, r *analysis.Report, _ Options) error {
	bw := bufio.NewWriter(w)
	var metrics []string
	for _, res := range r.Results {
		if !slices.Contains(metrics, res.Metric) {
			metrics = append(metrics, res.Metric)
		}
	}
	for _, metric := range metrics {
		started := false
		for _, res := range r.Results {
			if res.Metric != metric {
				continue
			}
			name, unit := family(res)
			if !started {
				started = true
				fmt.Fprintf(bw, "# TYPE %s gauge\n", name)
				if unit != "" {
					fmt.Fprintf(bw, "# UNIT %s %s\n", name, unit)
				}
				fmt.Fprintf(bw, "# HELP %s %s\n", name, openEscape(help(metric)))
			}
			gauge := func(stat string, v float64) {
				fmt.Fprintf(bw, "%s{contender=\"%s\",step=\"%s\",path=\"%s\",kernel=\"%s\",underlay=\"%s\",stat=\"%s\"} %s\n", name,
					openEscape(res.Contender), openEscape(res.Step), openEscape(res.Path), openEscape(res.Kernel), openEscape(res.Underlay), stat, exact(v))
			}
			gauge("median", res.Median)
			if res.CI != nil {
				gauge("low", res.CI[0])
				gauge("high", res.CI[1])
			}
		}
	}
	bw.WriteString("# EOF\n")
	return bw.Flush()
}

// family is the family's name and its unit: cnibench_goodput_bits_per_second.
func family(r analysis.Result) (name, unit string) {
	name = "cnibench_" + openName(r.Metric)
	unit, known := openUnits[r.Unit]
	if !known {
		unit = openName(r.Unit)
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
