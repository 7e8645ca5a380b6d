package run

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
)

// This file writes what a run would do, without making anything: `run --plan`.

// WritePlan writes the contenders, steps, least duration and peak load of the job, and
// for a cluster all that would appear there.
func (j *Job) WritePlan(w io.Writer) error {
	f := j.request
	names, exact := j.listPlanned()
	p := j.Record.Plan
	p.Rounds = cmp.Or(p.Rounds, analysis.RoundsForContenders(len(names)))
	var load time.Duration
	for _, s := range p.Steps {
		load += p.Duration.Duration() + p.Warmup.Duration()
		if w, err := workload.Lookup(s.Workload); err == nil {
			load += w.Info().Search
		}
	}
	load *= time.Duration(len(names))
	minimum := load * time.Duration(min(p.Rounds, j.End.Least))
	load *= time.Duration(p.Rounds)
	suffix := " of load, and set-up, checks and pauses on top"
	switch maximum := p.MaxTime.Duration(); {
	case maximum == 0 || load <= maximum:
	case minimum > maximum:
		load = minimum
	default:
		load, suffix = maximum, ", with set-up, checks and pauses"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Nothing has been made. This is what `cnibench run` would do.\n\nSuite       %s, arena %s, %s\n", p.Suite, f.Arena, roundsText(&p))
	fmt.Fprintf(&b, "Contenders  %s\n", wrapList(strings.Join(names, ", ")))
	maximum := ""
	if p.Until > 0 || p.MaxTime > 0 {
		maximum = "at most "
	}
	if !exact {
		fmt.Fprintf(&b, "            of which those run that this kernel has the pieces for: cnibench probe\n")
		maximum = "at most "
	}
	fmt.Fprintf(&b, "Time        %s%s%s\n", maximum, load.Round(time.Second), suffix)
	fmt.Fprintf(&b, "Results     %s\n\nSteps, each %s after a lead-in of %s:\n", f.Out, p.Duration.Duration(), p.Warmup.Duration())
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "  %-16s %s; peak load: %s\n", s.ID, s.Summary, j.peak(s))
	}
	for _, why := range f.uncapped {
		fmt.Fprintf(&b, "  left out: %s\n", why)
	}
	b.WriteString("\n" + j.Venue.Footprint())
	_, err := io.WriteString(w, b.String())
	return err
}

// roundsText returns how many rounds there are, and what ends the run sooner.
func roundsText(p *result.Plan) string {
	text := unit.Plural(p.Rounds, "round")
	if p.Until > 0 {
		text += fmt.Sprintf(" at most, until the ratios are known to %g %%", 100*p.Until)
	}
	if p.MaxTime > 0 {
		text += fmt.Sprintf(", %s at most", p.MaxTime.Duration())
	}
	return text
}

// listPlanned returns the ids of the contenders, the baseline first. exact is false if only
// the opened arena knows which of them can run.
func (j *Job) listPlanned() (names []string, exact bool) {
	names = []string{j.request.Baseline}
	for _, entry := range j.Record.Plan.Contenders { // of a resumed run
		if !slices.Contains(names, entry.ID) {
			names = append(names, entry.ID)
		}
	}
	if len(names) > 1 {
		return names, true
	}
	for _, c := range j.candidates {
		if (j.named || !j.Venue.Traits().ThisMachine || c.Lab.None == "") && !slices.Contains(names, c.ID) {
			names = append(names, c.ID)
		}
	}
	return names, j.named || !j.Venue.Traits().Choice
}

// peak returns the most that a step sends, as text.
func (j *Job) peak(s result.Step) string {
	limit := "all that the path carries"
	if j.request.LineRate != "" {
		limit += ", at most " + j.request.LineRate
	}
	_, share := workload.Share(s.Params[result.RateParam])
	rate, known := peakRate(&s)
	switch {
	case s.Bandwidth() > 0:
		return rate.String()
	case known && rate == 0:
		return "none"
	case known:
		return "about " + rate.String() + " of payload"
	case share && j.Record.Plan.SharesOf == result.SharesOfSlowest:
		return "a share of what the slowest contender sustains; the search for that, at the start, takes all to their limit"
	case share:
		return "a share of what the baseline sustains; the search for that, at the start, takes it to its limit"
	}
	return limit
}

// wrapList breaks a list of names into lines for its column.
func wrapList(s string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && len(line)+1+len(word) > 76 {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return strings.Join(append(lines, line), "\n            ")
}

// announcement says what a run in a cluster sends between which nodes and for how long,
// before its first packet.
func (j *Job) announcement() string {
	names, _ := j.listPlanned()
	p := j.Record.Plan
	p.Rounds = cmp.Or(p.Rounds, analysis.RoundsForContenders(len(names)))
	var steps []string
	for _, s := range p.Steps {
		steps = append(steps, s.ID+": "+j.peak(s))
	}
	text := fmt.Sprintf("load goes between two nodes (%s), %s, %s a step and contender: %s", nodesText(j.request), roundsText(&p), p.Duration.Duration(), strings.Join(steps, "; "))
	if !j.request.Given[maxRateFlag] {
		text += "; --max-rate 500M holds every step to that"
	}
	return text
}
