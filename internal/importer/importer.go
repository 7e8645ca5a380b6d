// Package importer reads what other benchmarks published into run directories,
// so that analysis and reports see them as they see our own. It computes no
// statistics across samples, repairs nothing and guesses nothing: what can't
// be read is a fault that names file and line, what can't be believed an
// invalid sample. It never follows a link and never reads outside the folder
// that it is given. Next: infrabuilder.go, then source.go.
package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/unit"
)

// Arena is the arena of imported runs: neither lab nor cluster of ours.
const Arena = "imported"

// FaultCode is the code of everything that was found wrong in the source.
const FaultCode = "import_fault"

// ErrNothing says that the folder holds nothing of the format.
var ErrNothing = errors.New("nothing to import")

// Options are what the files don't say.
type Options struct {
	// Describe is what the catalogue knows of a contender; nil knows nothing.
	Describe func(id string) (result.ContenderInfo, bool)
	Tool     result.Tool
	// LineRate is of the measured link; 0 takes the format's own, if it has one.
	LineRate unit.BitRate
	assumed  bool // the line rate is not given but assumed
	// MTU is the underlay's, bytes; 0 takes what the files tell.
	MTU int
	// Baseline is the contender that others are given as ratios to, as the source or the
	// catalogue names it; "" is host.
	Baseline string
}

const defaultBaseline = "host"

// Summary says what an import brought.
type Summary struct {
	Files   int   // that were read
	Bytes   int64 // of them
	Samples int
	Invalid int // of the samples
	Faults  []result.Fault
}

// format is one kind of source.
type format struct {
	name, help string
	read       func(ctx context.Context, src *source, opt Options) (*imported, error)
}

// formats lists what can be imported, in the order of help. To add one: its
// file, and its line here.
var formats = []format{
	{"infrabuilder", "results/ of InfraBuilder's CNI benchmarks since 2024: CONFIGURATION/RUN/STEP-SIDE.* with iperf3 JSON, .results and statexec files", readInfrabuilder},
	{"knb", "JSON reports of knb (InfraBuilder/k8s-bench-suite), one file a run", readKnb},
	{"iperf3", "outputs of iperf3 --json (or --json-stream), one file a test: CONTENDER/….json in any folders", readIperf3},
	{"netperf", "outputs of netperf's omni tests (-- -k or -- -o), one file a test: CONTENDER/….txt", readNetperf},
	{"k8s-netperf", "results of cloud-bulldozer/k8s-netperf, CSV (result-*.csv) or JSON (--json): CONTENDER/….csv", readK8sNetperf},
	{"cilium-perf", "reports of cilium connectivity perf --report-dir, JSON: CONTENDER/….json", readCiliumPerf},
	{"perf-tests", "netperf.csv of kubernetes/perf-tests, network/benchmarks/netperf: CONTENDER/netperf.csv", readPerfTests},
	{"statexec", "metric files of statexec (*.prom), one sample a command", readStatexec},
}

// Formats are the names of the formats.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}

// Help is one line about a format; "" where there is none of that name.
func Help(name string) string {
	f, _ := find(name)
	return f.help
}

// find returns the format of that name. The error is *text.UnknownError.
func find(name string) (format, error) {
	f, err := text.Find("format", name, formats, func(f format) string { return f.name })
	if err != nil {
		list := "\nformats:"
		for _, f := range formats {
			list += fmt.Sprintf("\n  %-14s%s", f.name, f.help)
		}
		return f, fmt.Errorf("%w%s", err, list)
	}
	return f, nil
}

// maxListed is how many faults the error of an import lists.
const maxListed = 10

// joinFaults returns the faults, each on a line of its own.
func joinFaults(faults []result.Fault) string {
	var out strings.Builder
	for i, f := range faults {
		if i == maxListed {
			fmt.Fprintf(&out, "\n  and %d more", len(faults)-i)
			break
		}
		fmt.Fprintf(&out, "\n  %s", f.File)
		if f.Line > 0 {
			fmt.Fprintf(&out, ":%d", f.Line)
		}
		fmt.Fprintf(&out, ": %s", f.Text)
	}
	return out.String()
}

// Import reads the folder dir in the named format into the new run directory
// out. Errors: *text.UnknownError for an unknown format or baseline, ErrNothing, and those of
// result.Create. On an error the half-written run directory stays.
func Import(ctx context.Context, name, dir, out string, opt Options) (*Summary, error) {
	chosen, err := find(name)
	if err != nil {
		return nil, err
	}
	src, err := openSource(dir)
	if err != nil {
		return nil, err
	}
	defer src.close()
	opt.Baseline = cmp.Or(contenderID(clean(opt.Baseline)), defaultBaseline)
	in, err := chosen.read(ctx, src, opt)
	if faults := src.sortedFaults(); errors.Is(err, ErrNothing) && len(faults) > 0 {
		if src.grown != "" {
			faults = []result.Fault{{File: src.grown, Text: outgrown()}}
		}
		return nil, fmt.Errorf("import %s: %w as %s, which is %s; what was found could not be read:%s", dir, ErrNothing, name, chosen.help, joinFaults(faults))
	}
	if errors.Is(err, ErrNothing) && errors.Unwrap(err) == nil { // one that says more is wrapped
		return nil, fmt.Errorf("import %s: %w as %s, which is %s", dir, err, name, chosen.help)
	}
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", dir, err)
	}
	if err := in.checkBaseline(); err != nil {
		return nil, err
	}
	in.run.Tool = opt.Tool
	if err := in.write(ctx, out, src); err != nil {
		return nil, err
	}
	s := &Summary{Files: len(src.files), Samples: len(in.samples), Faults: src.sortedFaults()}
	for _, f := range src.files {
		s.Bytes += int64(f.Bytes)
	}
	for i := range in.samples {
		if in.samples[i].Verdict == result.Invalid {
			s.Invalid++
		}
	}
	return s, nil
}
