package tunecmd

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/text/console"
	"github.com/cnibench/cnibench/internal/tune"
	"github.com/cnibench/cnibench/internal/unit"
)

// print prints the plan for people: what would change, what the user must do, what the
// machine has already, and what does not apply here.
func (p plan) print(w io.Writer) {
	m, items := p.Machine, p.items()
	fmt.Fprintf(w, "%s, %s, %s", unit.Plural(m.CPUs, "CPU"), unit.Plural(m.Cores, "core"), unit.Plural(m.NUMA, "NUMA node"))
	for _, n := range m.Interfaces {
		fmt.Fprintf(w, "; %s: %s, %s", n.Name, unit.Plural(n.RX, "receive queue"), unit.Plural(n.TX, "transmit queue"))
	}
	var others []string
	for _, n := range m.Path {
		if n.Kind != veth {
			others = append(others, n.Name+" ("+n.Kind+")")
		}
	}
	if len(others) < len(m.Path) {
		others = append(others, "veth* of pods")
	}
	if len(others) > 0 {
		fmt.Fprintf(w, "; pods' path: %s", strings.Join(others, ", "))
	}
	fmt.Fprintln(w)
	printSettings(w, "Would change", items, tune.StateChange)
	printSettings(w, "For you to do", items, tune.StateAdvice)
	for _, part := range []struct {
		title  string
		header []string
		row    func(tune.Item) []string
	}{
		{"As it should be", []string{"Setting", "Value"}, doneRow},
		{"Not here", []string{"Setting", "Reason"}, reasonRow},
	} {
		var rows [][]string
		for _, item := range items {
			if row := part.row(item); row != nil {
				rows = append(rows, row)
			}
		}
		if len(rows) > 0 {
			fmt.Fprintf(w, "\n%s\n\n", part.title)
			cmdutil.PrintTable(w, part.header, rows)
		}
	}
	printByHand(w, p.ByHand)
}

// printByHand names what serves the same purpose and cnibench does not set.
func printByHand(w io.Writer, list []string) {
	if len(list) > 0 {
		printIndented(w, "\n", "Not set by cnibench: "+strings.Join(list, ", ")+". How to: docs/tuning.md, \"By hand\".", console.Width(w))
	}
}

// printSettings prints each setting that is in the state as a paragraph.
func printSettings(w io.Writer, title string, items []tune.Item, state tune.State) {
	width := console.Width(w)
	for _, item := range items {
		if item.State != state {
			continue
		}
		if title != "" {
			fmt.Fprintf(w, "\n%s\n", title)
			title = ""
		}
		s := item.Setting
		fmt.Fprintf(w, "\n %s: %s", s.Name, s.Summary)
		if len(s.Studies) > 0 {
			fmt.Fprintf(w, " [%s]", strings.Join(s.Studies, ", "))
		}
		fmt.Fprintln(w)
		for _, line := range changeWords(item.Pending()) {
			fmt.Fprintf(w, "     %s\n", line)
		}
		for _, advice := range item.Advice {
			printIndented(w, "     ", "→ "+advice, width)
		}
		for _, part := range []struct{ label, words string }{{"why: ", s.Why}, {"cost: ", s.Cost}, {"not: ", s.Avoid}} {
			if part.words != "" {
				printIndented(w, "     ", part.label+part.words, width)
			}
		}
	}
}

func printIndented(w io.Writer, indent, words string, width int) {
	for line := range strings.SplitSeq(text.WrapSoft(words, max(width-len(indent)-2, 30)), "\n") {
		fmt.Fprintf(w, "%s%s\n", indent, strings.TrimRight(line, " "))
		indent = strings.Repeat(" ", len(indent))
	}
}

// changeWords returns a line for each change; one line stands for many CPUs or queues.
func changeWords(changes []tune.Change) []string {
	var lines []string
	for i := 0; i < len(changes); {
		c := changes[i]
		j := i + 1
		for j < len(changes) && alike(c, changes[j]) {
			j++
		}
		line := fmt.Sprintf("%s: %s → %s", c.Place, cmp.Or(strings.Join(strings.Fields(c.From), " "), "–"), strings.Join(strings.Fields(c.To), " "))
		if j > i+1 {
			line += fmt.Sprintf(" (and %d alike)", j-i-1)
		}
		lines = append(lines, line)
		i = j
	}
	return lines
}

// alike reports whether two changes do the same to two CPUs or queues.
func alike(a, b tune.Change) bool {
	return a.Kind == b.Kind && a.From == b.From && a.To == b.To && path.Base(a.Name) == path.Base(b.Name)
}

func doneRow(item tune.Item) []string {
	if item.State != tune.StateDone {
		return nil
	}
	var words []string
	for _, c := range item.Changes {
		words = append(words, fmt.Sprintf("%s: %s", c.Place, cmp.Or(c.From, "–")))
	}
	return []string{item.Setting.Name, strings.Join(words, ", ")}
}

func reasonRow(item tune.Item) []string {
	switch item.State {
	case tune.StateNotApplicable, tune.StateUnreadable:
		reason := item.Reason
		if item.Remedy != "" {
			reason += "; " + item.Remedy
		}
		return []string{item.Setting.Name, reason}
	}
	return nil
}
