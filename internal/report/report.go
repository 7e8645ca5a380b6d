// Package report writes analysis values as text, Markdown, CSV, JSON, HTML,
// benchstat and OpenMetrics. It chooses, orders and words figures; it never
// computes a statistic, opens a file or asks the clock. Next: assemble.go puts a
// report together, package layout arranges it, package terminal writes its text, and
// one file here writes each other format.
package report

import (
	"fmt"
	"io"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/report/terminal"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/text"
)

// Format is a form that a report can be written in.
type Format string

// The formats.
const (
	Text        Format = "text"        // tables for a terminal
	Markdown    Format = "md"          // tables as GitHub shows them
	CSV         Format = "csv"         // one row per result
	JSON        Format = "json"        // the contract, docs/schema/report-1.schema.json
	HTML        Format = "html"        // one self-contained page with charts
	Benchstat   Format = "benchstat"   // the Go benchmark format, one line per value
	OpenMetrics Format = "openmetrics" // gauges for Prometheus and its kin, and whole runs
)

var writers = []struct {
	format Format
	write  func(io.Writer, *analysis.Report, Options) error
}{
	{Text, func(w io.Writer, r *analysis.Report, opt Options) error { return terminal.Report(w, r, opt.screen()) }},
	{Markdown, writeMarkdown},
	{CSV, writeCSV},
	{JSON, writeJSON},
	{HTML, writeHTML},
	{Benchstat, writeBenchstat},
	{OpenMetrics, writeOpenMetrics},
}

// Formats returns the names for Write, in the order of listings.
func Formats() []string {
	names := make([]string, len(writers))
	for i, f := range writers {
		names[i] = string(f.format)
	}
	return names
}

// Options depend on where the output goes, or add what a report does not contain. A
// format uses only the options that name it.
type Options struct {
	Color bool // text: escape codes for a terminal
	Width int  // text: columns; 0 means 100
	Wide  bool // text: tables of every step below the first ones

	// For OpenMetrics of a whole run: Samples are the values of single rounds, and
	// Recordings writes further families after them, without # EOF.
	Samples    []result.Sample
	Recordings func(io.Writer) error
}

func (o Options) screen() terminal.Screen {
	return terminal.Screen{Color: o.Color, Width: o.Width, Wide: o.Wide}
}

// Write writes r in the named format. A figure in r that is not a finite number is left
// out, and a finding names it. Errors: *text.UnknownError for an unknown format, else those
// of w.
func Write(w io.Writer, format string, r *analysis.Report, opt Options) error {
	for _, f := range writers {
		if string(f.format) != format {
			continue
		}
		if err := f.write(w, finite(r), opt); err != nil {
			return fmt.Errorf("report as %s: %w", format, err)
		}
		return nil
	}
	return text.Unknown("report format", format, Formats())
}
