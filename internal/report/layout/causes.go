package layout

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/text"
)

// This file groups findings by their cause. A starved CPU, for example, drops samples for
// several reasons and leaves gaps in recordings, but the reader should be told once.

// Cause is the common cause of findings.
type Cause struct {
	Severity string
	words    string // what happened
	affected string // "41 of 126 samples dropped", or the contenders and steps
	next     string
	spoils   string // text about the run's quality; "" if the cause does not affect the figures
	poor     bool   // the cause makes the run's quality poor
	known    bool   // words come from knownCauses, not from the first finding
	Findings []analysis.Finding
}

// noValidSample is the code of a finding that often is only a consequence of others.
const noValidSample = "no_valid_sample"

// known is a cause with several codes, or with a shorter text than its finding.
type known struct {
	codes       []string
	words, next string
	spoils      string
	poor        bool
}

// The words of causes that other functions look for.
const (
	starved      = "CPU starved"
	tooFewRounds = "Too few rounds to be sure"
)

// wantedRounds stands in knownCauses for the number of rounds that would help.
const wantedRounds = "{rounds}"

// wantedOf returns that number: the default number for the run's contenders. If the run had
// that many, it is twice as many, which makes intervals narrower by a third.
func wantedOf(v *View) int {
	had, most := 0, 0
	for i := range v.Groups {
		had, most = max(had, v.Rounds(v.Groups[i].Part)), max(most, len(v.Groups[i].Contenders))
	}
	if wanted := analysis.RoundsForContenders(most); wanted > had {
		return wanted
	}
	return 2 * had
}

var knownCauses = []known{
	{[]string{"load_generator_late", "load_generator_saturated", "cpu_steal", "steal_present", "rate_short", "recording_pause", "busy_machine"},
		starved, "use a quieter machine, or a lower rate", "the CPU was starved", true},
	{[]string{"unstable_baseline"},
		"The baseline itself varied between rounds", "run again when the machine is quiet, with more rounds", "the baseline varied between rounds", true},
	{[]string{"scattered_rounds", "bimodal_rounds", "drift", "warmup_not_over"},
		"Rounds lie far apart", "run again with --rounds " + wantedRounds + " or more, and read intervals rather than medians", "rounds lie far apart", false},
	{[]string{"too_few_rounds", "coarse_resolution"},
		tooFewRounds, "run again with --rounds " + wantedRounds + " or more", "too few rounds", false},
	{[]string{"udp_loss"},
		"More than 10 % of the UDP datagrams lost, so that goodput says nothing", "compare TCP, or lower the sending rate", "", false},
	{[]string{"missing_result", "workload_failed", "missing_figure"},
		"Results are missing or broken", "read the findings on the page; they name each file", "results are missing", false},
	{[]string{"contender_failed", "setup_failed"},
		"Contenders did not come up", "cnibench probe says what they need", "contenders did not come up", false},
	{[]string{"emulated_kernel"},
		"The kernel ran on an emulated CPU", "read ratios only, or run on a machine with KVM", "the CPU was emulated", false},
}

// Causes returns the causes of all findings but the workloads' notes, the gravest first.
func (v *View) Causes() []Cause {
	findings, _ := splitNotes(v.Findings)
	var list []*Cause
	index := map[string]int{}
	for _, f := range BySeverity(findings) {
		if f.Code == noValidSample && len(findings) > 1 && slices.ContainsFunc(findings, func(o analysis.Finding) bool {
			return o.Code != noValidSample && o.Excluded && o.Step == f.Step && (o.Contender == f.Contender || o.Contender == "")
		}) {
			continue
		}
		key := f.Severity + "/" + f.Code
		row := slices.IndexFunc(knownCauses, func(k known) bool { return slices.Contains(k.codes, f.Code) })
		if row >= 0 {
			key = fmt.Sprint(row)
		}
		i, seen := index[key]
		if !seen {
			i, index[key] = len(list), len(list)
			c := &Cause{Severity: f.Severity, words: f.Text, next: f.Next, known: row >= 0}
			if where := Place(f); where != "" && row < 0 {
				c.words = where + ": " + f.Text
			}
			if row >= 0 {
				k := knownCauses[row]
				c.words, c.spoils, c.poor = k.words, k.spoils, k.poor
				c.next = strings.Replace(k.next, wantedRounds, strconv.Itoa(wantedOf(v)), 1)
			}
			list = append(list, c)
		}
		list[i].Findings = append(list[i].Findings, f)
	}
	out := make([]Cause, len(list))
	for i, c := range list {
		c.affected = affected(v, c)
		out[i] = *c
	}
	slices.SortStableFunc(out, func(a, b Cause) int {
		if a.Severity != b.Severity {
			return slices.Index(severities, a.Severity) - slices.Index(severities, b.Severity)
		}
		if a.poor != b.poor {
			return map[bool]int{true: -1, false: 1}[a.poor]
		}
		return len(b.Findings) - len(a.Findings)
	})
	return out
}

// affected says how many samples a cause dropped, or else which contenders and steps it
// affected.
func affected(v *View, c *Cause) string {
	n := 0
	for _, m := range v.Marks {
		if m.Dropped != "" && slices.ContainsFunc(c.Findings, func(f analysis.Finding) bool { return f.Excluded && f.Code == m.Dropped && f.Part == m.Part }) {
			n++
		}
	}
	if n > 0 {
		return fmt.Sprintf("%d of %d samples dropped", n, len(v.Marks))
	}
	if !c.known {
		if rest := len(c.Findings) - 1; rest > 0 {
			return fmt.Sprintf("and %d more like it", rest)
		}
		return ""
	}
	var contenders, steps []string
	for _, f := range c.Findings {
		if f.Contender != "" && !slices.Contains(contenders, f.Contender) {
			contenders = append(contenders, f.Contender)
		}
		if f.Step != "" && !slices.Contains(steps, f.Step) {
			steps = append(steps, f.Step)
		}
	}
	var parts []string
	if len(contenders) > 0 {
		parts = append(parts, few(contenders))
	}
	if len(steps) > 0 {
		parts = append(parts, "at "+few(steps))
	}
	return strings.Join(parts, " ")
}

// Line returns the cause in one line.
func (c Cause) Line() string {
	words := text.SafeLine(c.words)
	if c.affected != "" {
		glue := ": "
		if !c.known {
			glue = "; "
		}
		words = strings.TrimSuffix(words, ".") + glue + text.SafeLine(c.affected)
	}
	if c.next != "" {
		words = strings.TrimSuffix(words, ".") + "; " + strings.ToLower(c.next[:1]) + text.SafeLine(c.next[1:])
	}
	return strings.TrimSuffix(words, ".") + "."
}
