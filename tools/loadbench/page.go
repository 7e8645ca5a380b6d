package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/cnibench/cnibench/internal/load"
	"github.com/cnibench/cnibench/internal/stat"
)

// page prints what was found, as text that is Markdown too.
type page struct {
	w       io.Writer
	reached []string
	missed  int
}

func (p *page) text(s string) { fmt.Fprintf(p.w, "%s\n\n", s) }

func (p *page) section(title, how string) {
	fmt.Fprintf(p.w, "### %s\n\n", title)
	p.text(how)
}

// table prints rows, the first of them heads, with aligned columns.
func (p *page) table(rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range rows {
		for i, cell := range row {
			fmt.Fprintf(p.w, "| %s%s ", cell, strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
		}
		fmt.Fprintln(p.w, "|")
		if n == 0 {
			for _, width := range widths {
				fmt.Fprintf(p.w, "|%s", strings.Repeat("-", width+2))
			}
			fmt.Fprintln(p.w, "|")
		}
	}
	fmt.Fprintln(p.w)
}

// limits says why a load may have measured the machine instead.
func (p *page) limits(list []load.Limit) {
	for _, limit := range list {
		p.text(fmt.Sprintf("The load says %s: %s.", limit.Code, limit.Text))
	}
}

// reach notes whether a goal was reached.
func (p *page) reach(reached bool, format string, args ...any) {
	mark := "pass"
	if !reached {
		mark = "MISS"
		p.missed++
	}
	p.reached = append(p.reached, fmt.Sprintf("- %s: %s", mark, fmt.Sprintf(format, args...)))
}

// summary prints all goals.
func (p *page) summary() {
	p.section("Goals", strings.Join(p.reached, "\n"))
}

func median(values []float64) float64 { return stat.Median(values) }

func abs(v float64) float64 { return math.Abs(v) }

func micro(seconds float64) string        { return fmt.Sprintf("%.1f µs", seconds*1e6) }
func formatSigned(seconds float64) string { return fmt.Sprintf("%+.1f µs", seconds*1e6) }
func milli(seconds float64) string        { return fmt.Sprintf("%.1f ms", seconds*1e3) }
func count(perSecond float64) string {
	return fmt.Sprintf("%.0f", perSecond)
}
func ratio(v float64) string { return fmt.Sprintf("%.3f", v) }
