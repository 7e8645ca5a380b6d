package otherruns

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/diagnose"
	"github.com/cnibench/cnibench/internal/result"
)

var update = flag.Bool("update", false, "write the table of docs/dev/simulations.md")

func project(t *testing.T) *Table {
	t.Helper()
	table, err := Project()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// Every run of the table has a source and ratios inside their intervals, and its form is what
// an editor of the file expects.
func TestProjectRuns(t *testing.T) {
	var strict Table
	d := json.NewDecoder(bytes.NewReader(runsJSON))
	d.DisallowUnknownFields()
	if err := d.Decode(&strict); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, run := range strict.Runs {
		if run.Source == "" || run.Machine == "" || run.Beside == "" || seen[run.Started] {
			t.Errorf("run of %s: wants a source, a machine and its load, once", run.Started)
		}
		seen[run.Started] = true
		for key, ratios := range run.Ratios {
			for name, r := range ratios {
				if !(0 < r[1] && r[1] <= r[0] && r[0] <= r[2]) {
					t.Errorf("%s, %s, %s: %v", run.Started, key, name, r)
				}
			}
		}
	}
	if len(seen) < 6 {
		t.Errorf("%d runs, want six machines or hours", len(seen))
	}
}

// score counts the ratios of other runs that a run's prediction holds.
type score struct{ inside, all int }

// holdOut predicts from every run, and counts the ratios of the others that lie in the
// intervals: those of another machine, of which no run was seen, and those of another hour of
// the same machine, of which only that hour was not.
func holdOut(runs []Run, miss func(from, of Run, key, name string, in analysis.Interval)) (machine, hour []score) {
	machine, hour = make([]score, len(runs)), make([]score, len(runs))
	for i, from := range runs {
		for k, of := range runs {
			if i == k {
				continue
			}
			s := &hour[i]
			if of.Machine != from.Machine {
				s = &machine[i]
			}
			var rest []Run
			for l, run := range runs {
				if l != i && l != k && (run.Machine != of.Machine || of.Machine == from.Machine) {
					rest = append(rest, run)
				}
			}
			for _, key := range analysis.SortedKeys(from.Ratios) {
				intervals, _ := predict(key, from, rest)
				for _, name := range analysis.SortedKeys(intervals) {
					other, in := of.Ratios[key][name], intervals[name]
					if !other.known() {
						continue
					}
					s.all++
					if in[0] <= other[0] && other[0] <= in[1] {
						s.inside++
					} else {
						miss(from, of, key, name, in)
					}
				}
			}
		}
	}
	return machine, hour
}

// The prediction from each of the project's runs holds at least nine of ten ratios of the
// runs of other machines, of which it has seen none.
func TestPredictionHoldsOtherRuns(t *testing.T) {
	runs := project(t).Runs
	machine, hour := holdOut(runs, func(from, of Run, key, name string, in analysis.Interval) {
		t.Logf("from %s: %s of %s in %s is %.2f, outside %.2f–%.2f", from.Started, key, name, of.Started, of.Ratios[key][name][0], in[0], in[1])
	})
	for i, s := range machine {
		t.Logf("from %s: %d of %d ratios of other machines inside, %d of %d of the same machine", runs[i].Started, s.inside, s.all, hour[i].inside, hour[i].all)
		if s.all == 0 || float64(s.inside) < 0.9*float64(s.all) {
			t.Errorf("from %s: %d of %d ratios of other machines inside, want nine of ten", runs[i].Started, s.inside, s.all)
		}
		if h := hour[i]; float64(h.inside) < 0.9*float64(h.all) {
			t.Errorf("from %s: %d of %d ratios of other hours inside, want nine of ten", runs[i].Started, h.inside, h.all)
		}
	}
}

// What is usual has one source: package diagnose, which may import nothing, has the table's least
// and greatest goodput widened by a half each way, for short slices beside other work.
func TestUsualIsOne(t *testing.T) {
	table := project(t)
	for _, transport := range []string{"vxlan", "routes"} {
		usual := table.Usual(transport, at("dts", result.Goodput))
		band, known := diagnose.UsualGoodput(transport)
		if usual == nil || !known {
			t.Fatalf("%s: %v, %v", transport, usual, known)
		}
		for i, want := range []float64{usual.Ratios[0] / 1.5, usual.Ratios[1] * 1.5} {
			if math.Abs(band[i]-want) > 0.006 {
				t.Errorf("%s: diagnose has %v, the table %.2f–%.2f", transport, band, usual.Ratios[0], usual.Ratios[1])
			}
		}
	}
	if u := table.Usual("mpls", at("dts", result.Goodput)); u != nil {
		t.Errorf("mpls: %v", u)
	}
}

// docs/dev/simulations.md has the runs, and what holding them out gave.
func TestPage(t *testing.T) {
	const begin, end = "<!-- runs -->\n", "<!-- /runs -->"
	file := filepath.Join("..", "..", "..", "docs", "dev", "simulations.md")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no part %s", file, begin)
	}
	want := before + begin + pageTable(project(t)) + end + after
	if want == string(page) {
		return
	}
	if !*update {
		t.Fatalf("%s is older than runs.json: go test ./internal/analysis/otherruns -update", file)
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func pageTable(table *Table) string {
	var b strings.Builder
	b.WriteString("\n| run, UTC | machine | beside it | host-gw goodput | VXLAN goodput | VXLAN CPU | VXLAN p50 | ratios of other machines inside | of other hours |\n|---|---|---|---:|---:|---:|---:|---:|---:|\n")
	machine, hour := holdOut(table.Runs, func(Run, Run, string, string, analysis.Interval) {})
	for i, run := range table.Runs {
		fmt.Fprintf(&b, "| %s | %s | %s |", run.Started, run.Machine, run.Beside)
		for _, c := range []struct{ key, contender string }{
			{"dts goodput", "flannel-host-gw"}, {"dts goodput", "flannel-vxlan"}, {"dts cpu_per_gbit", "flannel-vxlan"}, {"http-350-30pct network_time_p50", "flannel-vxlan"},
		} {
			cell := "–"
			if r := run.Ratios[c.key][c.contender]; r.known() {
				cell = fmt.Sprintf("%.2f×", r[0])
			}
			b.WriteString(" " + cell + " |")
		}
		hours := "–"
		if hour[i].all > 0 {
			hours = fmt.Sprintf("%d of %d", hour[i].inside, hour[i].all)
		}
		fmt.Fprintf(&b, " %d of %d | %s |\n", machine[i].inside, machine[i].all, hours)
	}
	return b.String() + "\n"
}
