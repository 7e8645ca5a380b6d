package report

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/perf/benchfmt"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/text"
)

// writeBenchstat writes the Go benchmark format, one line per value, for
// `benchstat old new`. Units contain the metric's name, because benchstat distinguishes
// figures only by their unit. A name ends with its path, because benchstat would take a
// number at the end, as in http-350, for GOMAXPROCS.
func writeBenchstat(w io.Writer, r *analysis.Report, _ Options) error {
	bw := benchfmt.NewWriter(w)
	var units []string
	for _, res := range r.Results {
		unit := benchUnit(&res)
		if slices.Contains(units, unit) {
			continue
		}
		units = append(units, unit)
		meta := &benchfmt.UnitMetadata{UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: unit, Key: "better"}, OrigUnit: unit, Value: res.Better}
		if err := bw.Write(meta); err != nil {
			return err
		}
	}
	for _, res := range r.Results {
		rec := &benchfmt.Result{
			Config: []benchfmt.Config{
				config("suite", r.Run.Suite), config("arena", r.Run.Arena), config("run", r.Run.ID),
				config("kernel", res.Kernel), config("underlay", res.Underlay),
				config("emulated", strconv.FormatBool(r.Run.Environment.Emulated())),
			},
			Name:  benchfmt.Name(benchName(res.Contender) + "/" + benchWord(res.Step) + "/path=" + benchWord(res.Path)),
			Iters: 1,
		}
		for _, v := range res.Values {
			rec.Values = []benchfmt.Value{{Value: v, Unit: benchUnit(&res)}}
			if err := bw.Write(rec); err != nil {
				return err
			}
		}
	}
	return nil
}

func config(key, value string) benchfmt.Config {
	return benchfmt.Config{Key: key, Value: []byte(text.SafeLine(value)), File: true}
}

// benchUnit returns a unit such as "latency_p99-sec"; Go's benchmarks write "sec" for
// seconds.
func benchUnit(r *analysis.Result) string {
	unit := benchWord(r.Unit)
	if unit == "s" {
		unit = "sec"
	}
	return benchWord(r.Metric) + "-" + unit
}

// benchName returns s with a capital at its begin, which the format requires.
func benchName(s string) string {
	runes := []rune(benchWord(s))
	if len(runes) > 0 {
		runes[0] = unicode.ToUpper(runes[0])
	}
	return string(runes)
}

// benchWord replaces the characters in s that end or split a name.
func benchWord(s string) string {
	if s == "" {
		return "none"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '=' {
			return '_'
		}
		return r
	}, text.SafeLine(s))
}
